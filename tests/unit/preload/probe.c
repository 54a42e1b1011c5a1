/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a process knows of peers: kept so long and no longer, by address and port.
 */
#include "preload/rules/probe.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "preload/rules/grace.h"

#define AT(s) (1000 * BASE_NS_PER_S + (s)*BASE_NS_PER_S)

union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

static socklen_t address(union address *a, const char *text, uint16_t port)
{
	*a = (union address){ .four = { .sin_port = htons(port) } };
	if (inet_pton(AF_INET, text, &a->four.sin_addr) == 1) {
		a->any.sa_family = AF_INET;
		return sizeof(a->four);
	}
	cr_assert_eq(inet_pton(AF_INET6, text, &a->six.sin6_addr), 1);
	a->any.sa_family = AF_INET6;
	return sizeof(a->six);
}

#define MINUTE (60 * BASE_NS_PER_S)
#define HOUR (60 * MINUTE)

static void note(const char *text, uint16_t port, enum probe_answer answer, uint64_t now)
{
	union address a;
	socklen_t len = address(&a, text, port);

	probe_note(&a.any, len, answer, answer == PROBE_DDP ? HOUR : MINUTE, now);
}

static enum probe_answer known(const char *text, uint16_t port, uint64_t now)
{
	union address a;
	socklen_t len = address(&a, text, port);

	return probe_known(&a.any, len, now);
}

Test(probe, kept_so_long)
{
	static const struct {
		enum probe_answer answer;
		uint64_t after;
		enum probe_answer then;
	} cases[] = {
		{ PROBE_PLAIN, 0, PROBE_PLAIN },     { PROBE_PLAIN, 59, PROBE_PLAIN },
		{ PROBE_PLAIN, 60, PROBE_UNKNOWN },  { PROBE_PLAIN, 4000, PROBE_UNKNOWN },
		{ PROBE_DDP, 0, PROBE_DDP },	     { PROBE_DDP, 3599, PROBE_DDP },
		{ PROBE_DDP, 3600, PROBE_UNKNOWN },  { PROBE_DDP, 100000, PROBE_UNKNOWN },
		{ PROBE_UNKNOWN, 0, PROBE_UNKNOWN },
	};

	for (size_t i = 0; i < base_array_size(cases); i++) {
		uint16_t port = (uint16_t)(i + 1);

		note("10.0.0.1", port, cases[i].answer, AT(0));
		cr_expect_eq(known("10.0.0.1", port, AT(cases[i].after)), cases[i].then, "case %zu",
			     i);
	}
}

/* A server that speaks first: 5 ms, or two round trips where these are more, up to 50 ms */
Test(probe, how_long_a_request_is_waited_for)
{
	static const struct {
		uint64_t rtt, wanted;
	} cases[] = { { 0, 5000 }, { 2500, 5000 }, { 2501, 5002 }, { 90000, 50000 } };

	for (size_t i = 0; i < base_array_size(cases); i++)
		cr_expect_eq(grace_by(cases[i].rtt * BASE_NS_PER_US),
			     cases[i].wanted * BASE_NS_PER_US, "case %zu", i);
}

Test(probe, an_address_is_not_another)
{
	note("10.0.0.1", 80, PROBE_DDP, AT(0));
	note("fe80::1", 80, PROBE_PLAIN, AT(0));
	cr_expect_eq(known("10.0.0.1", 81, AT(1)), PROBE_UNKNOWN);
	cr_expect_eq(known("10.0.0.2", 80, AT(1)), PROBE_UNKNOWN);
	cr_expect_eq(known("fe80::1", 81, AT(1)), PROBE_UNKNOWN);
	cr_expect_eq(known("::10.0.0.1", 80, AT(1)), PROBE_UNKNOWN);
	cr_expect_eq(known("::ffff:10.0.0.1", 80, AT(1)), PROBE_DDP);
	cr_expect_eq(known("fe80::1", 80, AT(1)), PROBE_PLAIN);
}

Test(probe, the_last_answer_counts)
{
	note("::1", 7, PROBE_PLAIN, AT(0));
	note("::1", 7, PROBE_DDP, AT(1));
	cr_expect_eq(known("::1", 7, AT(2)), PROBE_DDP);
	note("::1", 7, PROBE_PLAIN, AT(3));
	cr_expect_eq(known("::1", 7, AT(4)), PROBE_PLAIN);
}

/* More peers than the cache has room for: it forgets, and never says something wrong */
Test(probe, many)
{
	unsigned int there = 0;

	for (unsigned int port = 1; port <= 20000; port++)
		note("192.168.7.9", (uint16_t)port, port % 2 ? PROBE_DDP : PROBE_PLAIN, AT(0));
	for (unsigned int port = 1; port <= 20000; port++) {
		enum probe_answer answer = known("192.168.7.9", (uint16_t)port, AT(1));

		if (answer == PROBE_UNKNOWN)
			continue;
		there++;
		cr_expect_eq(answer, port % 2 ? PROBE_DDP : PROBE_PLAIN, "port %u", port);
	}
	cr_expect(there > 500 && there <= 1024, "%u are there", there);
}

