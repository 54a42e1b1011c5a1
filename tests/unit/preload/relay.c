/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A relay between a stream and a local socket, in a process of its own:
 *
 *	peer (stream) ==== TCP ==== stream, relay, local socket ---- program
 *
 * The test is peer and program.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "preload/process/relay.h"
#include "preload/sock/wakeup.h"

#define PIECE ((size_t)30000)
#define GRACE (50 * BASE_NS_PER_MS)

static struct stream *peer;
static int program, theirs; /* the peer's descriptor */
static pid_t relay;
/* The relay's way to receive, to send, if not the stream's own */
static ssize_t (*recv_by)(struct stream *s, const struct iovec *iov, int n, int flags);
static ssize_t (*send_by)(struct stream *s, const struct iovec *iov, int n);
static bool relays; /* this process does */
/* It is the relay that has the program's socket, and others have its stream */
static bool goes;

/* The linker takes the relay's calls here (--wrap) */
ssize_t __real_stream_recv(struct stream *s, const struct iovec *iov, int n, int flags);
ssize_t __real_stream_send(struct stream *s, const struct iovec *iov, int n);
ssize_t __wrap_stream_recv(struct stream *s, const struct iovec *iov, int n, int flags);
ssize_t __wrap_stream_send(struct stream *s, const struct iovec *iov, int n);

ssize_t __wrap_stream_recv(struct stream *s, const struct iovec *iov, int n, int flags)
{
	return relays && recv_by ? recv_by(s, iov, n, flags) : __real_stream_recv(s, iov, n, flags);
}

ssize_t __wrap_stream_send(struct stream *s, const struct iovec *iov, int n)
{
	return relays && send_by ? send_by(s, iov, n) : __real_stream_send(s, iov, n);
}

static void relay_run(struct stream *s, int local, uint64_t grace)
{
	struct relay_line l = {
		.stream = s, .local = local, .grace = grace, .linger = BASE_NS_PER_S
	};
	struct pollfd fds[RELAY_POLLS(1)];

	relays = true;
	if (relay_line_init(&l))
		_exit(1);
	relay_serve(&l, 1, fds);
	relay_line_uninit(&l);
	_exit(0);
}

static void program_close(void)
{
	close(program);
	program = -1;
}

/* The relay has @s and its descriptor, and we have not */
static void relay_start(struct stream *s, uint64_t grace)
{
	int local[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, local), 0);
	relay = fork();
	if (!relay) {
		alarm(30);
		program = local[0];
		if (!goes)
			program_close();
		close(theirs);
		if (stream_shared(s))
			stream_joined(s);
		relay_run(s, local[1], grace);
	}
	close(local[1]);
	close(s->fd);
	program = local[0];
}

static void start(void)
{
	struct stream *s[2];

	ends_open(s);
	peer = s[0];
	theirs = peer->fd;
	relay_start(s[1], 0);
}

