/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints that change their place under load: every message runs once, all peers learn of it,
 * and the old place is closed when they have, or when who has not must be dead.
 */
#include "moving.h"

#define ROUNDS 5		 /* of telling peers that do not answer */
#define FRAGMENTED 10000	 /* octets */
#define DEAD_AFTER_US "300000"	 /* REQUESTTIMEOUT_MAX */
#define DEAD_AFTER_NS 300000000u /* the same */

/* A further endpoint where the first one stands, polled only when told to. */
struct third {
	eb_t eb;
	ep_t ep;
	en_t name;
};

static void third_open(struct third *t, struct pair *p, int index)
{
	AMUDP_SetUDPInterface(pair_place(0));
	cr_assert_eq(AM_AllocateBundle(AM_SEQ, &t->eb), AM_OK);
	cr_assert_eq(AM_AllocateEndpoint(t->eb, &t->ep, &t->name), AM_OK);
	AM_SetTag(t->ep, PAIR_TAG);
	handlers_set(t->ep);
	cr_assert_eq(AM_Map(t->ep, 0, p->name[1], PAIR_TAG), AM_OK);
	cr_assert_eq(AM_SetExpectedResources(t->ep, 1, 16), AM_OK);
	pair_place(1);
	cr_assert_eq(AM_Map(p->ep[1], index, t->name, PAIR_TAG), AM_OK);
}

static void third_sends(struct third *t, int i)
{
	cr_assert_eq(AM_RequestI1(t->ep, 0, ON_REQUEST, &i, 4, i), AM_OK);
}

static in_addr_t path_of(ep_t ep)
{
	return ep->translations[0].peer->path.sin_addr.s_addr;
}

Test(move, migration_of_the_replier_under_load, .timeout = 60)
{
	struct pair p;

	start(&p);
	pair_map(&p, 16);
	load(&p, 0, 1000);
	cr_assert_eq(AMUDP_MigrateEndpoint(p.ep[1], place(1, 1)), AM_OK);
	cr_assert_eq(AMUDP_MigrateEndpoint(p.ep[1], place(1, 2)), AM_ERR_RESOURCE);
	load(&p, 1000, 2000);
	pair_until(&p, !p.ep[1]->leaving);
	cr_assert_eq(p.ep[1]->num_nics, 1);
	cr_assert_eq(path_of(p.ep[0]), place(1, 1));
	cr_assert_str_eq(AMUDP_GetNic(p.ep[1]), am_place_nic());
	cr_assert_eq(AMUDP_MigrateEndpoint(p.ep[1], place(1, 2)), AM_OK);
	load(&p, 2000, MESSAGES);
	finish(&p);
}

Test(move, migration_of_both_at_once_with_losses, .timeout = 60)
{
	struct pair p;
	int i;

	setenv("FAULT_RATE", "0.1", 1);
	start(&p);
	for (i = 0; i < 2; i++)
		AMUDP_AddPath(p.ep[i], place(i, 2));
	pair_map(&p, 16);
	load(&p, 0, 1000);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(AMUDP_MigrateEndpoint(p.ep[i], place(i, 1)), AM_OK);
		cr_assert_str_eq(AMUDP_GetNic(p.ep[i]), am_place_nic());
	}
	load(&p, 1000, MESSAGES);
	finish(&p);
}

static int down_state(struct am_nic *nic)
{
	return -ENETDOWN;
}

Test(move, failing_over_when_the_link_is_down, .timeout = 60)
{
	char paths[3][INET_ADDRSTRLEN], list[64];
	struct am_nic_ops dead;
	struct in_addr own;
	struct pair p;
	int i;

	start(&p);
	for (i = 0; i < 2; i++) {
		own.s_addr = place(1, (uint32_t)i);
		inet_ntop(AF_INET, &own, paths[i], sizeof(paths[i]));
	}
	snprintf(list, sizeof(list), "%s %s, 192.0.2.77", paths[0], paths[1]);
	setenv("AMUDP_PATHS", list, 1);
	pair_drop(&p);
	pair_endpoint(&p, 1);
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
	cr_assert_str_eq(AMUDP_GetNic(p.ep[1]), am_place_nic());
	cr_assert_eq(path_of(p.ep[0]), place(1, 1));
	finish(&p);
}

/* Polls the pair until the moved one has told its peers so many times more. */
static void rounds_pass(struct pair *p, int rounds)
{
	uint64_t due;

	while (rounds--) {
		due = p->ep[1]->move_due;
		pair_until(p, p->ep[1]->move_due != due);
	}
}

