/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a port mapper may say, and what is made of it. Mappers are at loopback addresses.
 */
#include "llp/mapper.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <wire/portmap.h>

#include "base/address.h"
#include "base/bits.h"
#include "base/clock.h"

#define LIMIT (600 * BASE_NS_PER_MS)
#define ASKED 7600
#define MAPPED 40123

enum act {
	ACT_ACCEPT,
	ACT_REJECT,
	ACT_SILENCE,
	ACT_LATE,      /* the first Request is lost */
	ACT_STRANGER,  /* answers another Request, then this one */
	ACT_ELSEWHERE, /* its listener has another address */
	ACT_SHORT,     /* an octet is missing */
	ACT_NOWHERE,   /* port 0 */
	ACT_THERE,     /* the port that was asked for */
	ACT_SIGNAL,    /* comes before the answer */
};

static const struct row {
	const char *addr;
	enum act act;
	uint16_t port;
	unsigned int requests;
} rows[] = {
	{ "127.0.0.11", ACT_ACCEPT, MAPPED, 1 },   { "127.0.0.12", ACT_REJECT, 0, 1 },
	{ "127.0.0.13", ACT_SILENCE, 0, 3 },	   { "127.0.0.14", ACT_LATE, MAPPED, 2 },
	{ "127.0.0.15", ACT_STRANGER, MAPPED, 1 }, { "127.0.0.16", ACT_ELSEWHERE, 0, 3 },
	{ "127.0.0.17", ACT_SHORT, 0, 3 },	   { "127.0.0.18", ACT_NOWHERE, 0, 3 },
	{ "127.0.0.19", ACT_SIGNAL, MAPPED, 1 },
};

struct mapper {
	int fd;
	enum act act;
	struct sockaddr_in6 addr;
	unsigned int requests, acks;
	in_port_t port; /* of who asked last */
	uint8_t from[4];
	pthread_t thread, asker;
};

/* So many seconds later than it is: in place of base/clock.c */
static uint64_t later;

uint64_t base_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return ((uint64_t)now.tv_sec + later) * BASE_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* --- a mapper --- */

static void say(struct mapper *m, struct portmap_message in, const struct sockaddr_in6 *to)
{
	size_t len = PORTMAP_ANSWER_LEN - (m->act == ACT_SHORT);

	in.kind |= m->act == ACT_REJECT ? PORTMAP_REJECT : PORTMAP_ACCEPT;
	if (m->act != ACT_THERE)
		in.accept_port = htobe16(m->act == ACT_NOWHERE ? 0 : MAPPED);
	in.accept_addr[3] ^= m->act == ACT_ELSEWHERE;
	if (m->act == ACT_STRANGER) {
		struct portmap_message other = in;

		other.handle = ~in.handle;
		other.accept_port = htobe16(MAPPED + 1);
		sendto(m->fd, &other, len, 0, (const void *)to, base_address_len(to));
	}
	sendto(m->fd, &in, len, 0, (const void *)to, base_address_len(to));
}

static volatile sig_atomic_t signals;

static void signal_note(int number)
{
	(void)number;
	signals++;
}

static void interrupt(const struct mapper *m)
{
	const struct timespec time = { .tv_nsec = 20 * BASE_NS_PER_MS };

	nanosleep(&time, NULL);
	cr_expect_eq(pthread_kill(m->asker, SIGUSR1), 0);
	nanosleep(&time, NULL);
}

static void judge(const struct mapper *m, const struct portmap_message *in)
{
	bool four = base_address_is_four(&m->addr);
	const void *own = four ? (const void *)&((const struct sockaddr_in *)&m->addr)->sin_addr
			       : &m->addr.sin6_addr;

	cr_expect_eq(in->kind, PORTMAP_REQUEST | (four ? 4 : 6));
	cr_expect_eq(in->accept_port, htobe16(ASKED));
	cr_expect_arr_eq(in->accept_addr, own, four ? 4 : 16);
	cr_expect_arr_eq(in->connect_addr, in->mapped_addr, 16);
	cr_expect_neq(in->connect_addr[four ? 0 : 15], 0, "who asks says its address");
	cr_expect_neq(in->connect_port, 0, "and its port");
	cr_expect_eq(in->connect_port, in->mapped_port);
}

