/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What processes of one host tell each other of their listeners.
 */
#include "preload/rules/host.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "preload/table/internal.h"

struct address {
	struct sockaddr_storage at;
	socklen_t len;
};

static struct address address(const char *text, in_port_t port)
{
	struct address a = { .len = sizeof(struct sockaddr_in) };
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&a.at;
	struct sockaddr_in *four = (struct sockaddr_in *)&a.at;

	four->sin_port = port;
	four->sin_family = AF_INET;
	if (inet_pton(AF_INET, text, &four->sin_addr) == 1)
		return a;
	six->sin6_family = AF_INET6;
	a.len = sizeof(*six);
	cr_assert_eq(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
	return a;
}

/* A port that is the test's own while its process lives */
static in_port_t own_port(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	getsockname(fd, (struct sockaddr *)&sin, &len);
	return sin.sin_port;
}

static int announce(const char *text, in_port_t port)
{
	struct address a = address(text, port);

	return host_announce((struct sockaddr *)&a.at, a.len, true);
}

static bool listens(const char *text, in_port_t port)
{
	struct address a = address(text, port);

	return host_listens((struct sockaddr *)&a.at, a.len);
}

Test(host, who_would_reach_whom)
{
	static const struct {
		const char *listener, *peer;
		bool reached;
	} cases[] = {
		{ "127.0.0.1", "127.0.0.1", true },
		{ "127.0.0.1", "127.0.0.2", false },
		{ "0.0.0.0", "127.0.0.1", true },
		{ "0.0.0.0", "127.1.2.3", true },
		{ "::", "127.0.0.1", true },
		{ "::", "::1", true },
		{ "::1", "::1", true },
		{ "::1", "127.0.0.1", false },
		{ "0.0.0.0", "::ffff:127.0.0.1", true },
		{ "::ffff:127.0.0.1", "127.0.0.1", true },
		{ "0.0.0.0", "192.0.2.1", false },
		{ "192.0.2.1", "192.0.2.1", false },
		{ "::", "2001:db8::1", false },
	};

	for (size_t i = 0; i < base_array_size(cases); i++) {
		in_port_t port = own_port();
		int fd;

		cr_expect_not(listens(cases[i].peer, port), "%s before", cases[i].peer);
		fd = announce(cases[i].listener, port);
		cr_assert_geq(fd, 0);
		cr_expect(internal_is(fd));
		cr_expect_eq(listens(cases[i].peer, port), cases[i].reached, "%s to %s",
			     cases[i].peer, cases[i].listener);
		cr_expect_not(listens(cases[i].peer, (in_port_t)(port ^ htons(1))));
		internal_close(fd);
		cr_expect_not(listens(cases[i].peer, port), "%s behind", cases[i].peer);
	}
}

Test(host, what_a_connection_reaches)
{
	static const struct {
		const char *to, *reaches;
	} cases[] = {
		{ "10.1.2.3", "10.1.2.3" },	   { "2001:db8::1", "2001:db8::1" },
		{ "0.0.0.0", "127.0.0.1" },	   { "::", "::1" },
		{ "::ffff:10.1.2.3", "10.1.2.3" }, { "::ffff:0.0.0.0", "127.0.0.1" },
	};

	for (size_t i = 0; i < base_array_size(cases); i++) {
		struct address a = address(cases[i].to, htons(80));
		struct address want = address(cases[i].reaches, htons(80));
		struct sockaddr_storage got;

		cr_expect_eq(host_reach((struct sockaddr *)&a.at, a.len, &got), want.len, "%s",
			     cases[i].to);
		cr_expect_eq(memcmp(&got, &want.at, want.len), 0, "%s", cases[i].to);
	}
}

Test(host, addresses_of_this_host)
{
	static const struct {
		const char *text;
		bool local;
	} cases[] = {
		{ "127.0.0.1", true },	       { "127.9.9.9", true },  { "::1", true },
		{ "::ffff:127.0.0.1", true },  { "192.0.2.1", false }, { "2001:db8::1", false },
		{ "::ffff:192.0.2.1", false },
	};

	for (size_t i = 0; i < base_array_size(cases); i++) {
		struct address a = address(cases[i].text, htons(80));

		cr_expect_eq(host_is_local((struct sockaddr *)&a.at, a.len), cases[i].local, "%s",
			     cases[i].text);
	}
}

/* Each that goes leaves the others known */
Test(host, several_at_one_port)
{
	in_port_t port = own_port();
	int fd[4];

	for (int i = 0; i < 4; i++)
		cr_assert_geq(fd[i] = announce("0.0.0.0", port), 0);
	cr_expect_lt(announce("0.0.0.0", port), 0);
	for (int i = 0; i < 4; i++) {
		cr_expect(listens("127.0.0.1", port));
		internal_close(fd[i]);
	}
	cr_expect_not(listens("127.0.0.1", port));
}

/* A process that dies takes it along, in whatever way it dies */
Test(host, nothing_is_left_behind)
{
	in_port_t port = own_port();
	int ready[2], status;
	char c;
	pid_t pid;

	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		announce("127.0.0.1", port);
		(void)!write(ready[1], "", 1);
		pause();
	}
	cr_assert_eq(read(ready[0], &c, 1), 1);
	cr_expect(listens("127.0.0.1", port));
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_not(listens("127.0.0.1", port));
}

/* --- what other hosts are told --- */

static bool tells(const char *text, in_port_t port, bool any)
{
	struct address a = address(text, port);

	return host_tells((struct sockaddr *)&a.at, a.len, any);
}

static int announce_untold(const char *text, in_port_t port)
{
	struct address a = address(text, port);

	return host_announce((struct sockaddr *)&a.at, a.len, false);
}

Test(host, who_asks_is_told_of_the_very_address)
{
	in_port_t port = own_port();
	int fd = announce("10.1.2.3", port), any;

	cr_expect(tells("10.1.2.3", port, false));
	cr_expect(tells("::ffff:10.1.2.3", port, false));
	cr_expect_not(tells("10.1.2.3", port, true));
	cr_expect_not(tells("10.1.2.4", port, false));
	cr_expect_not(tells("10.1.2.3", htons((uint16_t)(ntohs(port) ^ 1)), false));
	any = announce("0.0.0.0", port);
	cr_expect(tells("10.1.2.4", port, true));
	cr_expect_not(tells("10.1.2.4", port, false));
	internal_close(fd);
	cr_expect_not(tells("10.1.2.3", port, false));
	internal_close(any);
	cr_expect_not(tells("10.1.2.3", port, true));
}

Test(host, some_listeners_are_this_host_s_alone)
{
	in_port_t port = own_port();
	int fd = announce_untold("127.0.0.1", port), told;

	cr_expect(listens("127.0.0.1", port));
	cr_expect_not(tells("127.0.0.1", port, false));
	told = announce("127.0.0.1", port);
	cr_expect(tells("127.0.0.1", port, false));
	internal_close(told);
	cr_expect_not(tells("127.0.0.1", port, false));
	cr_expect(listens("127.0.0.1", port));
	internal_close(fd);
	cr_expect_not(listens("127.0.0.1", port));
}