static void ends_well(void)
{
	int status;

	cr_assert_eq(waitpid(relay, &status, 0), relay);
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* Sleeps until the peer, or the program with @events, may have something to do */
static void wait_any(short events)
{
	struct pollfd fds[2] = { { peer->fd, stream_wait_events(peer, 0), 0 },
				 { program, events, 0 } };

	poll(fds, 2, 100);
	stream_progress(peer);
}

static ssize_t peer_read(void *p, size_t n)
{
	struct iovec iov = { p, n };
	ssize_t got;

	for (int i = 0; i < 100; i++) {
		got = stream_recv(peer, &iov, 1, 0);
		if (got != -EAGAIN)
			return got;
		wait_any(0);
	}
	return -EAGAIN;
}

static void peer_write(const void *p, size_t n)
{
	struct iovec iov = { (void *)p, n };

	cr_assert_eq(stream_send(peer, &iov, 1), (ssize_t)n);
}

static void fill(uint8_t *p, size_t n, uint64_t at)
{
	for (size_t i = 0; i < n; i++)
		p[i] = ends_octet(at + i);
}

static void check(const uint8_t *p, ssize_t n, uint64_t at)
{
	for (ssize_t i = 0; i < n; i++)
		cr_assert_eq(p[i], ends_octet(at + (uint64_t)i), "octet %lu", at + (uint64_t)i);
}

/* What it is to be woken by, when it sleeps; 0: it does not say so */
static uint64_t wakeup_of(struct stream *shared)
{
	uint64_t wakeup = 0;

	for (int i = 0; i < 1000 && !stream_sleepers(shared, &wakeup, 1); i++)
		usleep(10000);
	return wakeup;
}

Test(relay, who_shares_the_stream_can_ring)
{
	struct stream *s[2];
	uint64_t wakeup;
	char c;

	ends_open(s);
	peer = s[0];
	theirs = peer->fd;
	stream_share(s[1], STREAM_SHARE_FORK);
	relay_start(s[1], 0);
	wakeup = wakeup_of(s[1]);
	cr_assert(wakeup);
	cr_expect_eq(wakeup_send(wakeup), 0);
	cr_expect_eq(wakeup_of(s[1]), wakeup, "it has not looked, and sleeps on");
	cr_expect_eq(stream_close(s[1]), 0);
	program_close();
	cr_expect_eq(peer_read(&c, 1), 0);
	ends_well();
}

Test(relay, both_ways_at_once)
{
	const size_t SIZE = 5 << 20;
	uint64_t sent[2] = { 0, 0 }, got[2] = { 0, 0 };
	static uint8_t buf[PIECE];

	start();
	while (got[0] < SIZE || got[1] < SIZE) {
		struct iovec iov = { buf, base_min(PIECE, SIZE - sent[0]) };
		ssize_t n;

		fill(buf, iov.iov_len, sent[0]);
		n = iov.iov_len ? stream_send(peer, &iov, 1) : 0;
		sent[0] += (uint64_t)base_max(n, 0);
		fill(buf, PIECE, sent[1]);
		n = send(program, buf, base_min(PIECE, SIZE - sent[1]), MSG_DONTWAIT);
		sent[1] += (uint64_t)base_max(n, 0);
		n = recv(program, buf, PIECE, MSG_DONTWAIT);
		check(buf, n, got[0]);
		got[0] += (uint64_t)base_max(n, 0);
		iov.iov_len = PIECE;
		n = stream_recv(peer, &iov, 1, 0);
		check(buf, n, got[1]);
		got[1] += (uint64_t)base_max(n, 0);
		if (n == -EAGAIN)
			wait_any(POLLIN);
	}
	program_close();
	cr_expect_eq(peer_read(buf, 1), 0);
	ends_well();
}

/* Room for what was tried before comes just now, and is taken in with nothing else */
static ssize_t recv_with_room(struct stream *s, const struct iovec *iov, int n, int flags)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	if (!(stream_levels(s, NULL) & STREAM_WRITABLE))
		poll(&p, 1, 10000);
	return __real_stream_recv(s, iov, n, flags);
}

static void program_fill(size_t n)
{
	static uint8_t buf[PIECE];

	for (size_t at = 0; at < n; at += PIECE) {
		fill(buf, PIECE, at);
		cr_assert_eq(send(program, buf, PIECE, 0), (ssize_t)PIECE);
	}
}

Test(relay, room_that_comes_while_it_reads, .timeout = 60)
{
	const size_t SIZE = 100 * PIECE;
	static uint8_t buf[PIECE];
	pid_t writer;

	recv_by = recv_with_room;
	start();
	writer = fork();
	if (!writer) {
		program_fill(SIZE);
		_exit(0);
	}
	program_close();
	for (size_t got = 0; got < SIZE;) {
		ssize_t n = peer_read(buf, PIECE);

		cr_assert_gt(n, 0, "%zd behind %zu octets", n, got);
		check(buf, n, got);
		got += (size_t)n;
	}
	cr_expect_eq(peer_read(buf, 1), 0);
	waitpid(writer, NULL, 0);
	ends_well();
}

/* Much more waits than one turn takes */
static ssize_t recv_little(struct stream *s, const struct iovec *iov, int n, int flags)
{
	struct iovec little = { iov->iov_base, 100 };

	return __real_stream_recv(s, &little, 1, flags);
}

Test(relay, a_turn_that_leaves_octets, .timeout = 60)
{
	static uint8_t buf[PIECE];

	recv_by = recv_little;
	start();
	fill(buf, PIECE, 0);
	peer_write(buf, PIECE);
	for (size_t got = 0; got < PIECE;) {
		ssize_t n;

		cr_assert_gt(poll(&(struct pollfd){ program, POLLIN, 0 }, 1, 10000), 0,
			     "nothing behind %zu octets", got);
		n = recv(program, buf, PIECE, 0);
		check(buf, n, got);
		got += (size_t)n;
	}
	program_close();
	cr_expect_eq(peer_read(buf, 1), 0);
	ends_well();
}

