/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several endpoints in one bundle, and endpoints that go from one bundle to another.
 */
#include "pair.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { ON_REQUEST = 1, ON_REPLY };
enum { MANY = 20, WAITERS = 3, TRIES = 3, MESSAGES = 3000, MOVE_EVERY = 40, LONG = 9000 };

#define LAG_NS (BASE_NS_PER_S / 2) /* a sleep that nothing ends takes 1 s */

static int requests[MESSAGES], replies[MESSAGES];
static char data[LONG];

static void on_request(void *token, void *buf, int n, int i)
{
	__atomic_add_fetch(&requests[i], 1, __ATOMIC_RELAXED);
	cr_assert_eq(AM_ReplyI1(token, ON_REPLY, buf, n & 15, i), AM_OK);
}

static void on_reply(void *token, void *buf, int n, int i)
{
	replies[i]++;
}

static void handlers_set(ep_t ep)
{
	AM_SetHandler(ep, ON_REQUEST, on_request);
	AM_SetHandler(ep, ON_REPLY, on_reply);
}

/* One endpoint that sends, and those that share a bundle. */
struct crowd {
	eb_t sender_eb, eb;
	ep_t sender, ep[MANY];
	uint64_t sent;	 /* when */
	int waked, back; /* who waited: soon, and at all */
	int over;	 /* nothing more is sent */
};

static void crowd_open(struct crowd *c, int mode)
{
	en_t sender, name;
	int i;

	AMUDP_SetUDPInterface(pair_place(0));
	cr_assert_eq(AM_Init(), AM_OK);
	cr_assert_eq(AM_AllocateBundle(AM_SEQ, &c->sender_eb), AM_OK);
	cr_assert_eq(AM_AllocateBundle(mode, &c->eb), AM_OK);
	cr_assert_eq(AM_AllocateEndpoint(c->sender_eb, &c->sender, &sender), AM_OK);
	handlers_set(c->sender);
	AM_SetTag(c->sender, PAIR_TAG);
	for (i = 0; i < MANY; i++) {
		cr_assert_eq(AM_AllocateEndpoint(c->eb, &c->ep[i], &name), AM_OK);
		handlers_set(c->ep[i]);
		AM_SetTag(c->ep[i], PAIR_TAG);
		cr_assert_eq(AM_Map(c->ep[i], 0, sender, PAIR_TAG), AM_OK);
		cr_assert_eq(AM_SetExpectedResources(c->ep[i], 1, 4), AM_OK);
		cr_assert_eq(AM_Map(c->sender, i, name, PAIR_TAG), AM_OK);
	}
	cr_assert_eq(AM_SetExpectedResources(c->sender, MANY, 4), AM_OK);
	AM_SetEventMask(c->eb, AM_NOTEMPTY);
}

static void send_one(struct crowd *c, int number)
{
	AM_RequestI1(c->sender, MANY - 1, ON_REQUEST, data, 8, number);
	while (!replies[number])
		AM_Poll(c->sender_eb);
	replies[number] = 0;
}

static void *send_to_last(void *arg)
{
	struct crowd *c = arg;

	usleep(100000);
	__atomic_store_n(&c->sent, base_now(), __ATOMIC_RELAXED);
	send_one(c, 0);
	return NULL;
}

/* Who began to wait when it was over needs another one. */
static void *send_to_all(void *arg)
{
	struct crowd *c = arg;

	send_to_last(c);
	while (__atomic_load_n(&c->back, __ATOMIC_RELAXED) < WAITERS) {
		usleep(100000);
		send_one(c, 1);
	}
	__atomic_store_n(&c->over, 1, __ATOMIC_RELAXED);
	return NULL;
}

static uint64_t lag(const struct crowd *c)
{
	return base_now() - __atomic_load_n(&c->sent, __ATOMIC_RELAXED);
}

