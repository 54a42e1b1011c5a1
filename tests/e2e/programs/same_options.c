/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Socket options and ioctls: what they remember, what they refuse, and what they do.
 */
#include <linux/filter.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/time.h>
#include <termios.h>

#include "tests/e2e/programs/same.h"

static void *volatile none;

static void put(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		same_say("put: %s", strerror(errno));
	same_sleep(5);
}

static void get_int(int fd, const char *text, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = -77;

	errno = 0;
	if (getsockopt(fd, level, name, &value, &len))
		same_say("%s: %s", text, strerrorname_np(errno));
	else
		same_say("%s: %d, length %u", text, value, len);
}

static void set_int(int fd, const char *text, int level, int name, int value)
{
	int err = setsockopt(fd, level, name, &value, sizeof(value));

	same_say("%s = %d: %s", text, value, err ? strerrorname_np(errno) : "0");
	get_int(fd, text, level, name);
}

#define GET(fd, level, name) get_int(fd, #name, level, name)
#define SET(fd, level, name, value) set_int(fd, #name, level, name, value)

static int fresh(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

/* --- what is remembered --- */

static void set_many(int fd)
{
	SET(fd, IPPROTO_TCP, TCP_NODELAY, 0);
	SET(fd, IPPROTO_TCP, TCP_NODELAY, 7);
	SET(fd, IPPROTO_TCP, TCP_CORK, 5);
	SET(fd, IPPROTO_TCP, TCP_NODELAY, 0);
	SET(fd, IPPROTO_TCP, TCP_CORK, 0);
	SET(fd, IPPROTO_TCP, TCP_KEEPIDLE, 11);
	SET(fd, IPPROTO_TCP, TCP_KEEPINTVL, 12);
	SET(fd, IPPROTO_TCP, TCP_KEEPCNT, 13);
	SET(fd, IPPROTO_TCP, TCP_SYNCNT, 3);
	SET(fd, IPPROTO_TCP, TCP_LINGER2, 4);
	SET(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 5000);
	SET(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 65536);
	SET(fd, IPPROTO_TCP, TCP_QUICKACK, 1);
	SET(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1);
	SET(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	SET(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	SET(fd, SOL_SOCKET, SO_OOBINLINE, 1);
	SET(fd, SOL_SOCKET, SO_PRIORITY, 3);
	SET(fd, SOL_SOCKET, SO_SNDBUF, 30000);
	SET(fd, SOL_SOCKET, SO_RCVBUF, 40000);
	SET(fd, SOL_SOCKET, SO_BUSY_POLL, 0);
	SET(fd, SOL_SOCKET, SO_SNDLOWAT, 9);
	SET(fd, SOL_SOCKET, SO_ERROR, 9);
	SET(fd, SOL_SOCKET, 9999, 1);
	SET(fd, IPPROTO_TCP, 9999, 1);
	SET(fd, IPPROTO_IP, IP_TOS, 16);
}

static void get_many(int fd)
{
	GET(fd, SOL_SOCKET, SO_TYPE);
	GET(fd, SOL_SOCKET, SO_DOMAIN);
	GET(fd, SOL_SOCKET, SO_PROTOCOL);
	GET(fd, SOL_SOCKET, SO_ACCEPTCONN);
	GET(fd, SOL_SOCKET, SO_ERROR);
	GET(fd, SOL_SOCKET, SO_RCVLOWAT);
	GET(fd, SOL_SOCKET, SO_SNDLOWAT);
	GET(fd, IPPROTO_TCP, TCP_NODELAY);
	GET(fd, IPPROTO_TCP, TCP_CORK);
	GET(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT);
	GET(fd, IPPROTO_TCP, TCP_FASTOPEN);
	GET(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT);
	GET(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT);
}

static void remembered(int fd[2])
{
	int s = fresh();

	get_many(fd[0]);
	get_many(fd[1]);
	get_many(s);
	get_many(same_listener);
	set_many(fd[0]);
	set_many(fd[1]);
	set_many(s);
	connect(s, (struct sockaddr *)&same_addr, sizeof(same_addr));
	get_many(s);
	SET(s, IPPROTO_TCP, TCP_CORK, 0);
}

static void inherited(int fd[2])
{
	int s = fresh(), a;
	char c;

	SET(same_listener, IPPROTO_TCP, TCP_NODELAY, 1);
	SET(same_listener, IPPROTO_TCP, TCP_CORK, 1);
	SET(same_listener, SOL_SOCKET, SO_RCVLOWAT, 3);
	SET(same_listener, SOL_SOCKET, SO_KEEPALIVE, 1);
	SET(s, IPPROTO_TCP, TCP_CORK, 1);
	SET(s, SOL_SOCKET, SO_RCVLOWAT, 4);
	connect(s, (struct sockaddr *)&same_addr, sizeof(same_addr));
	a = accept(same_listener, NULL, NULL);
	get_many(a);
	get_many(s);
	SET(s, IPPROTO_TCP, TCP_CORK, 0);
	put(s, "ab");
	R(recv(a, &c, 1, 0));
	R(recv(a, &c, 1, 0));
}

static void lengths(int fd[2])
{
	static const struct {
		int level, name;
	} options[] = { { SOL_SOCKET, SO_ERROR },    { SOL_SOCKET, SO_RCVLOWAT },
			{ SOL_SOCKET, SO_TYPE },     { IPPROTO_TCP, TCP_NODELAY },
			{ IPPROTO_TCP, TCP_CORK },   { SOL_SOCKET, SO_LINGER },
			{ IPPROTO_TCP, TCP_KEEPCNT } };
	static const socklen_t sizes[] = { 0, 1, 2, 3, 4, 8, 64, (socklen_t)-1 };
	unsigned char value[64];

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		int level = options[i].level, name = options[i].name;

		for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
			socklen_t len = sizes[k];

			memset(value, 0, sizeof(value));
			same_say("%d %d, length %d", level, name, (int)len);
			R(getsockopt(fd[0], level, name, value, &len));
			same_say("length %d, %d %d", (int)len, value[0], value[1]);
			value[0] = 1;
			R(setsockopt(fd[0], level, name, value, sizes[k]));
		}
		R(getsockopt(fd[0], level, name, none, &(socklen_t){ 4 }));
		R(getsockopt(fd[0], level, name, value, none));
		R(setsockopt(fd[0], level, name, none, 4));
	}
}

/* --- SO_RCVLOWAT --- */

static int ready(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLRDHUP };

	return poll(&p, 1, 20) < 0 ? -1 : p.revents;
}

