/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The TCP carrier over loopback: results, the ends of a connection, and where segments end.
 */
#include "llp/llp.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/tcp.h>

#include "base/recv_sleep.h"

static int fds[2];
static struct llp a, b;

static void connect_pair(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);
	int l = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(bind(l, (struct sockaddr *)&sin, len), 0);
	cr_assert_eq(listen(l, 1), 0);
	getsockname(l, (struct sockaddr *)&sin, &len);
	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(connect(fds[0], (struct sockaddr *)&sin, len), 0);
	fds[1] = accept(l, NULL, NULL);
	close(l);
	llp_tcp_init(&a, fds[0]);
	llp_tcp_init(&b, fds[1]);
}

static void close_pair(void)
{
	close(fds[0]);
	close(fds[1]);
}

TestSuite(llp_tcp, .init = connect_pair, .fini = close_pair);

static ssize_t put(struct llp *l, const void *p, size_t n, unsigned int flags)
{
	struct iovec iov = { (void *)p, n };

	return l->ops->send(l, &iov, 1, flags);
}

static ssize_t get(struct llp *l, void *p, size_t room)
{
	struct iovec iov = { p, room };

	return l->ops->recv(l, &iov, 1);
}

static void wait_for(struct llp *l, short events)
{
	struct pollfd p = { .fd = l->fd, .events = events };

	cr_assert_eq(poll(&p, 1, 2000), 1);
}

static uint64_t segments_received(int fd)
{
	struct tcp_info ti;
	socklen_t len = sizeof(ti);

	cr_assert_eq(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &ti, &len), 0);
	return ti.tcpi_data_segs_in;
}

