/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two endpoints of one process, each in a bundle of its own, that know each other as 0.
 */
#ifndef TESTS_AM_PAIR_H
#define TESTS_AM_PAIR_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>

#include "am/bundle.h"
#include "base/clock.h"
#include "include/warp/amudp.h"
#include "tests/am_place.h"

#define PAIR_TAG 0x5A5Au
#define PAIR_SEGMENT (4u << 20)

struct pair {
	eb_t eb[2];
	ep_t ep[2];
	en_t name[2];
};

/* What is made from here on stands where this end does; the address it has there. */
static inline in_addr_t pair_place(int end)
{
	in_addr_t address = am_place(end);

	cr_assert_neq(address, INADDR_NONE, "%s", strerror(errno));
	return address;
}

static inline void pair_endpoint(struct pair *p, int end)
{
	in_addr_t place = pair_place(end);

	AMUDP_SetUDPInterface(place);
	cr_assert_eq(AM_AllocateEndpoint(p->eb[end], &p->ep[end], &p->name[end]), AM_OK);
	cr_assert_str_eq(AMUDP_GetNic(p->ep[end]), am_place_nic());
	cr_assert_eq(p->name[end].sin_addr.s_addr, place);
}

static inline void pair_equip(ep_t ep)
{
	cr_assert_eq(AM_SetTag(ep, PAIR_TAG), AM_OK);
	cr_assert_eq(AM_SetSeg(ep, calloc(1, PAIR_SEGMENT), PAIR_SEGMENT), AM_OK);
}

static inline void pair_open(struct pair *p, int mode)
{
	int i;

	cr_assert_eq(AM_Init(), AM_OK);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(AM_AllocateBundle(mode, &p->eb[i]), AM_OK);
		pair_endpoint(p, i);
		pair_equip(p->ep[i]);
	}
}

static inline void pair_map(struct pair *p, int depth)
{
	int i;

	for (i = 0; i < 2; i++) {
		pair_place(i); /* a peer's path is asked for there */
		cr_assert_eq(AM_Map(p->ep[i], 0, p->name[!i], PAIR_TAG), AM_OK);
		cr_assert_eq(AM_SetExpectedResources(p->ep[i], 1, depth), AM_OK);
	}
}

static inline void pair_poll(struct pair *p)
{
	AM_Poll(p->eb[1]);
	AM_Poll(p->eb[0]);
}

/* The second endpoint is gone, with what it had. */
static inline void pair_drop(struct pair *p)
{
	void *segment;
	uintptr_t len;

	AM_GetSeg(p->ep[1], &segment, &len);
	AM_FreeEndpoint(p->ep[1]);
	free(segment);
}

/* Polls both until the condition holds; a test that never gets there fails. */
#define pair_until(p, condition)                                                     \
	do {                                                                         \
		uint64_t pair_end = base_now() + 10 * BASE_NS_PER_S;                 \
		while (!(condition)) {                                               \
			pair_poll(p);                                                \
			cr_assert_lt(base_now(), pair_end, "never: %s", #condition); \
		}                                                                    \
	} while (0)

static inline void pair_close(struct pair *p)
{
	void *segment;
	uintptr_t len;
	int i;

	for (i = 0; i < 2; i++) {
		AM_GetSeg(p->ep[i], &segment, &len);
		free(segment);
	}
	cr_assert_eq(AM_Terminate(), AM_OK);
}

#endif
