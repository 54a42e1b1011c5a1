/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of the first end to the second, by hands that set when what is due: how many have run,
 * and are answered.
 */
#ifndef TESTS_AM_COUNTED_H
#define TESTS_AM_COUNTED_H

#include "pair.h"

#define LATE (60 * BASE_NS_PER_S)

static int ran, answered;

static inline void on_request(void *token)
{
	ran++;
	AM_Reply0(token, 2);
}

static inline void on_reply(void *token)
{
	answered++;
}

static inline void counted_open(struct pair *p)
{
	pair_open(p, AM_SEQ);
	AM_SetHandler(p->ep[1], 1, on_request);
	AM_SetHandler(p->ep[0], 2, on_reply);
	pair_map(p, 4);
}

#endif
