/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints that die, and others that take over their names: each message has one answer, or
 * comes back with the reason.
 */
#include "moving.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define UNDER_WAY 10 /* messages that nobody is there for */
#define OWN 20	     /* requests of the one that dies */
#define BULK 200000
#define ANSWER (1 << 20) /* octets, more than are under way at a time */
#define ON_GOT 3
#define EARLIER 1000 /* 1/64 s, by which another machine's clock is behind */

static int late; /* messages that ran where nobody listens to */

/* Messages 0..1000 are answered, and some of its own, before it dies; then others are sent. */
static void die_under_load(struct pair *p)
{
	int i;

	load(p, 0, 1000);
	for (i = 0; i < OWN; i++) {
		AM_RequestI1(p->ep[1], 0, ON_REQUEST, &i, 4, 0);
		pair_until(p, p->ep[1]->outstanding == 0);
	}
	pair_until(p, p->ep[0]->outstanding == 0);
	ran[0] = answered[0] = 1;
	pair_drop(p);
	for (i = 1000; i < 1000 + UNDER_WAY; i++)
		AM_RequestI1(p->ep[0], 0, ON_REQUEST, &i, 4, i);
}

static void stand_in_map(struct pair *p)
{
	cr_assert_eq(AM_Map(p->ep[1], 0, p->name[0], PAIR_TAG), AM_OK);
	cr_assert_eq(AM_SetExpectedResources(p->ep[1], 1, 16), AM_OK);
}

/* A new second endpoint, at another place, that has the dead one's name but no handlers yet. */
static void stand_in(struct pair *p, en_t dead)
{
	AMUDP_SetUDPInterface(place(1, 1));
	cr_assert_eq(AM_AllocateEndpoint(p->eb[1], &p->ep[1], &p->name[1]), AM_OK);
	pair_equip(p->ep[1]);
	cr_assert_eq(AMUDP_TakeName(p->ep[1], dead), AM_OK);
}

/* Requests of its own are new to the peer, whatever the dead one had sent. */
static void own_request_runs(struct pair *p)
{
	pair_until(p, p->ep[0]->outstanding == 0);
	memset(ran, 0, 1);
	memset(answered, 0, 1);
	AM_RequestI1(p->ep[1], 0, ON_REQUEST, p, 4, 0);
	pair_until(p, answered[0] == 1);
}

static void taken_over(const char *loss)
{
	struct pair p;
	en_t dead;

	setenv("FAULT_RATE", loss, 1);
	start(&p);
	pair_map(&p, 16);
	dead = p.name[1];
	die_under_load(&p);
	stand_in(&p, dead);
	handlers_set(p.ep[1]);
	stand_in_map(&p);
	cr_assert_eq(AMUDP_TakeName(p.ep[1], dead), AM_ERR_RESOURCE);
	load(&p, 1000 + UNDER_WAY, MESSAGES);
	own_request_runs(&p);
	finish(&p);
}

Test(replace, a_replacement_takes_the_name, .timeout = 60)
{
	taken_over("0");
}

Test(replace, a_replacement_on_a_lossy_path, .timeout = 60)
{
	taken_over("0.1");
}

Test(replace, what_the_replacement_cannot_run_comes_back, .timeout = 60)
{
	struct pair p;
	en_t dead;

	start(&p);
	pair_map(&p, 16);
	dead = p.name[1];
	die_under_load(&p);
	stand_in(&p, dead);
	stand_in_map(&p);
	pair_until(&p, p.ep[0]->outstanding == 0);
	cr_assert_eq(returned, UNDER_WAY);
	cr_assert_eq(reason, EBADHANDLER);
	cr_assert_eq(of(ran, 1), 1000);
	cr_assert_eq(of(answered, 1), 1000);
	/* it stands in for the rest all the same */
	returned = 0;
	handlers_set(p.ep[1]);
	load(&p, 1000, MESSAGES);
	finish(&p);
}

