/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Peers without DDP: a probe that comes to nothing, and a server that speaks before it knows.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define KEY "MPA ID Req Frame"

static void begin(void)
{
	ends_auto = true;
}

TestSuite(plain, .init = begin);

static struct stream *alone(int fd, bool initiator)
{
	struct stream *s = ends_attach(fd, initiator);

	cr_assert_eq(stream_progress(s), -EAGAIN);
	return s;
}

/* Progress until it is no longer starting; what it says then */
static int outcome(struct stream *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	int state;

	while ((state = stream_progress(s)) == -EAGAIN)
		poll(&p, 1, 10);
	return state;
}

static void say(int fd, const void *octets, size_t len)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	cr_assert_eq(write(fd, octets, len), (ssize_t)len);
	poll(&p, 1, 0);
}

struct probe_case {
	const char *name;
	const char *answer;
	size_t len;
	int shut; /* -1: not */
	int error;
};

static const struct probe_case probes[] = {
	{ "something else", "-ERR unknown command\r\n", 22, -1, EPROTO },
	{ "its own Request", KEY "\x40\1\0\0", 20, -1, EPROTO },
	{ "a reject", "MPA ID Rep Frame\x20\1\0\0", 20, -1, ECONNREFUSED },
	{ "an end", "", 0, SHUT_WR, ECONNRESET },
	{ "silence", "", 0, -1, ETIMEDOUT },
};

/* The connection is dropped, and the socket is good for another */
static void probe_check(const struct probe_case *c)
{
	struct stream_stats stats;
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	struct stream *s;
	int fd[2];

	ends_tcp(fd);
	ends_param = (struct stream_param){ .probe = true, .start_limit = 50 * BASE_NS_PER_MS };
	s = alone(fd[0], true);
	say(fd[1], c->answer, c->len);
	if (c->shut >= 0)
		shutdown(fd[1], c->shut);
	cr_expect_eq(outcome(s), -ENOMSG, "%s", c->name);
	cr_expect_eq(stream_progress(s), -ENOMSG, "%s, again", c->name);
	stream_stats(s, &stats);
	cr_expect_eq(stats.probe_error, c->error, "%s: %d", c->name, stats.probe_error);
	cr_expect_not(stats.failed, "%s", c->name);
	cr_expect_not(stream_levels(s, NULL) & STREAM_ERROR, "%s", c->name);
	cr_expect_neq(getpeername(fd[0], (struct sockaddr *)&peer, &len), 0, "%s", c->name);
	stream_destroy(s);
	close(fd[0]);
	close(fd[1]);
}

Test(plain, probes)
{
	base_log_level = BASE_LOG_OFF;
	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++)
		probe_check(&probes[i]);
}

/* Until it has heard of its peer, a server that may be plain can always be written to */
Test(plain, a_server_that_may_speak_first)
{
	struct stream *s;
	int fd[2];

	ends_tcp(fd);
	s = alone(fd[1], false);
	cr_expect_eq(stream_levels(s, NULL), STREAM_WRITABLE);
	ends_auto = false;
	stream_destroy(s);
	s = alone(fd[1], false);
	cr_expect_eq(stream_levels(s, NULL), 0u);
	cr_expect_eq(stream_speak_plain(s), -EALREADY);
	stream_destroy(s);
}

static struct stream *spoken(int fd[2])
{
	struct stream *s;

	ends_tcp(fd);
	s = alone(fd[1], false);
	cr_assert_eq(stream_speak_plain(s), -EAGAIN);
	cr_expect_eq(stream_progress(s), -EAGAIN);
	cr_expect_eq(stream_levels(s, NULL), STREAM_WRITABLE);
	return s;
}

Test(plain, what_it_hears_then_is_its_own)
{
	char got[32] = "";
	struct stream *s;
	int fd[2];

	ends_param.decide_limit = 10 * BASE_NS_PER_S;
	s = spoken(fd);
	say(fd[0], KEY, 7);
	cr_expect_eq(stream_progress(s), -EAGAIN);
	cr_expect_not(stream_levels(s, NULL) & STREAM_READABLE);
	say(fd[0], "!", 1);
	cr_expect_eq(outcome(s), -ENOMSG);
	cr_expect_eq(read(fd[1], got, sizeof(got)), 8);
	cr_expect_str_eq(got, "MPA ID !");
	stream_destroy(s);
}

Test(plain, unless_it_is_a_request)
{
	struct stream_stats stats;
	char got[32];
	struct stream *s;
	int fd[2];

	base_log_level = BASE_LOG_OFF;
	s = spoken(fd);
	say(fd[0], KEY "\x40\1\0\0", 20);
	cr_expect_eq(outcome(s), -ECONNRESET);
	cr_expect_eq(stream_take_error(s), ECONNRESET);
	stream_stats(s, &stats);
	cr_expect(stats.failed);
	cr_expect_eq(read(fd[0], got, sizeof(got)), -1);
	cr_expect_eq(errno, ECONNRESET);
	stream_destroy(s);
}