Test(llp_tcp, nothing_waits_on_a_blocking_socket)
{
	char buf[8];

	cr_assert_not(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
	cr_assert_eq(get(&a, buf, 8), -EAGAIN);
	while (put(&a, (char[65536]){ 0 }, 65536, 0) > 0)
		;
	cr_assert_eq(put(&a, "x", 1, 0), -EAGAIN);
	cr_assert_not(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
}

Test(llp_tcp, empty_is_certain)
{
	char buf[8];

	cr_assert_eq(put(&a, "0123456789", 10, 0), 10);
	wait_for(&b, POLLIN);
	cr_assert_eq(get(&b, buf, 8), 8);
	cr_assert_not(b.empty, "two octets are left");
	cr_assert_eq(get(&b, buf, 8), 2);
	cr_assert(b.empty);
	cr_assert_eq(get(&b, buf, 8), -EAGAIN);
	cr_assert_eq(put(&a, "last", 4, 0), 4);
	cr_assert_eq(a.ops->shutdown(&a), 0);
	wait_for(&b, POLLRDHUP);
	cr_assert_eq(get(&b, buf, 8), 4);
	cr_assert_not(b.empty, "an end is behind");
}

Test(llp_tcp, nagle_is_off)
{
	int on = 0;
	socklen_t len = sizeof(on);

	cr_assert_eq(getsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
	cr_assert(on);
}

Test(llp_tcp, errno_stays_as_it_was)
{
	char buf[8];

	errno = E2BIG;
	cr_assert_eq(get(&a, buf, 8), -EAGAIN);
	cr_assert_eq(errno, E2BIG);
	a.ops->shutdown(&a);
	cr_assert_eq(put(&a, "x", 1, 0), -EPIPE);
	cr_assert_eq(errno, E2BIG);
}

Test(llp_tcp, orderly_end)
{
	char buf[8];

	cr_assert_eq(put(&a, "last", 4, 0), 4);
	cr_assert_eq(a.ops->shutdown(&a), 0);
	wait_for(&b, POLLIN);
	cr_assert_eq(get(&b, buf, 8), 4);
	wait_for(&b, POLLIN);
	cr_assert_eq(get(&b, buf, 8), 0);
	cr_assert_eq(put(&b, "back", 4, 0), 4);
	wait_for(&a, POLLIN);
	cr_assert_eq(get(&a, buf, 8), 4);
}

Test(llp_tcp, a_closed_connection_raises_no_signal)
{
	signal(SIGPIPE, SIG_DFL);
	a.ops->shutdown(&a);
	cr_assert_eq(put(&a, "x", 1, 0), -EPIPE);
}

Test(llp_tcp, abort_resets_the_peer)
{
	char buf[8];

	a.ops->abort(&a);
	wait_for(&b, POLLIN);
	cr_assert_eq(get(&b, buf, 8), -ECONNRESET);
	cr_assert_geq(fcntl(fds[0], F_GETFD), 0);
}

Test(llp_tcp, emss_is_the_segment_size_in_use)
{
	struct tcp_info ti;
	socklen_t len = sizeof(ti);

	cr_assert_eq(getsockopt(fds[0], IPPROTO_TCP, TCP_INFO, &ti, &len), 0);
	cr_assert_eq(a.ops->emss(&a), ti.tcpi_snd_mss);
	llp_tcp_view(&a, -1);
	cr_assert_eq(a.ops->emss(&a), 536);
}

/*
 * Small pieces until nothing more is taken: at first each leaves at once, then the peer's window
 * is closed and the kernel may merge what waits. Then the peer reads all. Returns the pieces sent
 * and the segments that carried them.
 */
static void pieces_pass(unsigned int flags, size_t *pieces, uint64_t *segments)
{
	static char buf[1 << 16];
	uint64_t before = segments_received(fds[1]);
	size_t left = 0;
	ssize_t sent;

	for (*pieces = 0; (sent = put(&a, buf, 100, flags)) > 0; ++*pieces)
		left += (size_t)sent;
	while (left) {
		ssize_t n = get(&b, buf, sizeof(buf));

		if (n > 0)
			left -= (size_t)n;
		else
			wait_for(&b, POLLIN);
	}
	*segments = segments_received(fds[1]) - before;
}

Test(llp_tcp, pieces_that_wait_share_segments)
{
	uint64_t segments;
	size_t pieces;

	pieces_pass(0, &pieces, &segments);
	cr_assert_gt(pieces, 1000);
	cr_assert_lt(segments, pieces * 9 / 10);
}

Test(llp_tcp, records_never_share_a_segment)
{
	uint64_t segments;
	size_t pieces;

	pieces_pass(LLP_RECORD, &pieces, &segments);
	cr_assert_gt(pieces, 100);
	cr_assert_geq(segments, pieces);
}

Test(llp_tcp, more_waits_for_more)
{
	uint64_t before = segments_received(fds[1]);
	char buf[8];

	put(&a, "ab", 2, LLP_MORE);
	put(&a, "cd", 2, 0);
	wait_for(&b, POLLIN);
	cr_assert_eq(get(&b, buf, 8), 4);
	cr_assert_eq(segments_received(fds[1]) - before, 1);
}

#define NO(nr)                                           \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static bool confine(void)
{
	static struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		NO(SYS_sendmsg),
		NO(SYS_recvmsg),
		NO(SYS_recvfrom),
		NO(SYS_getsockopt),
		NO(SYS_shutdown),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(f) / sizeof(f[0]), f };

	return !fcntl(fds[0], F_SETFL, O_NONBLOCK) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* The child's part: 0, or which step was wrong */
static int confined(void)
{
	char buf[8];
	bool ended;

	signal(SIGPIPE, SIG_DFL);
	if (!confine())
		return 1;
	if (get(&a, buf, 8) != -EAGAIN)
		return 2;
	if (put(&a, "hello", 5, LLP_RECORD) != 5)
		return 3;
	wait_for(&a, POLLIN);
	if (get(&a, buf, 8) != 3 || memcmp(buf, "you", 3))
		return 4;
	if (a.ops->emss(&a) || a.ops->shutdown(&a))
		return 5;
	if (llp_tcp_peek(fds[0], buf, 1, &ended) != -EPERM)
		return 6;
	wait_for(&a, POLLIN);
	if (get(&a, buf, 8) != 0)
		return 7;
	while (put(&a, (char[65536]){ 0 }, 65536, 0) > 0)
		;
	return 0;
}

/* A sandbox that has forbidden what sockets have of their own */
Test(llp_tcp, by_read_and_write)
{
	char buf[8];
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(confined());
	close(fds[0]);
	wait_for(&b, POLLIN);
	cr_assert_eq(get(&b, buf, 8), 5);
	cr_assert_eq(put(&b, "you", 3, 0), 3);
	cr_assert_eq(b.ops->shutdown(&b), 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "%x", status);
}

/* --- a receive that sleeps, and what ends it --- */

static struct base_recv_sleep asleep;

static bool at_once(struct base_recv_sleep *s)
{
	return true;
}

static bool not_now(struct base_recv_sleep *s)
{
	return false;
}

/* A signal comes between the last look and the kernel */
static bool too_late(struct base_recv_sleep *s)
{
	base_recv_sleep_end(s);
	return true;
}

static void on_alarm(int sig)
{
	base_recv_sleep_end(&asleep);
}

static ssize_t recv_asleep(bool (*may)(struct base_recv_sleep *s))
{
	static char octets[100];
	struct iovec iov = { octets, sizeof(octets) };

	asleep.may = may;
	b.sleep = &asleep;
	return b.ops->recv(&b, &iov, 1);
}

static void alarm_set(void (*handler)(int sig), suseconds_t us, suseconds_t again)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct itimerval t = { { 0, again }, { 0, us } };

	cr_assert_eq(sigaction(SIGALRM, &sa, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_REAL, &t, NULL), 0);
}

Test(llp_tcp, sleeps_until_octets_come)
{
	pid_t pid = fork();

	if (!pid) {
		usleep(20000);
		_exit(put(&a, "abc", 3, 0) != 3);
	}
	cr_expect_eq(recv_asleep(at_once), 3);
	cr_expect(asleep.slept);
	cr_expect_null(b.sleep);
	cr_expect(b.empty);
	cr_expect_eq(recv_asleep(not_now), -EAGAIN);
	cr_expect_not(asleep.slept);
	waitpid(pid, NULL, 0);
}

Test(llp_tcp, a_signal_before_the_sleep_is_not_lost)
{
	cr_expect_eq(recv_asleep(too_late), -EAGAIN);
	cr_expect(asleep.slept);
}

/* The kernel restarts the call behind the handler, and reads the header once more */
Test(llp_tcp, a_signal_in_the_sleep_ends_it)
{
	alarm_set(on_alarm, 20000, 0);
	cr_expect_eq(recv_asleep(at_once), -EAGAIN);
	cr_expect(asleep.slept);
}

/* At every moment around the kernel's beginning */
Test(llp_tcp, signals_at_any_time_end_it)
{
	alarm_set(on_alarm, 50, 50);
	for (int i = 0; i < 20000; i++)
		cr_assert_eq(recv_asleep(at_once), -EAGAIN);
	alarm_set(SIG_IGN, 0, 0);
}

/* Its caller finds memory and receives again, and is to look at what that brought */
Test(llp_tcp, a_sleep_without_memory_for_what_comes)
{
	struct iovec nowhere = { (void *)16, 3 };

	cr_assert_eq(put(&a, "abc", 3, 0), 3);
	asleep.may = at_once;
	b.sleep = &asleep;
	cr_expect_eq(b.ops->recv(&b, &nowhere, 1), -EFAULT);
	cr_expect(asleep.slept);
}

Test(llp_tcp, a_socket_that_does_not_block_does_not_sleep)
{
	cr_assert_eq(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	cr_expect_eq(recv_asleep(at_once), -EAGAIN);
	cr_expect_not(asleep.slept);
}