Test(relay, the_program_ends_one_way)
{
	char buf[8];
	ssize_t n;

	start();
	cr_assert_eq(write(program, "last", 4), 4);
	cr_assert_eq(shutdown(program, SHUT_WR), 0);
	cr_expect_eq(peer_read(buf, 8), 4);
	cr_expect_eq(n = peer_read(buf, 8), 0, "%zd", n);
	peer_write("answer", 6);
	cr_expect_eq(recv(program, buf, 6, MSG_WAITALL), 6);
	cr_assert_eq(stream_shutdown(peer, SHUT_WR), 0);
	cr_expect_eq(read(program, buf, 1), 0);
	ends_well();
}

Test(relay, the_peer_ends_one_way)
{
	char buf[8];
	ssize_t n;

	start();
	peer_write("last", 4);
	cr_assert_eq(stream_shutdown(peer, SHUT_WR), 0);
	cr_expect_eq(recv(program, buf, 4, MSG_WAITALL), 4);
	cr_expect_eq(read(program, buf, 1), 0);
	cr_assert_eq(write(program, "answer", 6), 6);
	cr_expect_eq(peer_read(buf, 8), 6);
	program_close();
	cr_expect_eq(n = peer_read(buf, 8), 0, "%zd", n);
	ends_well();
}