static int selected(int fd)
{
	struct timeval tv = { 0 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	return select(fd + 1, &in, NULL, NULL, &tv);
}

static void lowat_poll(int fd[2])
{
	char buf[16];

	SET(fd[1], SOL_SOCKET, SO_RCVLOWAT, 5);
	R(ready(fd[1]));
	put(fd[0], "abc");
	R(ready(fd[1]));
	R(selected(fd[1]));
	R(recv(fd[1], buf, 16, MSG_DONTWAIT | MSG_PEEK));
	put(fd[0], "de");
	R(ready(fd[1]));
	R(selected(fd[1]));
	R(recv(fd[1], buf, 1, MSG_DONTWAIT));
	R(ready(fd[1]));
	SET(fd[1], SOL_SOCKET, SO_RCVLOWAT, 4);
	R(ready(fd[1]));
	SET(fd[1], SOL_SOCKET, SO_RCVLOWAT, 0);
	R(recv(fd[1], buf, 3, MSG_DONTWAIT));
	R(ready(fd[1]));
	SET(fd[1], SOL_SOCKET, SO_RCVLOWAT, 9);
	R(ready(fd[1]));
	shutdown(fd[0], SHUT_WR);
	same_sleep(5);
	R(ready(fd[1]));
	R(recv(fd[1], buf, 16, 0));
	R(recv(fd[1], buf, 16, 0));
}

static int waited(int set)
{
	struct epoll_event event;

	return epoll_wait(set, &event, 1, 20) == 1 ? (int)event.events : 0;
}

static void lowat_epoll(int fd[2])
{
	for (int i = 0; i < 2; i++) {
		struct epoll_event event = { .events = EPOLLIN | (i ? EPOLLET : 0) };
		int set = epoll_create1(0);
		char buf[16];

		SET(fd[1], SOL_SOCKET, SO_RCVLOWAT, 5);
		R(epoll_ctl(set, EPOLL_CTL_ADD, fd[1], &event));
		R(waited(set));
		put(fd[0], "abc");
		R(waited(set));
		put(fd[0], "de");
		R(waited(set));
		R(waited(set));
		put(fd[0], "f");
		R(waited(set));
		R(recv(fd[1], buf, 3, 0));
		R(waited(set));
		SET(fd[1], SOL_SOCKET, SO_RCVLOWAT, 2);
		R(waited(set));
		R(recv(fd[1], buf, 16, 0));
		R(waited(set));
		close(set);
	}
}

static void put_two(void *arg)
{
	put(*(int *)arg, "de");
}

static void lowat_recv(int fd[2])
{
	struct timeval tv = { .tv_usec = 100000 };
	double begin = same_now();
	char buf[16];

	SET(fd[1], SOL_SOCKET, SO_RCVLOWAT, 5);
	put(fd[0], "abc");
	same_later(50, put_two, &fd[0]);
	R(recv(fd[1], buf, 16, MSG_PEEK));
	same_took(begin, 50);
	R(recv(fd[1], buf, 2, 0));
	R(recv(fd[1], buf, 16, MSG_DONTWAIT));
	setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	put(fd[0], "abc");
	R(recv(fd[1], buf, 16, 0));
	R(recv(fd[1], buf, 16, 0));
	same_nonblock(fd[1]);
	put(fd[0], "abc");
	R(recv(fd[1], buf, 16, 0));
}

/* --- time-outs --- */

static void set_time(int fd, int name, long s, long us)
{
	struct timeval tv = { s, us }, got;
	socklen_t len = sizeof(got);

	R(setsockopt(fd, SOL_SOCKET, name, &tv, sizeof(tv)));
	R(getsockopt(fd, SOL_SOCKET, name, &got, &len));
	same_say("%ld.%06ld", (long)got.tv_sec, (long)got.tv_usec);
}

static void time_outs(int fd[2])
{
	static char big[1 << 20];
	double begin = same_now();
	char buf[4];
	long sum = 0, n;

	set_time(fd[1], SO_RCVTIMEO, 0, 1000000);
	set_time(fd[1], SO_RCVTIMEO, -1, 0);
	set_time(fd[1], SO_RCVTIMEO, 0, 48000);
	set_time(fd[0], SO_SNDTIMEO, 0, 48000);
	begin = same_now();
	R(read(fd[1], buf, 4));
	same_took(begin, 48);
	R(recv(fd[1], buf, 4, MSG_PEEK));
	put(fd[0], "ab");
	R(recv(fd[1], buf, 4, 0));
	while ((n = write(fd[0], big, sizeof(big))) > 0)
		sum += n;
	same_say("%s, then %ld %s", sum ? "something went" : "nothing went", n,
		 strerrorname_np(errno));
	begin = same_now();
	R(write(fd[0], big, sizeof(big)));
	same_took(begin, 48);
	R(send(fd[0], big, sizeof(big), MSG_DONTWAIT));
}

/* --- errors and ends --- */

static void reset(int fd)
{
	struct linger hard = { 1, 0 };

	R(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)));
	R(close(fd));
	same_sleep(10);
}