static void *attend(void *ctx)
{
	struct mapper *m = ctx;
	struct portmap_message in;
	struct sockaddr_in6 from;
	socklen_t len = sizeof(from);
	ssize_t n;

	while ((n = recvfrom(m->fd, &in, sizeof(in), 0, (void *)&from, &len)) > 1) {
		if (n == PORTMAP_ANSWER_LEN) {
			m->acks += (in.kind & 0xf0) == PORTMAP_ACK;
			continue;
		}
		cr_expect_eq(n, PORTMAP_REQUEST_LEN);
		judge(m, &in);
		if (m->act == ACT_SIGNAL)
			interrupt(m);
		if (m->act != ACT_SILENCE && (m->requests || m->act != ACT_LATE))
			say(m, in, &from);
		m->port = in.connect_port;
		memcpy(m->from, in.connect_addr, sizeof(m->from));
		m->requests++;
		len = sizeof(from);
	}
	return NULL;
}

static void address_make(struct sockaddr_in6 *out, const char *text, uint16_t port)
{
	memset(out, 0, sizeof(*out));
	out->sin6_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	if (base_address_is_four(out))
		cr_assert_eq(inet_pton(AF_INET, text, &((struct sockaddr_in *)out)->sin_addr), 1);
	else
		cr_assert_eq(inet_pton(AF_INET6, text, &out->sin6_addr), 1);
	base_address_set_port(out, htobe16(port));
}

static void mapper_begin(struct mapper *m, const char *addr, enum act act)
{
	*m = (struct mapper){ .act = act, .asker = pthread_self() };
	address_make(&m->addr, addr, PORTMAP_PORT);
	m->fd = socket(m->addr.sin6_family, SOCK_DGRAM, 0);
	cr_assert_eq(bind(m->fd, (void *)&m->addr, base_address_len(&m->addr)), 0, "%s", addr);
	cr_assert_eq(pthread_create(&m->thread, NULL, attend, m), 0);
}

/* A datagram of one octet ends it, behind all others */
static void mapper_end(struct mapper *m)
{
	int fd = socket(m->addr.sin6_family, SOCK_DGRAM, 0);

	cr_assert_eq(sendto(fd, "", 1, 0, (void *)&m->addr, base_address_len(&m->addr)), 1);
	pthread_join(m->thread, NULL);
	close(fd);
	close(m->fd);
}

static uint16_t port_at(const char *addr, uint64_t limit)
{
	struct sockaddr_in6 peer;
	bool moved;
	int fd;

	address_make(&peer, addr, ASKED);
	fd = socket(peer.sin6_family, SOCK_STREAM, 0);
	moved = llp_mapper_move(fd, &peer, base_address_len(&peer), limit);
	close(fd);
	cr_expect(moved || be16toh(base_address_port(&peer)) == ASKED);
	return moved ? be16toh(base_address_port(&peer)) : 0;
}

static void answer_is(const struct row *row)
{
	struct mapper m;

	mapper_begin(&m, row->addr, row->act);
	cr_expect_eq(port_at(row->addr, LIMIT), row->port, "%s", row->addr);
	cr_expect_eq(port_at(row->addr, LIMIT), row->port, "%s, again", row->addr);
	mapper_end(&m);
	cr_expect_eq(m.requests, row->requests, "%s: %u", row->addr, m.requests);
	cr_expect_eq(m.acks, row->port ? 1 : 0, "%s", row->addr);
}

Test(mapper, answers)
{
	signal(SIGUSR1, signal_note);
	for (size_t i = 0; i < base_array_size(rows); i++)
		answer_is(&rows[i]);
	cr_expect_eq(signals, 1);
}

static void six_or_skip(void)
{
	struct sockaddr_in6 at;
	int err, fd = socket(AF_INET6, SOCK_DGRAM, 0);

	address_make(&at, "::1", 0);
	err = bind(fd, (void *)&at, sizeof(at));
	close(fd);
	if (err)
		cr_skip_test("this machine has no IPv6");
}

Test(mapper, an_answer_by_ipv6)
{
	six_or_skip();
	answer_is(&(struct row){ "::1", ACT_ACCEPT, MAPPED, 1 });
}

Test(mapper, a_listener_that_stands_where_it_says)
{
	struct mapper m;

	mapper_begin(&m, "127.0.0.28", ACT_THERE);
	cr_expect_eq(port_at("127.0.0.28", LIMIT), 0);
	mapper_end(&m);
	cr_expect_eq(m.acks, 1u);
}

/* How often a mapper at @row's address is asked, so many seconds from the beginning */
static unsigned int requests_at(const struct row *row, time_t seconds)
{
	struct mapper m;

	later = seconds;
	mapper_begin(&m, row->addr, row->act);
	cr_expect_eq(port_at(row->addr, LIMIT), row->port, "%s", row->addr);
	mapper_end(&m);
	return m.requests;
}