/* A Request of which a part was taken in is no longer what plain octets could go before */
Test(plain, not_behind_a_part_of_a_request)
{
	struct stream *s;
	int fd[2];

	ends_tcp(fd);
	s = alone(fd[1], false);
	say(fd[0], KEY, 16);
	cr_expect_eq(stream_progress(s), -EAGAIN);
	cr_expect_eq(stream_speak_plain(s), -EALREADY);
	stream_destroy(s);
}

/* --- a probe's client connects again --- */

struct again {
	struct sockaddr_storage peer, name;
	int listener, fd, accepted;
	struct stream *s;
};

static int listen_at(struct sockaddr_storage *at)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	socklen_t len = sizeof(struct sockaddr_in);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	cr_assert_eq(bind(fd, (struct sockaddr *)at, len), 0);
	cr_assert_eq(listen(fd, 8), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)at, &len), 0);
	return fd;
}

/* A server has had the Request, and its listener is gone before it says that it wants no such */
static void again_begin(struct again *a)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	base_log_level = BASE_LOG_OFF;
	*a = (struct again){ .peer.ss_family = AF_INET };
	memcpy(&a->peer, &any, sizeof(any));
	a->listener = listen_at(&a->peer);
	a->fd = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(connect(a->fd, (struct sockaddr *)&a->peer, sizeof(any)), 0);
	a->accepted = accept(a->listener, NULL, NULL);
	ends_param = (struct stream_param){
		.probe = true,
		.start_limit = 10 * BASE_NS_PER_S,
		.peer = &a->peer,
		.peer_len = sizeof(any),
		.name = &a->name,
	};
	a->s = alone(a->fd, true);
	close(a->listener);
	say(a->accepted, "what?", 5);
}

static void again_end(struct again *a)
{
	stream_destroy(a->s);
	close(a->fd);
	close(a->accepted);
}

static void again_wait(struct again *a, uint64_t length)
{
	uint64_t end = base_deadline(base_now(), length);
	struct pollfd p;

	while (stream_progress(a->s) == -EAGAIN && !base_deadline_passed(end, base_now())) {
		cr_assert_neq(stream_wait_deadline(a->s), BASE_NEVER);
		cr_expect_not(stream_levels(a->s, NULL) & STREAM_WRITABLE);
		p = stream_pollfd(a->s, STREAM_WRITABLE);
		poll(&p, 1, 5);
	}
}

Test(plain, a_server_that_begins_anew_is_tried_again)
{
	struct sockaddr_storage to;
	socklen_t len = sizeof(to);
	struct stream_stats stats;
	struct again a;

	again_begin(&a);
	again_wait(&a, 200 * BASE_NS_PER_MS);
	cr_assert_eq(stream_progress(a.s), -EAGAIN);
	cr_expect_eq(stream_shutdown(a.s, SHUT_WR), 0);
	a.listener = listen_at(&a.peer);
	again_wait(&a, 10 * BASE_NS_PER_S);
	cr_expect_eq(stream_progress(a.s), -ENOMSG);
	stream_stats(a.s, &stats);
	cr_expect_eq(stats.probe_error, EPROTO);
	cr_expect_eq(getpeername(a.fd, (struct sockaddr *)&to, &len), 0);
	close(a.listener);
	again_end(&a);
}

/* Who has answered finds the end behind the Request, and no reset that it did not cause */
Test(plain, a_server_has_time_to_close)
{
	char got[256];
	struct pollfd p;
	struct again a;
	ssize_t n;

	again_begin(&a);
	a.listener = listen_at(&a.peer);
	cr_expect_eq(stream_progress(a.s), -EAGAIN);
	cr_expect_eq(stream_wait_events(a.s, STREAM_WRITABLE), POLLIN);
	cr_expect_eq(write(a.accepted, "more", 4), 4);
	do {
		n = read(a.accepted, got, sizeof(got));
	} while (n > 0);
	cr_expect_eq(n, 0);
	close(a.accepted);
	again_wait(&a, 10 * BASE_NS_PER_S);
	cr_expect_eq(stream_progress(a.s), -ENOMSG);
	p = (struct pollfd){ .fd = a.listener, .events = POLLIN };
	cr_expect_eq(poll(&p, 1, 0), 1);
	close(a.listener);
	again_end(&a);
}

/* What comes of the last try is the kernel's to tell */
Test(plain, for_a_second)
{
	socklen_t len = sizeof(int);
	struct again a;
	int err = 0;

	again_begin(&a);
	again_wait(&a, 10 * BASE_NS_PER_S);
	cr_expect_eq(stream_progress(a.s), -ENOMSG);
	getsockopt(a.fd, SOL_SOCKET, SO_ERROR, &err, &len);
	cr_expect_eq(err, ECONNREFUSED);
	again_end(&a);
}
