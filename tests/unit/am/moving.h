/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbered messages between two endpoints of which one changes its place, or dies: which have
 * run, which are answered, which came back and why.
 */
#ifndef TESTS_AM_MOVING_H
#define TESTS_AM_MOVING_H

#include "pair.h"

#define MESSAGES 4000

enum { ON_RETURNED, ON_REQUEST, ON_REPLY };

static unsigned char ran[MESSAGES], answered[MESSAGES];
static int returned, reason;

static inline void on_request(void *token, void *buf, int nbytes, int i)
{
	ran[i]++;
	AM_ReplyI1(token, ON_REPLY, buf, nbytes, i);
}

static inline void on_reply(void *token, void *buf, int nbytes, int i)
{
	answered[i]++;
}

static inline void on_returned(int status, op_t opcode, void *token)
{
	returned++;
	reason = status;
}

static inline void handlers_set(ep_t ep)
{
	AM_SetHandler(ep, ON_RETURNED, on_returned);
	AM_SetHandler(ep, ON_REQUEST, on_request);
	AM_SetHandler(ep, ON_REPLY, on_reply);
}

static inline int of(const unsigned char *v, int value)
{
	int i, n = 0;

	for (i = 0; i < MESSAGES; i++)
		n += v[i] == value;
	return n;
}

/* Another address of where this end stands; its own is number 0. */
static inline in_addr_t place(int end, uint32_t number)
{
	return htonl(ntohl(pair_place(end)) + (number << 16));
}

static inline void start(struct pair *p)
{
	int i;

	setenv("AMUDP_REQUESTTIMEOUT_INITIAL", "2000", 1);
	pair_open(p, AM_SEQ);
	for (i = 0; i < 2; i++)
		handlers_set(p->ep[i]);
}

/* Sends messages from..to, with a few outstanding at any time. */
static inline void load(struct pair *p, int from, int to)
{
	static char data[600];
	int i;

	for (i = from; i < to; i++) {
		while (p->ep[0]->outstanding >= 8)
			pair_poll(p);
		cr_assert_eq(AM_RequestI1(p->ep[0], 0, ON_REQUEST, data, i % 600, i), AM_OK);
		pair_poll(p);
	}
}

static inline void finish(struct pair *p)
{
	pair_until(p, p->ep[0]->outstanding == 0);
	cr_assert_eq(of(ran, 1), MESSAGES, "%d ran once", of(ran, 1));
	cr_assert_eq(of(answered, 1), MESSAGES);
	cr_assert_eq(returned, 0);
	pair_close(p);
}

#endif