static void error_option(int fd[2])
{
	char c;

	GET(fd[0], SOL_SOCKET, SO_ERROR);
	reset(fd[1]);
	R(ready(fd[0]));
	GET(fd[0], SOL_SOCKET, SO_ERROR);
	GET(fd[0], SOL_SOCKET, SO_ERROR);
	R(ready(fd[0]));
	R(read(fd[0], &c, 1));
	R(send(fd[0], "x", 1, MSG_NOSIGNAL));
}

static void linger_values(int fd[2])
{
	struct linger l = { 5, 7 };
	socklen_t len = sizeof(l);

	R(setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	R(getsockopt(fd[0], SOL_SOCKET, SO_LINGER, &l, &len));
	same_say("%d %d", l.l_onoff, l.l_linger);
	l.l_onoff = 0;
	R(setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	R(getsockopt(fd[0], SOL_SOCKET, SO_LINGER, &l, &len));
	same_say("%d %d", l.l_onoff, l.l_linger);
}

static long fill(int fd)
{
	static char big[1 << 20];
	long sum = 0, n;

	while ((n = send(fd, big, sizeof(big), MSG_DONTWAIT)) > 0)
		sum += n;
	return sum;
}

static long drained, after;

static void drain_all(void *arg)
{
	static char buf[1 << 16];

	drained = 0;
	while ((after = read(*(int *)arg, buf, sizeof(buf))) > 0)
		drained += after;
}

static void drain_said(void)
{
	same_say("%s and then %ld", drained ? "read something" : "read nothing", after);
}

static void linger_delivered(int fd[2])
{
	struct linger l = { 1, 20 };
	double begin;
	long sent;

	setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	sent = fill(fd[0]);
	begin = same_now();
	same_later(150, drain_all, &fd[1]);
	R(close(fd[0]));
	same_say(same_now() - begin < 15 ? "before the time was up" : "as long as it could");
	same_join();
	drain_said();
	same_say(drained == sent ? "all of it" : "not all of it");
}

static void linger_late(int fd[2])
{
	struct linger l = { 1, 1 };
	double begin;
	char c;

	/* What comes soon behind the start of a connection is taken in with it */
	put(fd[0], "a");
	R(recv(fd[1], &c, 1, 0));
	same_sleep(200);
	setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	same_nonblock(fd[0]);
	fill(fd[0]);
	begin = same_now();
	R(close(fd[0]));
	same_took(begin, 1000);
	drain_all(&fd[1]);
	drain_said();
}

/* --- ioctls --- */

static void counts(int fd[2])
{
	int n = -1, s = fresh();
	char buf[16];

	R(ioctl(fd[1], FIONREAD, &n));
	same_say("%d", n);
	put(fd[0], "abcde");
	R(ioctl(fd[1], FIONREAD, &n));
	same_say("%d", n);
	R(ioctl(fd[1], SIOCINQ, &n));
	same_say("%d", n);
	R(ioctl(fd[1], FIONREAD, none));
	R(recv(fd[1], buf, 2, 0));
	R(ioctl(fd[1], FIONREAD, &n));
	same_say("%d", n);
	same_sleep(100);
	R(ioctl(fd[0], SIOCOUTQ, &n));
	same_say("%d", n);
	R(ioctl(fd[0], SIOCOUTQNSD, &n));
	same_say("%d", n);
	R(ioctl(fd[1], SIOCATMARK, &n));
	same_say("%d", n);
	R(ioctl(s, FIONREAD, &n));
	same_say("%d", n);
	R(ioctl(s, SIOCOUTQ, &n));
	R(ioctl(same_listener, FIONREAD, &n));
	R(ioctl(same_listener, SIOCOUTQ, &n));
	R(ioctl(fd[0], 0x5499, &n));
	R(ioctl(fd[0], TCGETS, buf));
	R(isatty(fd[0]));
	shutdown(fd[0], SHUT_WR);
	same_sleep(5);
	R(ioctl(fd[1], FIONREAD, &n));
	same_say("%d", n);
	R(recv(fd[1], buf, 16, 0));
	R(ioctl(fd[1], FIONREAD, &n));
	same_say("%d", n);
}

static void unacknowledged(int fd[2])
{
	static char big[1 << 20];
	int n = -1, unsent = -1;
	long sum = 0, got;

	same_sleep(100);
	R(ioctl(fd[0], SIOCOUTQ, &n));
	same_say("%d", n);
	while ((got = send(fd[0], big, sizeof(big), MSG_DONTWAIT)) > 0)
		sum += got;
	R(ioctl(fd[0], SIOCOUTQ, &n));
	R(ioctl(fd[0], SIOCOUTQNSD, &unsent));
	same_say(n > 0 && n <= sum ? "some of them" : "not so many");
	same_say(unsent > 0 && unsent <= n ? "some of those" : "not so many");
	shutdown(fd[0], SHUT_WR);
	drain_all(&fd[1]);
	drain_said();
	same_sleep(100);
	R(ioctl(fd[0], SIOCOUTQ, &n));
	same_say("%d", n);
}

static void nonblocking(int fd[2])
{
	int on = 1, off = 0;
	char c;

	R(ioctl(fd[1], FIONBIO, &on));
	R(fcntl(fd[1], F_GETFL));
	R(read(fd[1], &c, 1));
	R(ioctl(fd[1], FIONBIO, &off));
	R(fcntl(fd[1], F_GETFL));
	R(ioctl(fd[1], FIONBIO, none));
	R(fcntl(fd[1], F_SETFL, O_NONBLOCK));
	R(read(fd[1], &c, 1));
	R(fcntl(fd[1], F_SETFL, O_RDWR));
	R(fcntl(fd[1], F_GETFL));
}

static void signalled(int fd[2])
{
	int on = 1, pid = getpid();

	R(fcntl(fd[1], F_SETOWN, pid));
	same_say(fcntl(fd[1], F_GETOWN) == pid ? "owner" : "no owner");
	R(ioctl(fd[1], FIOASYNC, &on));
	same_say(fcntl(fd[1], F_GETFL) & O_ASYNC ? "O_ASYNC" : "no O_ASYNC");
	put(fd[0], "x");
	for (int i = 0; i < 100 && !same_signals; i++)
		same_sleep(10);
	same_say(same_signals ? "SIGIO" : "no SIGIO");
}

/* --- what spoils frames, or is no use --- */

static void info(int fd[2])
{
	struct tcp_info ti;
	socklen_t len = sizeof(ti);

	memset(&ti, 0, sizeof(ti));
	R(getsockopt(fd[0], IPPROTO_TCP, TCP_INFO, &ti, &len));
	same_say("state %d, retransmits %d", ti.tcpi_state, ti.tcpi_retransmits);
	len = 1;
	R(getsockopt(fd[0], IPPROTO_TCP, TCP_INFO, &ti, &len));
	same_say("length %u", len);
}

/* What others see of the socket is TCP with frames on it */
static void info_frames(int fd[2])
{
	unsigned char ti[256] = { 0 };
	socklen_t len = sizeof(ti);
	uint64_t acked;

	same_sleep(100);
	getsockopt(fd[0], IPPROTO_TCP, TCP_INFO, ti, &len);
	/* tcpi_bytes_acked, for which libc's struct is too old */
	memcpy(&acked, ti + 120, sizeof(acked));
	same_say(acked > 10 ? "more than was written" : "what was written");
	shutdown(fd[0], SHUT_WR);
	same_sleep(20);
	getsockopt(fd[0], IPPROTO_TCP, TCP_INFO, ti, &len);
	same_say("state %d", ti[0]);
}

/* TCP's own idea of when to acknowledge: it ends with what this side says, and grants are that */
/* The kernel begins it anew by itself when an acknowledgement has been late, as on a busy host */
static void quick_ack(int fd[2])
{
	int on = 1, tries = 0;
	socklen_t len = sizeof(on);
	char buf[1000] = "";

	setsockopt(fd[1], IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
	get_int(fd[1], "TCP_QUICKACK", IPPROTO_TCP, TCP_QUICKACK);
	do {
		for (int i = 0; i < 2000; i++)
			if (write(fd[0], buf, sizeof(buf)) != sizeof(buf) ||
			    recv(fd[1], buf, sizeof(buf), MSG_WAITALL) != sizeof(buf))
				same_say("quick_ack: %s", strerror(errno));
		getsockopt(fd[1], IPPROTO_TCP, TCP_QUICKACK, &on, &len);
	} while (on && ++tries < 20);
	same_say("at last %d", on);
}

static void stamps(int fd[2])
{
	char buf[4], control[128];
	struct iovec in = { buf, 4 };
	struct msghdr msg = { .msg_iov = &in,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };

	SET(fd[1], SOL_SOCKET, SO_TIMESTAMP, 1);
	same_sleep(200); /* the kernel begins to take times a little later */
	put(fd[0], "abc");
	R(recvmsg(fd[1], &msg, 0));
	same_say(msg.msg_controllen ? "a control message" : "no control message");
}

static void lowat_most(int fd[2])
{
	SET(fd[1], SOL_SOCKET, SO_RCVLOWAT, 1 << 30);
}

/* Bytes that TCP takes one by one in any case */
#define SINGLES 300000

static bool single(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	while (send(fd, "x", 1, MSG_NOSIGNAL) != 1)
		if (errno != EAGAIN || poll(&p, 1, 500) <= 0)
			return false;
	return true;
}

/* Each is a frame, and nobody takes the frames out of the kernel */
static void singles(int fd[2])
{
	static char buf[SINGLES];
	ssize_t sum = 0;

	same_nonblock(fd[0]);
	while (sum < SINGLES && single(fd[0]))
		sum++;
	same_say(sum < SINGLES ? "it stops" : "it goes on");
	same_say(recv(fd[1], buf, (size_t)sum, MSG_WAITALL) == sum ? "all of them" : "too few");
}

/* How much a writer may be ahead of its reader is the ring's affair */
static void room(int fd[2])
{
	static char big[1 << 16];
	long sum = 0, n;
	int s = fresh(), a, small = 4096;

	setsockopt(s, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	setsockopt(same_listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	connect(s, (struct sockaddr *)&same_addr, sizeof(same_addr));
	a = accept(same_listener, NULL, NULL);
	put(s, "a");
	R(recv(a, big, 1, 0));
	put(a, "a");
	R(recv(s, big, 1, 0));
	for (int i = 0; i < 100; i++) {
		while ((n = send(s, big, sizeof(big), MSG_DONTWAIT)) > 0)
			sum += n;
		ready(a);
	}
	same_say(sum > 100000 ? "many octets" : "few octets");
}

static void refused(int fd[2])
{
	struct sock_filter code = { 0x06, 0, 0, 0xffffffff };
	struct sock_fprog program = { 1, &code };

	SET(fd[0], SOL_SOCKET, SO_ZEROCOPY, 1);
	SET(fd[0], IPPROTO_TCP, TCP_INQ, 1);
	R(setsockopt(fd[0], IPPROTO_TCP, TCP_ULP, "tls", 4));
	SET(fd[0], IPPROTO_TCP, TCP_REPAIR, 1);
	R(setsockopt(fd[0], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
	R(setsockopt(fd[0], SOL_SOCKET, SO_DETACH_FILTER, &program, sizeof(program)));
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		SAME("values are remembered", remembered),
		SAME("values are inherited", inherited),
		SAME("short, long and bad lengths", lengths),
		SAME("SO_RCVLOWAT, poll and select", lowat_poll),
		SAME("SO_RCVLOWAT, epoll", lowat_epoll),
		SAME("SO_RCVLOWAT, recv", lowat_recv),
		SAME("SO_RCVTIMEO and SO_SNDTIMEO", time_outs),
		SAME("SO_ERROR", error_option),
		SAME("SO_LINGER's values", linger_values),
		SAME("SO_LINGER waits until all is delivered", linger_delivered),
		SAME("SO_LINGER waits until time is up", linger_late),
		SAME("FIONREAD and its kin", counts),
		SAME("SIOCOUTQ of a full connection", unacknowledged),
		SAME("FIONBIO and O_NONBLOCK", nonblocking),
		SAME("O_ASYNC", signalled),
		SAME("TCP_INFO", info),
		DIFFERS("SO_RCVLOWAT is at most half a ring", lowat_most,
			"SO_RCVLOWAT = 1073741824: 0\n"
			"SO_RCVLOWAT: 262144, length 4\n"),
		DIFFERS("SO_TIMESTAMP brings no control message", stamps,
			"SO_TIMESTAMP = 1: 0\n"
			"SO_TIMESTAMP: 1, length 4\n"
			"recvmsg(fd[1], &msg, 0): 3\n"
			"no control message\n"),
		DIFFERS("a writer of single bytes, whose peer looks at nothing", singles,
			"it stops\nall of them\n"),
		DIFFERS("a writer is ahead by a ring", room,
			"recv(a, big, 1, 0): 1\nrecv(s, big, 1, 0): 1\nmany octets\n"),
		DIFFERS("TCP_INFO counts frames", info_frames, "more than was written\nstate 1\n"),
		DIFFERS("TCP_QUICKACK ends with a grant", quick_ack,
			"TCP_QUICKACK: 1, length 4\n"
			"at last 0\n"),
		DIFFERS("options that are refused", refused,
			"SO_ZEROCOPY = 1: EOPNOTSUPP\n"
			"SO_ZEROCOPY: 0, length 4\n"
			"TCP_INQ = 1: EOPNOTSUPP\n"
			"TCP_INQ: 0, length 4\n"
			"setsockopt(fd[0], IPPROTO_TCP, TCP_ULP, \"tls\", 4): -1 EOPNOTSUPP\n"
			"TCP_REPAIR = 1: EOPNOTSUPP\n"
			"TCP_REPAIR: EOPNOTSUPP\n"
			"setsockopt(fd[0], SOL_SOCKET, SO_ATTACH_FILTER, &program, "
			"sizeof(program)): -1 EOPNOTSUPP\n"
			"setsockopt(fd[0], SOL_SOCKET, SO_DETACH_FILTER, &program, "
			"sizeof(program)): -1 ENOENT\n"),
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
