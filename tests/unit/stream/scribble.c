/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that writes rubbish into the memory of a connection: that may break, and what it
 * carries may be rubbish; but no process that has it crashes or hangs, and the other connections
 * go on. Rounds are made from a seed, which a failure prints.
 *
 *	parent --fork--> victim: [scribbled pair] and [sound pair], both ends of each
 *	                   +--fork--> scribbler, which shares the victim's mappings
 */
#include "tests/unit/stream/folder.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "soft/soft_core.h"

TestSuite(scribble, .init = place_begin, .fini = place_end, .timeout = 900);

#define STEPS 60
/* A lock that names a living process costs patience, each time */
#define LIMIT 300

static uint64_t state;

static uint32_t next(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33);
}

static uint32_t below(uint32_t n)
{
	return next() % n;
}

/* --- rubbish --- */

/* The state itself: the rest of the memory is bytes, or what other connections share */
static size_t anywhere(size_t len)
{
	return below((uint32_t)(sizeof(struct stream_state) - len));
}

static uint64_t word(void)
{
	static const uint64_t telling[] = {
		0,	    1,		 2,	 0x20,	    0x21,	0x7f,
		0x80,	    0xff,	 0xffff, 0x10000,   0x7fffffff, 0x80000000,
		0xffffffff, 0x100000000, ~0ull,	 ~0ull - 1, 1ull << 63,
	};

	return below(3) ? telling[below(base_array_size(telling))]
			: (uint64_t)next() << 32 | next();
}

static void fill(uint8_t *p, size_t len, unsigned int how)
{
	for (size_t i = 0; i < len; i++)
		p[i] = how == 0 ? 0 : how == 1 ? 0xff : (uint8_t)next();
}

/* What counts, indexes, bounds or divides: most of the state is looked at for its value alone */
#define RANGE(from, to)                                                                         \
	{                                                                                       \
		offsetof(struct stream_state, from),                                            \
			offsetof(struct stream_state, to) - offsetof(struct stream_state, from) \
	}
/* The software provider's */
#define CORE (offsetof(struct stream_state, rnic) + 24)
#define CORE_RANGE(from, to)                                                              \
	{                                                                                 \
		CORE + offsetof(struct soft_core, from),                                  \
			offsetof(struct soft_core, to) - offsetof(struct soft_core, from) \
	}

static const struct range {
	size_t at, len;
} ranges[] = {
	RANGE(rx_lock, holders),
	RANGE(stage, in_edge),
	RANGE(peer, tx),
	RANGE(urgent, tx),
	RANGE(tx, rx),
	RANGE(rx.placed, rx.entry),
	RANGE(rx.message_first, rx.msg_len),
	RANGE(rx.chunks_free, rx.chunk_of[4]),
	RANGE(rx.free_chunk[STREAM_CHUNKS - 5], holder),
	CORE_RANGE(rdmap.ddp.mpa.ird, rdmap.ddp.mpa.fault),
	CORE_RANGE(rdmap.ddp.tx_msn, rdmap.term),
	CORE_RANGE(in_off, rx_end),
	{ CORE - 20, 20 },
};

static size_t somewhere(size_t len)
{
	const struct range *r = &ranges[below(base_array_size(ranges))];

	return below(3) ? r->at + below((uint32_t)r->len) : anywhere(len);
}

static void scribble_word(uint8_t *p, size_t len)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	w = below(3) ? word() : w + below(9) - 4;
	memcpy(p, &w, len);
}

/* How much of it at once: all, some octets, a word */
static void scribble_once(struct stream *s)
{
	uint8_t *p = (uint8_t *)s->state;
	uint32_t size = below(60);
	size_t n;

	if (size == 0) {
		fill(p, sizeof(struct stream_state), below(3));
	} else if (size == 1) {
		n = 1 + below(200);
		fill(p + anywhere(n), n, below(3));
	} else {
		n = 1u << below(4);
		scribble_word(p + (somewhere(8) & ~(n - 1)), n);
	}
}

/* --- what a program may do --- */

static uint8_t octets[70000];

/* What a call may say: so many octets at most, or an errno */
static void expect(ssize_t n, size_t most, const char *call)
{
	if (n >= 0 ? (size_t)n <= most : n >= -4095)
		return;
	printf("%s: %zd\n", call, n);
	fflush(stdout);
	abort();
}

static void do_send(struct stream *s)
{
	struct iovec iov = { octets, 1 + below(below(4) ? 3000 : sizeof(octets)) };

	expect(stream_send(s, &iov, 1), iov.iov_len, "send");
}

static void do_recv(struct stream *s)
{
	struct iovec iov = { octets, 1 + below(below(4) ? 3000 : sizeof(octets)) };

	int flags = (below(4) ? 0 : MSG_PEEK) | (below(2) ? 0 : STREAM_STOP);

	expect(stream_recv(s, &iov, 1, flags), iov.iov_len, "recv");
}