Test(replace, where_nobody_comes_all_comes_back, .timeout = 60)
{
	struct pair p;

	setenv("AMUDP_REQUESTTIMEOUT_MAX", "200000", 1);
	start(&p);
	pair_map(&p, 16);
	die_under_load(&p);
	while (p.ep[0]->outstanding)
		AM_Poll(p.eb[0]);
	cr_assert_eq(returned, UNDER_WAY);
	cr_assert_eq(reason, ECONGESTION);
	cr_assert_eq(of(answered, 1), 1000);
}

static void bulk_fill(unsigned char *data)
{
	int i;

	for (i = 0; i < BULK; i++)
		data[i] = (unsigned char)(i % 251);
}

static unsigned char *segment_of(ep_t ep)
{
	void *segment;
	uintptr_t length;

	AM_GetSeg(ep, &segment, &length);
	return segment;
}

static void on_bulk(void *token, void *buf, int nbytes, int i)
{
	ran[i]++;
	cr_assert_eq(nbytes, BULK);
	AM_ReplyI1(token, ON_REPLY, buf, 4, i);
}

static void on_got(void *token, void *buf, int nbytes, int i)
{
	const unsigned char *data = buf;
	int at;

	answered[i]++;
	cr_assert_eq(nbytes, ANSWER);
	for (at = 0; at < ANSWER; at++)
		cr_assert_eq(data[at], 2, "octet %d is of life %d", at, data[at]);
}

static void on_late(void *token, void *buf, int nbytes, int i)
{
	late++;
	AM_ReplyI1(token, ON_REPLY, buf, nbytes, i);
}

static const struct am_gather *request_half(const struct pair *p)
{
	const struct am_peer *peer = p->ep[1]->translations[0].peer;
	int i;

	for (i = 0; peer->rx && i < p->ep[1]->depth; i++) {
		if (peer->rx[i].gather)
			return peer->rx[i].gather;
	}
	return NULL;
}

static const struct am_gather *reply_half(const struct pair *p)
{
	const struct am_peer *peer = p->ep[0]->translations[0].peer;
	int i;

	for (i = 0; peer->tx && i < p->ep[0]->depth; i++) {
		if (peer->tx[i].gather)
			return peer->tx[i].gather;
	}
	return NULL;
}

static void until_half(struct pair *p, const struct am_gather *(*find)(const struct pair *))
{
	const struct am_gather *half = NULL;

	pair_until(p, (half = find(p)) && half->arrived);
	cr_assert_lt(half->arrived, half->count);
}

/* It dies with half of a request; the replacement gets all of it, and runs it once. */
Test(replace, half_a_request_was_there, .timeout = 60)
{
	static unsigned char data[BULK];
	struct pair p;
	en_t dead;

	setenv("AMUDP_MAX_PACKET", "1400", 1);
	bulk_fill(data);
	start(&p);
	pair_map(&p, 16);
	dead = p.name[1];
	load(&p, 0, 100);
	pair_until(&p, p.ep[0]->outstanding == 0);
	cr_assert_eq(AM_RequestXferAsync1(p.ep[0], 0, 0, ON_REQUEST, data, BULK, 100), AM_OK);
	until_half(&p, request_half);
	pair_drop(&p);
	stand_in(&p, dead);
	handlers_set(p.ep[1]);
	AM_SetHandler(p.ep[1], ON_REQUEST, on_bulk);
	stand_in_map(&p);
	pair_until(&p, p.ep[0]->outstanding == 0);
	cr_assert_eq(ran[100], 1);
	cr_assert_eq(memcmp(segment_of(p.ep[1]), data, BULK), 0);
	AM_SetHandler(p.ep[1], ON_REQUEST, on_request);
	load(&p, 101, MESSAGES);
	finish(&p);
}

