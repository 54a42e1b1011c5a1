/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which listener the kernel would give a connection to.
 */
#include "preload/rules/listening.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

struct place {
	struct sockaddr_storage at;
	socklen_t len;
};

static struct place place(const char *text, in_port_t port)
{
	struct place p = { .len = sizeof(struct sockaddr_in) };
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&p.at;
	struct sockaddr_in *four = (struct sockaddr_in *)&p.at;

	four->sin_port = port;
	four->sin_family = AF_INET;
	if (inet_pton(AF_INET, text, &four->sin_addr) == 1)
		return p;
	six->sin6_family = AF_INET6;
	p.len = sizeof(*six);
	cr_assert_eq(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
	return p;
}

/* At port 0 the kernel chooses one, and *@port is that */
static int bound(const char *text, in_port_t *port, bool only_six)
{
	struct place p = place(text, *port);
	int fd = socket(p.at.ss_family, SOCK_STREAM, 0), on = 1, only = only_six;

	if (fd < 0 && errno == EAFNOSUPPORT)
		cr_skip_test("this machine has no IPv6");
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (p.at.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
	if (bind(fd, (struct sockaddr *)&p.at, p.len) && errno == EADDRNOTAVAIL)
		cr_skip_test("this machine has no IPv6");
	getsockname(fd, (struct sockaddr *)&p.at, &p.len);
	*port = ((struct sockaddr_in *)&p.at)->sin_port;
	return fd;
}

static int listener(const char *text, in_port_t *port, bool only_six)
{
	int fd = bound(text, port, only_six);

	cr_assert_eq(listen(fd, 1), 0);
	return fd;
}

static enum listening at(const char *text, in_port_t port)
{
	struct place p = place(text, port);

	return listening_at((struct sockaddr *)&p.at, p.len, 1);
}

Test(listening, an_address)
{
	in_port_t port = 0;
	int fd = bound("127.0.0.2", &port, false);

	cr_expect_eq(at("127.0.0.2", port), LISTENING_NOT, "it is bound, and does not listen");
	listen(fd, 1);
	cr_expect_eq(at("127.0.0.2", port), LISTENING_EXACT);
	cr_expect_eq(at("::ffff:127.0.0.2", port), LISTENING_EXACT);
	cr_expect_eq(at("127.0.0.3", port), LISTENING_NOT);
	cr_expect_eq(at("::1", port), LISTENING_NOT);
	cr_expect_eq(at("127.0.0.2", htons((uint16_t)(ntohs(port) ^ 1))), LISTENING_NOT);
	close(fd);
	cr_expect_eq(at("127.0.0.2", port), LISTENING_NOT);
}

Test(listening, all_addresses)
{
	in_port_t port = 0;
	int fd = listener("0.0.0.0", &port, false);

	cr_expect_eq(at("127.0.0.2", port), LISTENING_ANY);
	cr_expect_eq(at("10.1.2.3", port), LISTENING_ANY);
	cr_expect_eq(at("fd00::1", port), LISTENING_NOT, "of one family");
	close(fd);
	cr_expect_eq(at("127.0.0.2", port), LISTENING_NOT);
}

/* A port that is free at @text and at all addresses: connections of other programs take some */
static in_port_t both_bound(const char *text, int *one, int *all)
{
	in_port_t port = 0, same = 1;

	for (int tries = 0; same != port && tries < 100; tries++) {
		if (tries) {
			close(*one);
			close(*all);
		}
		port = 0;
		*one = bound(text, &port, false);
		same = port;
		*all = bound("0.0.0.0", &same, false);
	}
	cr_assert_eq(same, port, "no port is free at both");
	return port;
}

Test(listening, the_very_address_goes_first)
{
	int one, all;
	in_port_t port = both_bound("127.0.0.2", &one, &all);

	listen(one, 1);
	listen(all, 1);
	cr_expect_eq(at("127.0.0.2", port), LISTENING_EXACT);
	cr_expect_eq(at("127.0.0.3", port), LISTENING_ANY);
	close(one);
	close(all);
}

Test(listening, all_addresses_of_both_families)
{
	in_port_t port = 0;
	int fd = listener("::", &port, false);

	cr_expect_eq(at("127.0.0.2", port), LISTENING_ANY);
	cr_expect_eq(at("fd00::1", port), LISTENING_ANY);
	close(fd);
	port = 0;
	fd = listener("::", &port, true);
	cr_expect_eq(at("127.0.0.2", port), LISTENING_NOT, "for IPv6 alone");
	cr_expect_eq(at("fd00::1", port), LISTENING_ANY);
	close(fd);
	port = 0;
	fd = listener("::ffff:127.0.0.2", &port, false);
	cr_expect_eq(at("127.0.0.2", port), LISTENING_EXACT);
	close(fd);
}