static void do_urgent(struct stream *s)
{
	struct iovec iov = { octets, 1 + below(below(4) ? 3 : sizeof(octets)) };
	uint8_t octet;

	expect(stream_urgent_send(s, &iov, 1), iov.iov_len, "urgent_send");
	expect(stream_urgent_recv(s, &octet, below(2) ? 0 : MSG_PEEK), 1, "urgent_recv");
	stream_set_inline(s, below(2));
}

static void do_messages(struct stream *s)
{
	struct iovec iov = { octets, 1 + below(3000) };
	size_t len;

	if (below(2))
		expect(stream_message_send(s, octets, iov.iov_len), 0, "message_send");
	else
		expect(stream_message_recv(s, &iov, 1, 0, &len), iov.iov_len, "message_recv");
}

static void do_jobs(struct stream *s)
{
	struct stream_job job = { .kind = below(4), .addr = octets, .len = 8, .stag = next() };
	struct stream_completion done;

	expect(stream_post(s, &job), 0, "post");
	expect(stream_complete(s, &done), 0, "complete");
}

static void do_look(struct stream *s)
{
	struct stream_edges edges;
	struct stream_stats stats;
	struct stream_info info;

	stream_levels(s, &edges);
	stream_stats(s, &stats);
	expect(stats.probe_error, STREAM_ERROR_MAX, "stats");
	stream_info(s, &info);
	expect(stream_wait_events(s, STREAM_READABLE), POLLIN | POLLOUT, "wait_events");
	expect((ssize_t)stream_readable(s), s->ring, "readable");
	expect((ssize_t)stream_lowat(s), s->ring, "lowat");
	expect(stream_take_error(s), 4095, "take_error");
	stream_owes(s);
	stream_serves(s);
	stream_shared(s);
}

static void do_progress(struct stream *s)
{
	expect(stream_progress(s), 0, "progress");
}

static void do_shutdown(struct stream *s)
{
	if (!below(8))
		expect(stream_shutdown(s, (int)below(3)), 0, "shutdown");
}

static void step(struct stream *s)
{
	static void (*const calls[])(struct stream *) = {
		do_send,     do_send, do_send, do_recv,	    do_recv,	 do_recv,   do_look,
		do_messages, do_jobs, do_look, do_progress, do_shutdown, do_urgent,
	};

	calls[below(base_array_size(calls))](s);
}

static bool pair_open(struct stream *s[2])
{
	int fd[2];

	ends_tcp(fd);
	s[0] = ends_attach(fd[0], true);
	s[1] = ends_attach(fd[1], false);
	for (int i = 0; i < 1000; i++)
		if (!(stream_progress(s[0]) | stream_progress(s[1])))
			return true;
	return false;
}

static void pair_close(struct stream *s[2])
{
	bool safe;

	for (int i = 0; i < 2; i++)
		stream_close(s[i]);
	for (int i = 0; i < 20; i++)
		for (int j = 0; j < 2; j++)
			stream_close_more(s[j], &safe);
	ends_destroy(s);
}

/* --- by one process, between its calls: the same rubbish each time --- */

static void pair_begin(struct stream *s[2])
{
	int fd[2];

	if (below(5)) {
		pair_open(s);
		return;
	}
	ends_tcp(fd);
	s[0] = ends_attach(fd[0], true);
	s[1] = ends_attach(fd[1], false);
	stream_progress(s[below(2)]);
}

static void round_alone(void)
{
	struct stream *s[2];

	pair_begin(s);
	for (int i = 0; i < STEPS; i++) {
		if (!below(20))
			scribble_once(s[below(2)]);
		step(s[below(2)]);
	}
	pair_close(s);
}

/* A child that is to live: its seed is what it runs by */
static pid_t victim(void (*run)(void), uint64_t seed)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	base_log_level = BASE_LOG_OFF;
	alarm(LIMIT);
	state = seed;
	run();
	_exit(0);
}

/* Thousands of rounds where there is time */
static void expect_survival(void (*run)(void), uint64_t seeds)
{
	const char *more = getenv("WARPSOCK_LONG");

	seeds *= more && *more ? 10 : 1;
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		int end = place_wait(victim(run, seed));

		cr_expect_eq(end, 0, "seed %lu ended by %d", seed, end);
	}
}

static void rounds_alone(void)
{
	for (int i = 0; i < 400; i++)
		round_alone();
}

Test(scribble, between_calls)
{
	expect_survival(rounds_alone, 6);
}

/* --- before a process that knows nothing of it takes it over, as a program that is executed --- */

enum { REFUSED, TAKEN_OVER };