/* It dies with half of what was asked for there; none of that is left in the replacement's. */
Test(replace, half_a_reply_was_there, .timeout = 60)
{
	struct am_rx_slot *rx;
	struct pair p;
	en_t dead;

	setenv("AMUDP_MAX_PACKET", "1400", 1);
	start(&p);
	AM_SetHandler(p.ep[0], ON_GOT, on_got);
	pair_map(&p, 16);
	dead = p.name[1];
	memset(segment_of(p.ep[1]), 1, ANSWER);
	load(&p, 1, 100);
	pair_until(&p, p.ep[0]->outstanding == 0);
	cr_assert_eq(AM_GetXferAsync1(p.ep[0], 0, 0, ON_GOT, 0, ANSWER, 0), AM_OK);
	until_half(&p, reply_half);
	rx = &p.ep[1]->translations[0].peer->rx[reply_half(&p)->slot];
	cr_assert_lt(rx->bulk->next, rx->bulk->count, "all has been sent");
	pair_drop(&p);
	stand_in(&p, dead);
	handlers_set(p.ep[1]);
	memset(segment_of(p.ep[1]), 2, ANSWER);
	stand_in_map(&p);
	pair_until(&p, p.ep[0]->outstanding == 0);
	cr_assert_eq(answered[0], 1);
	load(&p, 100, MESSAGES);
	ran[0] = 1; /* by nobody: a get has no handler there */
	finish(&p);
}

/* The second endpoint begins anew where it was. */
static void restart(struct pair *p)
{
	struct am_nic_config same = { .name = p->name[1] };
	struct am_nic *nic;

	pair_place(1);
	AMUDP_SetUDPInterface(p->name[1].sin_addr.s_addr);
	cr_assert_eq(AM_AllocateEndpoint(p->eb[1], &p->ep[1], &p->name[1]), AM_OK);
	nic = p->ep[1]->nics[0];
	same.receive_bytes = nic->receive_bytes;
	nic->ops->destroy(nic);
	cr_assert_eq(am_udp_ops.create(&p->ep[1]->nics[0], &same), 0);
	p->ep[1]->name = p->name[1] = same.name;
	pair_equip(p->ep[1]);
	handlers_set(p->ep[1]);
}

/* By a clock that is behind: it says itself that the other one is gone. */
Test(replace, a_clock_that_is_behind, .timeout = 60)
{
	uint32_t known;
	struct pair p;

	start(&p);
	pair_map(&p, 16);
	known = p.ep[1]->incarnation;
	die_under_load(&p);
	restart(&p);
	p.ep[1]->incarnation = known - EARLIER;
	stand_in_map(&p);
	load(&p, 1000 + UNDER_WAY, MESSAGES);
	cr_assert_eq(p.ep[0]->translations[0].peer->incarnation, known - EARLIER);
	cr_assert_gt(p.ep[1]->xstats.StaleIncarnations, 0);
	own_request_runs(&p);
	finish(&p);
}

/* It knows its peer by a name where nobody is any more, for the dead one was told of that. */
Test(replace, its_peer_has_moved, .timeout = 60)
{
	struct pair p;

	start(&p);
	pair_map(&p, 16);
	cr_assert_eq(AMUDP_MigrateEndpoint(p.ep[0], place(0, 1)), AM_OK);
	pair_until(&p, !p.ep[0]->leaving);
	die_under_load(&p);
	restart(&p);
	stand_in_map(&p);
	load(&p, 1000 + UNDER_WAY, MESSAGES);
	own_request_runs(&p);
	finish(&p);
}

static int down_state(struct am_nic *nic)
{
	return -ENETDOWN;
}

/* The same, of a peer that has both places and nothing to say to it. */
Test(replace, its_peer_has_failed_over, .timeout = 60)
{
	struct am_nic_ops dead;
	struct pair p;

	start(&p);
	cr_assert_eq(AMUDP_AddPath(p.ep[0], place(0, 1)), AM_OK);
	pair_map(&p, 16);
	dead = *p.ep[0]->nics[0]->ops;
	dead.state = down_state;
	p.ep[0]->nics[0]->ops = &dead;
	pair_until(&p, p.ep[0]->nic == 1 && p.ep[0]->move_due == BASE_NEVER);
	load(&p, 0, 1000);
	pair_until(&p, p.ep[0]->outstanding == 0);
	pair_drop(&p);
	restart(&p);
	stand_in_map(&p);
	own_request_runs(&p);
	load(&p, 1000, MESSAGES);
	finish(&p);
}