Test(bundle, the_last_of_many_endpoints_wakes_it, .timeout = 30)
{
	uint64_t least = BASE_NEVER, took;
	struct crowd c;
	pthread_t sender;
	int i;

	crowd_open(&c, AM_SEQ);
	for (i = 0; i < TRIES; i++) {
		cr_assert_eq(pthread_create(&sender, NULL, send_to_last, &c), 0);
		cr_assert_eq(AM_WaitSema(c.eb), AM_OK);
		took = lag(&c);
		least = took < least ? took : least;
		pthread_join(sender, NULL);
		cr_assert_eq(requests[0], i + 1);
	}
	cr_assert_lt(least, LAG_NS);
	cr_assert_eq(AM_Terminate(), AM_OK);
}

static void *await(void *arg)
{
	struct crowd *c = arg;

	AM_WaitSema(c->eb);
	if (lag(c) < LAG_NS)
		__atomic_add_fetch(&c->waked, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&c->back, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Who finds that another thread has taken the message returns with its next sleep's end. */
Test(bundle, threads_that_wait_for_many_endpoints, .timeout = 60)
{
	pthread_t sender, waiters[WAITERS];
	struct crowd c = { .waked = 0 };
	int i, tries;

	crowd_open(&c, AM_PAR);
	for (tries = 0; tries < TRIES && !c.waked; tries++) {
		c.back = c.over = 0;
		for (i = 0; i < WAITERS; i++)
			cr_assert_eq(pthread_create(&waiters[i], NULL, await, &c), 0);
		cr_assert_eq(pthread_create(&sender, NULL, send_to_all, &c), 0);
		for (i = 0; i < WAITERS; i++)
			pthread_join(waiters[i], NULL);
		while (!__atomic_load_n(&c.over, __ATOMIC_RELAXED))
			AM_Poll(c.eb);
		pthread_join(sender, NULL);
		cr_assert_eq(requests[0], tries + 1);
	}
	cr_assert_gt(c.waked, 0);
	cr_assert_eq(AM_Terminate(), AM_OK);
}

/* Each end goes round three bundles, of both kinds. */
static void ends_move(struct pair *p, eb_t *others, int step)
{
	int end;

	for (end = 0; end < 2; end++) {
		eb_t to = others[(step + end) % 3];

		if (to == p->eb[end])
			continue;
		cr_assert_eq(AM_MoveEndpoint(p->ep[end], p->eb[end], to), AM_OK);
		p->eb[end] = to;
	}
}

Test(bundle, endpoints_move_with_requests_under_way, .timeout = 60)
{
	eb_t bundles[3], first[2];
	struct pair p;
	int i;

	setenv("AMUDP_FAULT_RATE", "0.02", 1);
	setenv("AMUDP_REQUESTTIMEOUT_INITIAL", "5000", 1);
	pair_open(&p, AM_SEQ);
	pair_map(&p, 16);
	for (i = 0; i < 2; i++) {
		handlers_set(p.ep[i]);
		first[i] = p.eb[i];
	}
	for (i = 0; i < 3; i++)
		cr_assert_eq(AM_AllocateBundle(i % 2 ? AM_SEQ : AM_PAR, &bundles[i]), AM_OK);
	for (i = 0; i < MESSAGES; i++) {
		pair_until(&p, p.ep[0]->outstanding < 12);
		cr_assert_eq(AM_RequestI1(p.ep[0], 0, ON_REQUEST, data, i % 10 ? 8 : LONG, i),
			     AM_OK);
		if (i % MOVE_EVERY != MOVE_EVERY - 1)
			continue;
		cr_assert_gt(p.ep[0]->outstanding, 0);
		ends_move(&p, bundles, i / MOVE_EVERY);
		if (first[0])
			cr_assert_eq(AM_FreeBundle(first[0]), AM_OK);
		if (first[1])
			cr_assert_eq(AM_FreeBundle(first[1]), AM_OK);
		first[0] = first[1] = NULL;
	}
	pair_until(&p, p.ep[0]->outstanding == 0);
	for (i = 0; i < MESSAGES; i++)
		cr_assert(requests[i] == 1 && replies[i] == 1, "%d: %d requests, %d replies", i,
			  requests[i], replies[i]);
	pair_close(&p);
}
