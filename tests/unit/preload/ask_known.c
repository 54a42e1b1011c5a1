/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What came of questions to peers' hosts: kept so long and no longer, by address and port, or by
 * host.
 */
#include "preload/rules/ask_known.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"

#define AT(s) (1000 * BASE_NS_PER_S + (s)*BASE_NS_PER_S)
#define MINUTE (60 * BASE_NS_PER_S)

struct address {
	struct sockaddr_in6 six;
};

/* As who asks has it: an address of IPv4 is mapped */
static struct address address(const char *text, uint16_t port)
{
	struct address a = { { .sin6_family = AF_INET6, .sin6_port = htons(port) } };

	cr_assert_eq(inet_pton(AF_INET6, text, &a.six.sin6_addr), 1);
	return a;
}

#define PEER(text, port) \
	(struct sockaddr *)&(struct address[]){ address(text, port) }[0], sizeof(struct address)

TestSuite(ask_known, .init = ask_known_init);

Test(ask_known, answers_of_one_port)
{
	ask_known_answer(PEER("::ffff:10.0.0.1", 80), true, MINUTE, AT(0));
	ask_known_answer(PEER("::ffff:10.0.0.1", 81), false, 30 * BASE_NS_PER_S, AT(0));
	cr_expect_eq(ask_known(PEER("::ffff:10.0.0.1", 80), AT(0)), ASK_KNOWN_YES);
	cr_expect_eq(ask_known(PEER("::ffff:10.0.0.1", 80), AT(59)), ASK_KNOWN_YES);
	cr_expect_eq(ask_known(PEER("::ffff:10.0.0.1", 80), AT(60)), ASK_KNOWN_NOTHING);
	cr_expect_eq(ask_known(PEER("::ffff:10.0.0.1", 81), AT(29)), ASK_KNOWN_NO);
	cr_expect_eq(ask_known(PEER("::ffff:10.0.0.1", 81), AT(30)), ASK_KNOWN_NOTHING);
	cr_expect_eq(ask_known(PEER("::ffff:10.0.0.1", 82), AT(0)), ASK_KNOWN_NOTHING);
	cr_expect_eq(ask_known(PEER("::ffff:10.0.0.2", 80), AT(0)), ASK_KNOWN_NOTHING);
	cr_expect_eq(ask_known(PEER("fd00::1", 80), AT(0)), ASK_KNOWN_NOTHING);
}

Test(ask_known, one_asks)
{
	cr_expect(ask_known_claim(PEER("fd00::1", 80), AT(0)));
	cr_expect_not(ask_known_claim(PEER("fd00::1", 80), AT(0)));
	cr_expect_not(ask_known_claim(PEER("fd00::1", 80), AT(1)));
	cr_expect_eq(ask_known(PEER("fd00::1", 80), AT(0)), ASK_KNOWN_ASKED);
	cr_expect(ask_known_claim(PEER("fd00::1", 81), AT(0)), "another port's");
	cr_expect(ask_known_claim(PEER("fd00::1", 80), AT(2)), "who has asked may have died");
	ask_known_answer(PEER("fd00::1", 80), false, MINUTE, AT(2));
	cr_expect_not(ask_known_claim(PEER("fd00::1", 80), AT(3)));
}

/* Seconds for which a host is left alone from @at on */
static unsigned int silence(uint64_t at)
{
	unsigned int s = 0;

	while (ask_known(PEER("fd00::1", 80), at + s * BASE_NS_PER_S) == ASK_KNOWN_SILENT)
		s++;
	return s;
}

Test(ask_known, silence_is_a_host_s_and_doubles)
{
	static const unsigned int wanted[] = { 10, 20, 40, 80, 160, 300, 300 };
	uint64_t at = AT(0);

	for (size_t i = 0; i < base_array_size(wanted); i++) {
		ask_known_silent(PEER("fd00::1", (uint16_t)(100 + i)), at);
		/* Another question that was out */
		ask_known_silent(PEER("fd00::1", 7), at + BASE_NS_PER_S);
		cr_expect_eq(silence(at), wanted[i], "time %zu: %u s", i, silence(at));
		at += (wanted[i] + 5) * BASE_NS_PER_S;
	}
	cr_expect_eq(ask_known(PEER("fd00::2", 80), AT(0)), ASK_KNOWN_NOTHING);
}