/* From elsewhere nobody can tell it from one that was replaced long ago. */
Test(replace, a_clock_that_is_behind_elsewhere, .timeout = 60)
{
	uint32_t known;
	struct pair p;
	en_t dead;

	setenv("AMUDP_REQUESTTIMEOUT_MAX", "200000", 1);
	start(&p);
	pair_map(&p, 16);
	dead = p.name[1];
	known = p.ep[1]->incarnation;
	die_under_load(&p);
	stand_in(&p, dead);
	p.ep[1]->incarnation = known - EARLIER;
	handlers_set(p.ep[1]);
	stand_in_map(&p);
	pair_until(&p, p.ep[0]->outstanding == 0);
	cr_assert_eq(returned, UNDER_WAY);
	cr_assert_eq(reason, ECONGESTION);
	cr_assert_gt(p.ep[0]->xstats.StaleIncarnations, 0);
	cr_assert_eq(p.ep[0]->translations[0].peer->incarnation, known);
}

/* It was thought dead, and wakes up when another has its name: nobody listens to it. */
Test(replace, the_old_one_lives_on, .timeout = 60)
{
	struct am_peer *peer;
	uint64_t strangers;
	struct pair p;
	void *segment;
	uintptr_t len;
	eb_t old_eb;
	ep_t old;
	int i;

	start(&p);
	pair_map(&p, 16);
	load(&p, 0, 1000);
	pair_until(&p, p.ep[0]->outstanding == 0);
	for (i = 1000; i < 1000 + UNDER_WAY; i++)
		AM_RequestI1(p.ep[0], 0, ON_REQUEST, &i, 4, i);
	old_eb = p.eb[1];
	old = p.ep[1];
	AM_SetHandler(old, ON_REQUEST, on_late);
	cr_assert_eq(AM_AllocateBundle(AM_SEQ, &p.eb[1]), AM_OK);
	stand_in(&p, p.name[1]);
	handlers_set(p.ep[1]);
	stand_in_map(&p);
	peer = p.ep[0]->translations[0].peer;
	pair_until(&p, peer->incarnation == p.ep[1]->incarnation);
	strangers = p.ep[0]->xstats.Strangers;
	load(&p, 1000 + UNDER_WAY, 2000);
	/* what had reached it runs there, for it cannot know; what it says is for nothing */
	AM_RequestI1(old, 0, ON_REQUEST, &i, 4, MESSAGES - 1);
	pair_until(&p, (AM_Poll(old_eb), late > 0 && p.ep[0]->xstats.Strangers > strangers));
	load(&p, 2000, MESSAGES);
	pair_until(&p, p.ep[0]->outstanding == 0);
	cr_assert_eq(old->outstanding, 1, "nobody has answered it");
	cr_assert_leq(late, UNDER_WAY);
	cr_assert_eq(peer->incarnation, p.ep[1]->incarnation);
	cr_assert_eq(peer->path.sin_addr.s_addr, place(1, 1));
	AM_GetSeg(old, &segment, &len);
	AM_FreeBundle(old_eb);
	free(segment);
	finish(&p);
}

/* A process that answers until it is killed, or its parent wants no more. */
struct replier {
	pid_t pid;
	int fd;
	unsigned char *ran;
};

static unsigned char *marks;

static void on_marked(void *token, void *buf, int nbytes, int i)
{
	marks[i]++;
	AM_ReplyI1(token, ON_REPLY, buf, nbytes, i);
}