/* The one that is polled stands between the two that are not. */
Test(move, all_peers_are_told, .timeout = 60)
{
	struct am_peer *known;
	struct third third[2];
	struct pair p;
	int i;

	start(&p);
	third_open(&third[0], &p, 1);
	cr_assert_eq(AM_Map(p.ep[1], 0, p.name[0], PAIR_TAG), AM_OK);
	third_open(&third[1], &p, 2);
	cr_assert_eq(AM_SetExpectedResources(p.ep[1], 3, 16), AM_OK);
	pair_place(0);
	cr_assert_eq(AM_Map(p.ep[0], 0, p.name[1], PAIR_TAG), AM_OK);
	cr_assert_eq(AM_SetExpectedResources(p.ep[0], 1, 16), AM_OK);
	load(&p, 0, 1000);
	for (i = 0; i < 2; i++) {
		third_sends(&third[i], 1000 + i);
		pair_until(&p, (AM_Poll(third[i].eb), third[i].ep->outstanding == 0));
	}
	cr_assert_eq(AMUDP_MigrateEndpoint(p.ep[1], place(1, 1)), AM_OK);
	known = p.ep[1]->translations[0].peer;
	pair_until(&p, known->move_acked == p.ep[1]->move_serial);
	for (i = 0; i < 2; i++) {
		rounds_pass(&p, ROUNDS);
		cr_assert_not_null(p.ep[1]->leaving, "%d do not know", 2 - i);
		cr_assert_eq(p.ep[1]->num_nics, 2);
		cr_assert_eq(AMUDP_MigrateEndpoint(p.ep[1], place(1, 2)), AM_ERR_RESOURCE);
		/* what goes to the old place is taken; then it learns of the new one */
		third_sends(&third[i], 1002 + i);
		pair_until(&p, (AM_Poll(third[i].eb), path_of(third[i].ep) == place(1, 1)));
		pair_until(&p, (AM_Poll(third[i].eb), third[i].ep->outstanding == 0));
	}
	pair_until(&p, !p.ep[1]->leaving);
	cr_assert_eq(p.ep[1]->num_nics, 1);
	for (i = 0; i < 2; i++) {
		third_sends(&third[i], 1004 + i);
		pair_until(&p, (AM_Poll(third[i].eb), third[i].ep->outstanding == 0));
	}
	load(&p, 1006, MESSAGES);
	finish(&p);
}

Test(move, a_dead_peer_does_not_keep_the_old_place, .timeout = 60)
{
	struct third third;
	uint64_t began;
	struct pair p;

	setenv("AMUDP_REQUESTTIMEOUT_MAX", DEAD_AFTER_US, 1);
	start(&p);
	p.ep[0]->options.timeout_max = BASE_NEVER; /* a busy machine takes as long, too */
	third_open(&third, &p, 1);
	pair_map(&p, 16);
	load(&p, 0, 1000);
	AM_FreeEndpoint(third.ep);
	began = base_now();
	cr_assert_eq(AMUDP_MigrateEndpoint(p.ep[1], place(1, 1)), AM_OK);
	load(&p, 1000, 2000);
	pair_until(&p, !p.ep[1]->leaving);
	cr_assert_geq(base_now() - began, DEAD_AFTER_NS, "it had its time");
	cr_assert_eq(p.ep[1]->num_nics, 1);
	load(&p, 2000, 3000);
	cr_assert_eq(AMUDP_MigrateEndpoint(p.ep[1], place(1, 2)), AM_OK);
	load(&p, 3000, MESSAGES);
	finish(&p);
}

/*
 * Who is away is told less and less often, and no more when it has had its time; a request to it
 * takes the news along. Eight times come within the time: 0, 5, 10, 15, 25, 45, 85, 165 ms.
 */
static void who_is_away(int octets)
{
	static char data[FRAGMENTED];
	const uint64_t most = 8;
	struct third third;
	struct pair p;
	int i = 1000;

	setenv("AMUDP_REQUESTTIMEOUT_MAX", DEAD_AFTER_US, 1);
	start(&p);
	p.ep[0]->options.timeout_max = BASE_NEVER; /* a busy machine takes as long, too */
	third_open(&third, &p, 1);
	pair_map(&p, 16);
	load(&p, 0, 1000);
	third.ep->fault.drop = UINT32_MAX;
	third.ep->fault.on = true;
	cr_assert_eq(AMUDP_MigrateEndpoint(p.ep[1], place(1, 1)), AM_OK);
	pair_until(&p, (AM_Poll(third.eb), p.ep[1]->move_due == BASE_NEVER));
	pair_until(&p, (AM_Poll(third.eb), third.ep->xstats.FaultsDropped > 1));
	cr_assert_leq(third.ep->xstats.FaultsDropped, most);
	cr_assert_neq(path_of(third.ep), place(1, 1));
	third.ep->fault.on = false;
	cr_assert_eq(AM_RequestI1(p.ep[1], 1, ON_REQUEST, data, octets, i), AM_OK);
	pair_until(&p, (AM_Poll(third.eb), p.ep[1]->outstanding == 0));
	cr_assert_eq(path_of(third.ep), place(1, 1));
	load(&p, 1001, MESSAGES);
	finish(&p);
}

Test(move, who_is_away_is_told_later, .timeout = 60)
{
	who_is_away(4);
}

Test(move, who_is_away_is_told_by_fragments, .timeout = 60)
{
	setenv("AMUDP_MAX_PACKET", "1400", 1);
	who_is_away(FRAGMENTED);
}

Test(move, a_path_with_less_room_takes_from_the_window, .timeout = 20)
{
	struct pair p;
	int before;

	start(&p);
	pair_map(&p, 16);
	before = p.ep[0]->window_kib;
	p.ep[0]->nics[0]->receive_bytes /= 8; /* what the next is given, too */
	pair_place(0);
	cr_assert_eq(AMUDP_AddPath(p.ep[0], place(0, 1)), AM_OK);
	cr_assert_eq(p.ep[0]->window_kib, before / 8);
	load(&p, 0, MESSAGES);
	cr_assert_eq(p.ep[1]->translations[0].peer->window, before / 8 * 1024u);
	finish(&p);
}

Test(move, arguments)
{
	struct pair p;
	en_t none = { 0 };

	pair_open(&p, AM_SEQ);
	pair_place(0);
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