Test(ask_known, silence_is_forgotten)
{
	ask_known_silent(PEER("fd00::1", 80), AT(0));
	ask_known_silent(PEER("fd00::1", 80), AT(10));
	cr_expect_eq(silence(AT(10)), 20);
	/* It was long ago */
	ask_known_silent(PEER("fd00::1", 80), AT(30 + 600));
	cr_expect_eq(silence(AT(630)), 10);
	/* It has answered since, late, and for another port */
	ask_known_silent(PEER("fd00::1", 80), AT(700));
	ask_known_answer(PEER("fd00::1", 81), false, MINUTE, AT(701));
	cr_expect_eq(silence(AT(701)), 0);
	ask_known_silent(PEER("fd00::1", 80), AT(710));
	cr_expect_eq(silence(AT(710)), 10);
}

Test(ask_known, a_late_yes_counts)
{
	ask_known_claim(PEER("fd00::1", 80), AT(0));
	ask_known_silent(PEER("fd00::1", 80), AT(0));
	cr_expect_eq(ask_known(PEER("fd00::1", 80), AT(0)), ASK_KNOWN_SILENT);
	ask_known_answer(PEER("fd00::1", 80), true, MINUTE, AT(1));
	cr_expect_eq(ask_known(PEER("fd00::1", 80), AT(1)), ASK_KNOWN_YES);
	cr_expect_eq(ask_known(PEER("fd00::1", 81), AT(1)), ASK_KNOWN_NOTHING);
}

Test(ask_known, far)
{
	ask_known_far(PEER("::ffff:198.51.100.1", 80), AT(0));
	cr_expect_eq(ask_known(PEER("::ffff:198.51.100.1", 90), AT(59)), ASK_KNOWN_FAR);
	cr_expect_eq(ask_known(PEER("::ffff:198.51.100.1", 90), AT(60)), ASK_KNOWN_NOTHING);
	cr_expect_eq(silence(AT(0)), 0);
}

Test(ask_known, children_know_what_one_of_them_found_out)
{
	pid_t pid = fork();

	if (!pid) {
		ask_known_answer(PEER("fd00::1", 80), true, MINUTE, AT(0));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	cr_expect_eq(ask_known(PEER("fd00::1", 80), AT(0)), ASK_KNOWN_YES);
}

/* The latest of very many is known, and none is taken for another */
Test(ask_known, more_than_there_is_room_for)
{
	for (uint16_t port = 1; port < 20000; port++) {
		ask_known_answer(PEER("fd00::1", port), port % 2, MINUTE, AT(port / 1000u));
		cr_assert_eq(ask_known(PEER("fd00::1", port), AT(port / 1000u)),
			     port % 2 ? ASK_KNOWN_YES : ASK_KNOWN_NO);
	}
}

static int claims; /* atomic */

static void *claim(void *arg)
{
	if (ask_known_claim(PEER("fd00::9", 80), AT(0)))
		__atomic_add_fetch(&claims, 1, __ATOMIC_RELAXED);
	return arg;
}

Test(ask_known, one_of_many_threads_asks)
{
	pthread_t threads[16];

	for (size_t i = 0; i < base_array_size(threads); i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, claim, NULL), 0);
	for (size_t i = 0; i < base_array_size(threads); i++)
		pthread_join(threads[i], NULL);
	cr_expect_eq(claims, 1);
}

Test(ask_known, no_address_of_IP)
{
	struct sockaddr_storage un = { .ss_family = AF_UNIX };
	struct sockaddr *addr = (struct sockaddr *)&un;

	cr_expect_not(ask_known_claim(addr, sizeof(un), AT(0)));
	ask_known_answer(addr, sizeof(un), true, MINUTE, AT(0));
	ask_known_silent(addr, sizeof(un), AT(0));
	cr_expect_eq(ask_known(addr, sizeof(un), AT(0)), ASK_KNOWN_NOTHING);
}