/* One asks, and the others know that; until it is known, or was due */
Test(probe, one_asks)
{
	union address a;
	socklen_t len = address(&a, "10.0.0.1", 11);

	cr_expect_eq(probe_flight(&a.any, len, 3 * BASE_NS_PER_S, AT(0)), PROBE_UNKNOWN);
	cr_expect_eq(probe_flight(&a.any, len, 3 * BASE_NS_PER_S, AT(0)), PROBE_ASKED);
	cr_expect_eq(probe_known(&a.any, len, AT(0)), PROBE_UNKNOWN);
	cr_expect_eq(probe_flight(&a.any, len, BASE_NS_PER_MS, AT(3)), PROBE_ASKED);
	cr_expect_eq(probe_flight(&a.any, len, BASE_NS_PER_MS, AT(5)), PROBE_UNKNOWN);
	cr_expect_eq(probe_flight(&a.any, len, BASE_NS_PER_MS, AT(6)), PROBE_ASKED);
	note("10.0.0.1", 11, PROBE_PLAIN, AT(6));
	cr_expect_eq(probe_flight(&a.any, len, BASE_NS_PER_MS, AT(6)), PROBE_PLAIN);
	note("10.0.0.1", 11, PROBE_DDP, AT(7));
	cr_expect_eq(probe_flight(&a.any, len, BASE_NS_PER_MS, AT(8)), PROBE_DDP);
	cr_expect_eq(probe_flight(&a.any, len - 1, BASE_NS_PER_MS, AT(8)), PROBE_UNKNOWN);
}

/* What a process knows, its children know; and the other way round */
Test(probe, of_all_that_are_forked)
{
	union address a;
	socklen_t len = address(&a, "10.0.0.1", 12);
	int status = 1;
	pid_t pid;

	probe_init();
	note("10.0.0.1", 13, PROBE_DDP, AT(0));
	pid = fork();
	if (!pid)
		_exit(known("10.0.0.1", 13, AT(0)) != PROBE_DDP ||
		      probe_flight(&a.any, len, BASE_NS_PER_MS, AT(0)) != PROBE_UNKNOWN);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	cr_expect_eq(probe_flight(&a.any, len, BASE_NS_PER_MS, AT(0)), PROBE_ASKED);
}

Test(probe, only_addresses_of_ip)
{
	struct sockaddr local = { .sa_family = AF_UNIX };
	union address a;
	socklen_t len = address(&a, "10.0.0.1", 9);

	probe_note(&local, sizeof(local), PROBE_DDP, HOUR, AT(0));
	cr_expect_eq(probe_known(&local, sizeof(local), AT(0)), PROBE_UNKNOWN);
	probe_note(&a.any, len - 1, PROBE_DDP, HOUR, AT(0));
	cr_expect_eq(probe_known(&a.any, len, AT(0)), PROBE_UNKNOWN);
}

Test(probe, a_day_at_most)
{
	union address a;
	socklen_t len = address(&a, "10.0.0.1", 10);

	probe_note(&a.any, len, PROBE_DDP, 30 * 24 * HOUR, AT(0));
	cr_expect_eq(probe_known(&a.any, len, AT(86399)), PROBE_DDP);
	cr_expect_eq(probe_known(&a.any, len, AT(86400)), PROBE_UNKNOWN);
}

Test(probe, an_asker_that_gives_up_leaves_its_turn)
{
	union address a;
	socklen_t len = address(&a, "192.0.2.78", 80);

	cr_expect_eq(probe_flight(&a.any, len, BASE_NS_PER_S, AT(1)), PROBE_UNKNOWN);
	cr_expect_eq(probe_flight(&a.any, len, BASE_NS_PER_S, AT(1)), PROBE_ASKED);
	probe_flight_end(&a.any, len, AT(1));
	cr_expect_eq(probe_flight(&a.any, len, BASE_NS_PER_S, AT(1)), PROBE_UNKNOWN);
	probe_note(&a.any, len, PROBE_PLAIN, 10 * BASE_NS_PER_S, AT(1));
	probe_flight_end(&a.any, len, AT(1));
	cr_expect_eq(probe_flight(&a.any, len, BASE_NS_PER_S, AT(1)), PROBE_PLAIN,
		     "an answer stays");
}

Test(probe, one_that_answered_before_is_doubted)
{
	union address a;
	socklen_t len = address(&a, "192.0.2.79", 80);

	probe_note(&a.any, len, PROBE_DDP, 10 * BASE_NS_PER_S, AT(1));
	probe_doubt(&a.any, len, AT(1));
	cr_expect_eq(probe_known(&a.any, len, AT(1)), PROBE_UNKNOWN);
	probe_note(&a.any, len, PROBE_PLAIN, 10 * BASE_NS_PER_S, AT(1));
	probe_doubt(&a.any, len, AT(1));
	cr_expect_eq(probe_known(&a.any, len, AT(1)), PROBE_PLAIN, "what others found stays");
}

enum { RIVALS = 2, PEERS = 30000 };

struct race {
	unsigned int come; /* atomic */
	int asking[PEERS]; /* atomic */
};

static void *asks_for_each(void *arg)
{
	struct race *race = arg;
	union address a;
	socklen_t len = address(&a, "192.0.2.77", 0);

	for (int i = 0; i < PEERS; i++) {
		a.four.sin_port = htons((uint16_t)(i + 1));
		__atomic_add_fetch(&race->come, 1, __ATOMIC_ACQ_REL);
		while (__atomic_load_n(&race->come, __ATOMIC_ACQUIRE) < (i + 1u) * RIVALS)
			sched_yield();
		if (probe_flight(&a.any, len, BASE_NS_PER_S, AT(i * 10)) == PROBE_UNKNOWN)
			__atomic_add_fetch(&race->asking[i], 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

Test(probe, one_of_several_threads_asks)
{
	static struct race race;
	pthread_t thread[RIVALS];

	for (int i = 0; i < RIVALS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, asks_for_each, &race), 0);
	for (int i = 0; i < RIVALS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < PEERS; i++)
		cr_expect_eq(race.asking[i], 1, "peer %d: %d ask", i, race.asking[i]);
}