/* It is told its peer's name, and whose name to take: none if there is no port. */
static bool replier_open(int fd, eb_t *eb)
{
	en_t names[2], own;
	ep_t ep;

	if (read(fd, names, sizeof(names)) != sizeof(names))
		return false;
	AMUDP_SetUDPInterface(names[0].sin_addr.s_addr);
	if (AM_Init() != AM_OK || AM_AllocateBundle(AM_SEQ, eb) != AM_OK ||
	    AM_AllocateEndpoint(*eb, &ep, &own) != AM_OK)
		return false;
	AM_SetTag(ep, PAIR_TAG);
	AM_SetHandler(ep, ON_REQUEST, on_marked);
	if (names[1].sin_port && AMUDP_TakeName(ep, names[1]) != AM_OK)
		return false;
	return AM_Map(ep, 0, names[0], PAIR_TAG) == AM_OK &&
	       AM_SetExpectedResources(ep, 1, 16) == AM_OK &&
	       write(fd, &own, sizeof(own)) == sizeof(own);
}

static void replier_start(struct replier *r)
{
	int fds[2];
	char octet;
	eb_t eb;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	r->ran = mmap(NULL, MESSAGES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(r->ran, MAP_FAILED);
	r->fd = fds[0];
	r->pid = fork();
	cr_assert_geq(r->pid, 0);
	if (r->pid) {
		close(fds[1]);
		return;
	}
	close(fds[0]);
	marks = r->ran;
	if (!replier_open(fds[1], &eb))
		_exit(1);
	while (recv(fds[1], &octet, 1, MSG_DONTWAIT) != 0)
		AM_Poll(eb);
	_exit(0);
}

static en_t replier_meet(const struct replier *r, en_t own, en_t dead)
{
	en_t names[2] = { own, dead }, name = { 0 };

	cr_assert_eq(write(r->fd, names, sizeof(names)), (ssize_t)sizeof(names));
	cr_assert_eq(read(r->fd, &name, sizeof(name)), (ssize_t)sizeof(name));
	return name;
}

static void send_some(struct pair *p, int from, int to)
{
	uint64_t end = base_now() + 10 * BASE_NS_PER_S;
	int i;

	for (i = from; i < to; i++) {
		while (p->ep[0]->outstanding >= 8 && base_now() < end)
			AM_Poll(p->eb[0]);
		cr_assert_lt(p->ep[0]->outstanding, 8, "no answers from message %d on", i);
		cr_assert_eq(AM_RequestI1(p->ep[0], 0, ON_REQUEST, &i, 4, i), AM_OK);
	}
}

/* Processes, of which the first is killed with messages under way. */
Test(replace, a_process_for_one_that_was_killed, .timeout = 60)
{
	struct replier r[2];
	en_t none = { 0 };
	struct pair p;
	int i, status;

	for (i = 0; i < 2; i++)
		replier_start(&r[i]);
	setenv("AMUDP_REQUESTTIMEOUT_INITIAL", "2000", 1);
	AM_Init();
	AM_AllocateBundle(AM_SEQ, &p.eb[0]);
	pair_endpoint(&p, 0);
	AM_SetTag(p.ep[0], PAIR_TAG);
	handlers_set(p.ep[0]);
	p.name[1] = replier_meet(&r[0], p.name[0], none);
	AM_Map(p.ep[0], 0, p.name[1], PAIR_TAG);
	AM_SetExpectedResources(p.ep[0], 1, 16);
	send_some(&p, 0, 2000);
	cr_assert_gt(p.ep[0]->outstanding, 0);
	kill(r[0].pid, SIGKILL);
	cr_assert_eq(waitpid(r[0].pid, &status, 0), r[0].pid);
	cr_assert(WIFSIGNALED(status));
	replier_meet(&r[1], p.name[0], p.name[1]);
	send_some(&p, 2000, MESSAGES);
	while (p.ep[0]->outstanding)
		AM_Poll(p.eb[0]);
	close(r[1].fd);
	cr_assert_eq(waitpid(r[1].pid, &status, 0), r[1].pid);
	cr_assert_eq(status, 0);
	cr_assert_eq(returned, 0);
	cr_assert_eq(of(answered, 1), MESSAGES);
	for (i = 0; i < 2; i++)
		cr_assert_eq(of(r[i].ran, 0) + of(r[i].ran, 1), MESSAGES, "twice in one life");
	cr_assert_geq(of(r[1].ran, 1), MESSAGES - 2000);
}
