/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints that change their place under load, and one that takes over a dead one's name:
 * every message runs once, or comes back with a reason.
 */
#include "pair.h"

#include <errno.h>

#define MESSAGES 4000

static unsigned char ran[MESSAGES], answered[MESSAGES];
static int returned;

static void on_request(void *token, void *buf, int nbytes, int i)
{
	ran[i]++;
	AM_ReplyI1(token, 2, buf, nbytes, i);
}

static void on_reply(void *token, void *buf, int nbytes, int i)
{
	answered[i]++;
}

static void on_returned(int status, op_t opcode, void *token)
{
	returned++;
}

static void handlers_set(ep_t ep)
{
	AM_SetHandler(ep, 0, on_returned);
	AM_SetHandler(ep, 1, on_request);
	AM_SetHandler(ep, 2, on_reply);
}

static int of(const unsigned char *v, int value)
{
	int i, n = 0;

	for (i = 0; i < MESSAGES; i++)
		n += v[i] == value;
	return n;
}

static void start(struct pair *p)
{
	int i;

	setenv("AMUDP_REQUESTTIMEOUT_INITIAL", "2000", 1);
	pair_open(p, AM_SEQ);
	for (i = 0; i < 2; i++)
		handlers_set(p->ep[i]);
}

/* Sends messages from..to, with a few outstanding at any time. */
static void load(struct pair *p, int from, int to)
{
	static char data[600];
	int i;

	for (i = from; i < to; i++) {
		while (p->ep[0]->outstanding >= 8)
			pair_poll(p);
		cr_assert_eq(AM_RequestI1(p->ep[0], 0, 1, data, i % 600, i), AM_OK);
		pair_poll(p);
	}
}

static void finish(struct pair *p)
{
	pair_until(p, p->ep[0]->outstanding == 0);
	cr_assert_eq(of(ran, 1), MESSAGES, "%d ran once", of(ran, 1));
	cr_assert_eq(of(answered, 1), MESSAGES);
	cr_assert_eq(returned, 0);
	pair_close(p);
}

Test(move, migration_of_the_replier_under_load, .timeout = 60)
{
	struct pair p;

	start(&p);
	pair_map(&p, 16);
	load(&p, 0, 1000);
	cr_assert_eq(AMUDP_MigrateEndpoint(p.ep[1], inet_addr("127.0.0.2")), AM_OK);
	cr_assert_eq(AMUDP_MigrateEndpoint(p.ep[1], inet_addr("127.0.0.3")), AM_ERR_RESOURCE);
	load(&p, 1000, 2000);
	pair_until(&p, !p.ep[1]->leaving);
	cr_assert_eq(p.ep[1]->num_nics, 1);
	cr_assert_eq(p.ep[0]->translations[0].peer->path.sin_addr.s_addr, inet_addr("127.0.0.2"));
	cr_assert_eq(AMUDP_MigrateEndpoint(p.ep[1], inet_addr("127.0.0.3")), AM_OK);
	load(&p, 2000, MESSAGES);
	finish(&p);
}

Test(move, migration_of_both_at_once_with_losses, .timeout = 60)
{
	struct pair p;

	setenv("FAULT_RATE", "0.1", 1);
	start(&p);
	AMUDP_AddPath(p.ep[0], inet_addr("127.0.0.4"));
	AMUDP_AddPath(p.ep[1], inet_addr("127.0.0.5"));
	pair_map(&p, 16);
	load(&p, 0, 1000);
	AMUDP_MigrateEndpoint(p.ep[0], inet_addr("127.0.0.2"));
	AMUDP_MigrateEndpoint(p.ep[1], inet_addr("127.0.0.3"));
	load(&p, 1000, MESSAGES);
	finish(&p);
}

static int down_state(struct am_nic *nic)
{
	return -ENETDOWN;
}

Test(move, failing_over_when_the_link_is_down, .timeout = 60)
{
	struct am_nic_ops dead;
	struct pair p;

	start(&p);
	setenv("AMUDP_PATHS", "127.0.0.1 127.0.0.6, 192.0.2.77", 1);
	pair_drop(&p);
	AM_AllocateEndpoint(p.eb[1], &p.ep[1], &p.name[1]);
	cr_assert_eq(p.ep[1]->num_nics, 2, "its own and the one that is here");
	handlers_set(p.ep[1]);
	AM_SetTag(p.ep[1], PAIR_TAG);
	pair_map(&p, 16);
	load(&p, 0, 1000);
	dead = *p.ep[1]->nics[0]->ops;
	dead.state = down_state;
	p.ep[1]->nics[0]->ops = &dead;
	load(&p, 1000, MESSAGES);
	cr_assert_eq(p.ep[1]->nic, 1);
	cr_assert_eq(p.ep[0]->translations[0].peer->path.sin_addr.s_addr, inet_addr("127.0.0.6"));
	finish(&p);
}

Test(move, a_replacement_takes_the_name, .timeout = 60)
{
	struct pair p;
	en_t dead;
	int i;

	start(&p);
	pair_map(&p, 16);
	load(&p, 0, 1000);
	pair_until(&p, p.ep[0]->outstanding == 0);
	dead = p.name[1];
	pair_drop(&p);
	for (i = 1000; i < 1010; i++)
		AM_RequestI1(p.ep[0], 0, 1, &i, 4, i);
	AMUDP_SetUDPInterface(inet_addr("127.0.0.7"));
	AM_AllocateEndpoint(p.eb[1], &p.ep[1], &p.name[1]);
	handlers_set(p.ep[1]);
	AM_SetTag(p.ep[1], PAIR_TAG);
	AM_SetSeg(p.ep[1], malloc(16), 16);
	cr_assert_eq(AMUDP_TakeName(p.ep[1], dead), AM_OK);
	AM_Map(p.ep[1], 0, p.name[0], PAIR_TAG);
	cr_assert_eq(AMUDP_TakeName(p.ep[1], dead), AM_ERR_RESOURCE);
	AM_SetExpectedResources(p.ep[1], 1, 16);
	load(&p, 1010, MESSAGES);
	/* and requests of its own are new to the peer, whatever the dead one had sent */
	pair_until(&p, p.ep[0]->outstanding == 0);
	memset(ran, 0, 1);
	AM_RequestI1(p.ep[1], 0, 1, &i, 4, 0);
	pair_until(&p, ran[0] == 1);
	answered[0] = 1;
	finish(&p);
}

Test(move, arguments)
{
	struct pair p;
	en_t none = { 0 };

	pair_open(&p, AM_SEQ);
	cr_assert_eq(AMUDP_AddPath(NULL, 0), AM_ERR_BAD_ARG);
	cr_assert_eq(AMUDP_AddPath(p.ep[0], inet_addr("192.0.2.1")), AM_ERR_RESOURCE);
	cr_assert_eq(AMUDP_AddPath(p.ep[0], inet_addr("127.0.0.2")), AM_OK);
	cr_assert_eq(AMUDP_AddPath(p.ep[0], inet_addr("127.0.0.3")), AM_OK);
	cr_assert_eq(AMUDP_AddPath(p.ep[0], inet_addr("127.0.0.4")), AM_OK);
	cr_assert_eq(AMUDP_AddPath(p.ep[0], inet_addr("127.0.0.5")), AM_ERR_RESOURCE);
	cr_assert_eq(AMUDP_MigrateEndpoint(NULL, 0), AM_ERR_BAD_ARG);
	cr_assert_eq(AMUDP_TakeName(p.ep[0], none), AM_ERR_BAD_ARG);
	pair_close(&p);
}