/* A port, and that there is none */
Test(mapper, what_was_told_is_forgotten)
{
	static const struct row told[] = { { "127.0.0.25", ACT_ACCEPT, MAPPED, 1 },
					   { "127.0.0.26", ACT_REJECT, 0, 1 } };

	for (size_t i = 0; i < base_array_size(told); i++) {
		cr_expect_eq(requests_at(&told[i], 0), 1u);
		cr_expect_eq(requests_at(&told[i], 8), 0u, "it is believed");
		cr_expect_eq(requests_at(&told[i], 11), 1u, "and no longer");
	}
}

/* What is no socket gets no port, so that nobody is asked */
Test(mapper, a_failure_of_ones_own_is_not_remembered)
{
	struct sockaddr_in6 peer;
	struct mapper m;

	mapper_begin(&m, "127.0.0.27", ACT_ACCEPT);
	address_make(&peer, "127.0.0.27", ASKED);
	cr_expect_not(llp_mapper_move(-1, &peer, base_address_len(&peer), LIMIT));
	cr_expect_eq(port_at("127.0.0.27", LIMIT), MAPPED);
	mapper_end(&m);
	cr_expect_eq(m.requests, 1u);
}

Test(mapper, a_host_without_one)
{
	uint64_t before = base_now();

	errno = EDOM;
	cr_expect_eq(port_at("127.0.0.20", 10 * BASE_NS_PER_S), 0);
	cr_expect_lt(base_now() - before, BASE_NS_PER_S, "its kernel says so");
	cr_expect_eq(errno, EDOM);
}

/* The port that the Request says is the one that the connection comes from */
Test(mapper, a_socket_of_both_families)
{
	struct sockaddr_in6 peer, name;
	socklen_t len = sizeof(name);
	struct mapper m;
	int fd;

	six_or_skip();
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	mapper_begin(&m, "127.0.0.22", ACT_ACCEPT);
	address_make(&peer, "127.0.0.22", ASKED);
	base_address_map(&peer);
	cr_expect(llp_mapper_move(fd, &peer, sizeof(peer), LIMIT));
	cr_expect_eq(base_address_port(&peer), htobe16(MAPPED));
	cr_expect_eq(getsockname(fd, (void *)&name, &len), 0);
	mapper_end(&m);
	cr_expect_neq(m.port, 0);
	cr_expect_eq(name.sin6_port, m.port);
	close(fd);
}

/* Where a program has chosen the address, and left the port to connect(), that stays */
Test(mapper, an_address_that_the_program_has_chosen)
{
	static const uint8_t chosen[] = { 127, 0, 0, 5 };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in6 peer, own;
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	struct mapper m;

	mapper_begin(&m, "127.0.0.23", ACT_ACCEPT);
	address_make(&peer, "127.0.0.23", ASKED);
	address_make(&own, "127.0.0.5", 0);
	cr_assert_eq(setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one)), 0);
	cr_assert_eq(bind(fd, (void *)&own, base_address_len(&own)), 0);
	cr_expect(llp_mapper_move(fd, &peer, base_address_len(&peer), LIMIT));
	cr_expect_eq(base_address_port(&peer), htobe16(MAPPED));
	cr_expect_eq(getsockname(fd, (void *)&name, &len), 0);
	mapper_end(&m);
	cr_expect_arr_eq(&name.sin_addr, chosen, 4);
	cr_expect_arr_eq(m.from, chosen, 4);
	cr_expect_eq(name.sin_port, m.port);
	close(fd);
}

/* sin_zero holds whatever the program has there */
Test(mapper, what_is_no_part_of_an_address)
{
	struct sockaddr_in6 peer;
	struct mapper m;

	mapper_begin(&m, "127.0.0.24", ACT_ACCEPT);
	for (int i = 0; i < 2; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		address_make(&peer, "127.0.0.24", ASKED);
		memset(((struct sockaddr_in *)&peer)->sin_zero, i + 1, 8);
		cr_expect(llp_mapper_move(fd, &peer, sizeof(struct sockaddr_in), LIMIT));
		cr_expect_eq(base_address_port(&peer), htobe16(MAPPED));
		close(fd);
	}
	mapper_end(&m);
	cr_expect_eq(m.requests, 1u);
}

Test(mapper, nobody_is_asked)
{
	struct mapper m;

	mapper_begin(&m, "127.0.0.21", ACT_ACCEPT);
	cr_expect_eq(port_at("127.0.0.21", 0), 0);
	mapper_end(&m);
	cr_expect_eq(m.requests, 0);
}