/* Octets that its program has not read when it closes are a reset, wherever they are */
Test(relay, unread_is_a_reset)
{
	char buf[8];
	ssize_t n;

	start();
	peer_write("unread", 6);
	while (recv(program, buf, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
		wait_any(POLLIN);
	program_close();
	cr_expect_eq(n = peer_read(buf, 8), -ECONNRESET, "%zd", n);
	ends_well();
}

/* The peer takes nothing more, so that octets of the program's are on their way for good */
Test(relay, a_reset_of_the_peers)
{
	static char buf[65536];
	struct linger hard = { 1, 0 };
	ssize_t n;

	start();
	for (int quiet = 0; quiet < 3;) {
		n = send(program, buf, sizeof(buf), MSG_DONTWAIT);
		quiet = n > 0 ? 0 : quiet + 1;
		usleep(n > 0 ? 0 : 30000);
	}
	setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	stream_close(peer);
	cr_expect_eq(recv(program, buf, 1, 0), -1);
	cr_expect_eq(errno, ECONNRESET);
	cr_expect_eq(send(program, buf, 1, MSG_NOSIGNAL), -1);
	cr_expect_eq(errno, EPIPE);
	ends_well();
}

Test(relay, the_peer_leaves)
{
	char buf[8];

	start();
	peer_write("bye", 3);
	stream_close(peer);
	cr_expect_eq(recv(program, buf, 3, MSG_WAITALL), 3);
	cr_expect_eq(read(program, buf, 1), 0);
	for (int i = 0; i < 100 && send(program, buf, 1, MSG_NOSIGNAL) == 1; i++)
		wait_any(0);
	cr_expect_eq(errno, EPIPE);
	program_close();
	ends_well();
}

/* We have the relay's stream as well */
static struct stream *start_shared(void)
{
	struct stream *s[2];
	int mine;

	ends_open(s);
	peer = s[0];
	theirs = peer->fd;
	stream_share(s[1], STREAM_SHARE_FORK);
	mine = dup(s[1]->fd);
	relay_start(s[1], 0);
	stream_set_fd(s[1], mine);
	return s[1];
}

static ssize_t recv_and_go(struct stream *s, const struct iovec *iov, int n, int flags)
{
	if (__real_stream_recv(s, iov, n, MSG_PEEK) > 0)
		program_close();
	return __real_stream_recv(s, iov, n, flags);
}

/* What comes when its program has gone is for who else has the stream */
Test(relay, takes_nothing_when_the_program_has_gone, .timeout = 60)
{
	struct stream *s;
	char buf[8];
	ssize_t n = 0;

	goes = true;
	recv_by = recv_and_go;
	s = start_shared();
	program_close();
	peer_write("theirs", 6);
	ends_well();
	cr_assert_eq(n = stream_recv(s, &(struct iovec){ buf, 8 }, 1, 0), 6, "%zd", n);
	cr_expect_arr_eq(buf, "theirs", 6);
}

static ssize_t send_and_go(struct stream *s, const struct iovec *iov, int n)
{
	program_close();
	return __real_stream_send(s, iov, n);
}

/* It ends nothing that others have */
Test(relay, ends_nothing_when_the_program_has_gone, .timeout = 60)
{
	struct stream *s;
	char buf[8];
	ssize_t n;

	goes = true;
	send_by = send_and_go;
	s = start_shared();
	cr_assert_eq(write(program, "last", 4), 4);
	program_close();
	cr_expect_eq(peer_read(buf, 8), 4);
	ends_well();
	cr_assert_eq(stream_send(s, &(struct iovec){ "more", 4 }, 1), 4);
	cr_expect_eq(n = peer_read(buf, 8), 4, "%zd", n);
}

/* What its program had, and did not read, is missing to who goes on */
Test(relay, unread_is_a_reset_for_others_too, .timeout = 60)
{
	struct stream *s;
	char buf[8];
	ssize_t n;

	s = start_shared();
	peer_write("unread", 6);
	cr_assert_gt(poll(&(struct pollfd){ program, POLLIN, 0 }, 1, 10000), 0);
	program_close();
	ends_well();
	cr_expect_eq(n = stream_recv(s, &(struct iovec){ buf, 8 }, 1, 0), -ECONNRESET, "%zd", n);
	cr_expect_eq(n = peer_read(buf, 8), -ECONNRESET, "%zd", n);
}

static long cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec +
	       u.ru_stime.tv_usec;
}

static void sleeps_well(void)
{
	ends_well();
	cr_expect_lt(cpu_us(), 300000, "%ld us of work", cpu_us());
}

/* In each state that lasts: nothing to do, a program that does not read, ended on one side */
Test(relay, sleeps)
{
	static char buf[1 << 20];
	struct iovec iov = { buf, sizeof(buf) };

	start();
	usleep(200000);
	while (stream_send(peer, &iov, 1) > 0)
		usleep(20000);
	usleep(200000);
	cr_assert_eq(stream_shutdown(peer, SHUT_WR), 0);
	usleep(200000);
	while (read(program, buf, sizeof(buf)) > 0)
		;
	usleep(200000);
	shutdown(program, SHUT_WR);
	sleeps_well();
}

/* The peer's first octets say that it is no DDP; or the program's own, since none came in time */
static void plain_begin(int fd[2], uint64_t grace)
{
	ends_auto = true;
	ends_tcp(fd);
	theirs = fd[0];
	relay_start(ends_attach(fd[1], false), grace);
}

static void plain_talk(int fd, bool program_first)
{
	int from = program_first ? program : fd, to = program_first ? fd : program;
	char buf[8];

	cr_assert_eq(write(from, "hello", 5), 5);
	cr_expect_eq(recv(to, buf, 5, MSG_WAITALL), 5);
	cr_expect_arr_eq(buf, "hello", 5);
	cr_assert_eq(write(to, "world", 5), 5);
	cr_expect_eq(recv(from, buf, 5, MSG_WAITALL), 5);
	shutdown(program, SHUT_WR);
	cr_expect_eq(read(fd, buf, 1), 0);
	close(fd);
	cr_expect_eq(read(program, buf, 1), 0);
	ends_well();
}

Test(relay, a_plain_peer)
{
	int fd[2];

	plain_begin(fd, GRACE);
	plain_talk(fd[0], false);
}

Test(relay, a_plain_peer_that_waits)
{
	int fd[2];

	plain_begin(fd, GRACE);
	plain_talk(fd[0], true);
}

/* The program has something to say, and of a Request only the key has come in time */
Test(relay, sleeps_beside_part_of_a_request)
{
	char buf[8];
	int fd[2];

	plain_begin(fd, GRACE);
	cr_assert_eq(write(fd[0], "MPA ID Req Frame", 16), 16);
	cr_assert_eq(write(program, "hello", 5), 5);
	usleep(2000000);
	cr_expect_eq(recv(fd[0], buf, sizeof(buf), MSG_DONTWAIT), -1, "it speaks plainly");
	close(fd[0]);
	cr_expect_leq(read(program, buf, 1), 0);
	program_close();
	sleeps_well();
}