/* What it finds it believes, or says that it does not */
static int take_over(int fd)
{
	int err;
	struct stream *s = place_adopt(fd, &err);

	if (!s) {
		expect(err, 0, "adopt");
		return REFUSED;
	}
	for (int i = 0; i < STEPS; i++) {
		if (!below(40))
			scribble_once(s);
		step(s);
	}
	stream_close(s);
	for (int i = 0; i < 20; i++)
		stream_close_more(s, &(bool){ false });
	stream_destroy(s);
	return TAKEN_OVER;
}

static int taken_over(struct stream *s)
{
	uint64_t seed = next();
	pid_t pid;
	int end;

	stream_share(s, STREAM_SHARE_SPAWN);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(LIMIT);
		state = seed;
		_exit(take_over(s->fd));
	}
	stream_named(s, (uint32_t)pid);
	end = place_wait(pid);
	expect(end < 0 ? -5000 : end, TAKEN_OVER, "taken over");
	return end;
}

/* Where an address that was scribbled on leads nowhere: a network of lo alone */
static bool is_confined(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd, err = unshare(CLONE_NEWNET);

	if (err)
		return false;
	fd = socket(AF_INET, SOCK_STREAM, 0);
	expect(ioctl(fd, SIOCSIFFLAGS, &lo), 0, "SIOCSIFFLAGS");
	close(fd);
	return true;
}

/* The client's would connect again, where that is harmless */
static int round_over(bool probes)
{
	struct sockaddr_storage peer = { .ss_family = AF_INET };
	struct stream *s[2];
	int end;

	ends_param.opts.ring = STREAM_RING_MIN;
	ends_param.probe = probes;
	ends_param.peer = probes ? &peer : NULL;
	ends_param.peer_len = sizeof(struct sockaddr_in);
	pair_begin(s);
	for (int i = 0; i < STEPS / 3; i++)
		step(s[below(2)]);
	if (below(3))
		for (uint32_t i = 1 + below(3); i; i--)
			scribble_once(s[0]);
	else
		scribble_word((uint8_t *)&s[0]->state->made.flags + 4 * below(8), 4);
	/* One with jobs is its process's for good */
	s[0]->state->owner = 0;
	if (probes && !below(4))
		s[0]->state->stage = STREAM_AGAIN;
	end = taken_over(s[0]);
	for (int i = 0; i < STEPS / 3; i++)
		step(s[below(2)]);
	pair_close(s);
	return end;
}

#define ROUNDS_OVER 80

static void rounds_over(void)
{
	bool confined = is_confined();
	int taken = 0;

	for (int i = 0; i < ROUNDS_OVER; i++)
		taken += round_over(confined && below(2)) == TAKEN_OVER;
	/* Else it says little */
	if (taken <= ROUNDS_OVER / 2)
		_exit(3);
}

Test(scribble, before_it_is_taken_over)
{
	expect_survival(rounds_over, 6);
}

/* --- by another process, at any moment --- */

static void scribble_on(struct stream *s[2], uint64_t seed)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	state = seed;
	for (;;) {
		scribble_once(s[below(2)]);
		for (uint32_t i = below(2000); i; i--)
			__asm__ volatile("" ::: "memory");
	}
}

/* Octets of the pair that nobody scribbles on: some each time, and all of them right */
static void go_on(struct stream *sound[2], uint64_t *at)
{
	size_t n = 1 + below(2000);

	place_send(sound[0], *at, n);
	place_recv(sound[1], *at, n);
	*at += n;
}

static void round_beside(struct stream *sound[2], uint64_t *at)
{
	struct stream *s[2];
	pid_t pid;

	pair_open(s);
	pid = fork();
	if (!pid)
		scribble_on(s, next());
	for (int i = 0; i < 4 * STEPS; i++)
		step(s[below(2)]);
	go_on(sound, at);
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) != pid)
		;
	pair_close(s);
}

static void rounds_beside(void)
{
	struct stream *sound[2];
	uint64_t at = 0;

	ends_open(sound);
	for (int i = 0; i < 25; i++)
		round_beside(sound, &at);
	ends_destroy(sound);
}

Test(scribble, at_any_moment)
{
	expect_survival(rounds_beside, 4);
}

/* --- what is judged before it is used --- */

Test(scribble, numbers_that_do_not_agree)
{
	struct iovec iov = { octets, sizeof(octets) };
	struct stream *s[2];

	for (int i = 0; i < 2; i++) {
		struct stream_rx *rx;

		ends_open(s);
		rx = &s[1]->state->rx;
		if (i)
			rx->delivered = rx->placed + 1;
		else
			rx->placed = rx->consumed + s[1]->ring + 1;
		cr_expect_eq(stream_recv(s[1], &iov, 1, 0), -ECONNRESET);
		cr_expect_eq(stream_recv(s[1], &iov, 1, 0), 0);
		ends_destroy(s);
	}
}
