/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections that do not come about, and calls that another thread, or a fault, brings to an end.
 */
#include <linux/sockios.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "tests/e2e/programs/same.h"

static int fresh(int flags)
{
	return socket(AF_INET, SOCK_STREAM | flags, 0);
}

static int to(int fd, const struct sockaddr_in *a)
{
	return connect(fd, (const struct sockaddr *)a, sizeof(*a));
}

static int error_of(int fd)
{
	socklen_t len = sizeof(int);
	int err = -1;

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	return err;
}

static int ready(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP };

	poll(&p, 1, 0);
	return p.revents;
}

static void put(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		same_say("put: %s", strerror(errno));
	same_sleep(5);
}

/* An address of this host, at which a socket is: it listens, or nobody is there any more */
static struct sockaddr_in elsewhere(int *listener)
{
	struct sockaddr_in a = same_addr;
	socklen_t len = sizeof(a);
	int s = fresh(0);

	a.sin_port = 0;
	if (bind(s, (struct sockaddr *)&a, len) || getsockname(s, (struct sockaddr *)&a, &len))
		same_say("elsewhere: %s", strerror(errno));
	if (listener)
		*listener = s;
	else
		close(s);
	return a;
}

/* A listener that takes no connection any more */
static struct sockaddr_in nowhere_to_go(void)
{
	int listener;
	struct sockaddr_in a = elsewhere(&listener);

	listen(listener, 0);
	to(fresh(SOCK_NONBLOCK), &a);
	to(fresh(SOCK_NONBLOCK), &a);
	return a;
}

/* --- refused --- */

static void refused_later(int s, const struct sockaddr_in *a)
{
	R(to(s, a));
	same_wait(s, POLLOUT);
}

static void refused(int fd[2])
{
	struct sockaddr_in a = elsewhere(NULL);
	int s = fresh(SOCK_NONBLOCK);
	char c;

	refused_later(s, &a);
	R(ready(s));
	R(error_of(s));
	R(error_of(s));
	R(ready(s));
	R(read(s, &c, 1));
	R(send(s, "x", 1, MSG_NOSIGNAL));
	R(to(s, &a));
	refused_later(s, &a);
	R(read(s, &c, 1));
	R(read(s, &c, 1));
	R(error_of(s));
	R(to(s, &a));
	refused_later(s, &a);
	R(send(s, "x", 1, MSG_NOSIGNAL));
	R(send(s, "x", 1, MSG_NOSIGNAL));
	R(error_of(s));
	s = fresh(0);
	R(to(s, &a));
	R(error_of(s));
	R(read(s, &c, 1));
	R(shutdown(s, SHUT_RDWR));
	R(ready(s));
	R(to(s, &same_addr));
}

/* A socket that was refused is as good as new */
static void refused_and_again(int fd[2])
{
	struct sockaddr_in a = elsewhere(NULL);
	int s = fresh(SOCK_NONBLOCK);

	refused_later(s, &a);
	R(to(s, &a));
	R(to(s, &same_addr));
	same_wait(s, POLLOUT);
	R(to(s, &same_addr));
	R(to(s, &same_addr));
	R(error_of(s));
}

static void wrong_addresses(int fd[2])
{
	struct sockaddr_in a = same_addr;
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = same_addr.sin_port };
	int s = socket(AF_INET6, SOCK_STREAM, 0);

	six.sin6_addr = in6addr_loopback;
	R(connect(fresh(0), (struct sockaddr *)&six, sizeof(six)));
	R(to(s, &same_addr));
	R(connect(s, (struct sockaddr *)&six, 20));
	a.sin_port = 0;
	R(to(fresh(0), &a));
	a.sin_port = same_addr.sin_port;
	a.sin_addr.s_addr = htonl(INADDR_BROADCAST);
	R(to(fresh(0), &a));
	a.sin_addr.s_addr = htonl(INADDR_ALLHOSTS_GROUP);
	R(to(fresh(0), &a));
	a = same_addr;
	a.sin_family = 77;
	R(to(fresh(0), &a));
	a.sin_family = AF_INET;
	a.sin_addr.s_addr = htonl(INADDR_ANY);
	R(to(fresh(0), &a));
}

static void oneself(int fd[2])
{
	int s;
	struct sockaddr_in a = elsewhere(&s);
	int r = to(s, &a);

	same_say("%s", r ? strerrorname_np(errno) : "connected");
}

/* --- not connected yet --- */

static void no_room(int fd[2])
{
	struct sockaddr_in a = nowhere_to_go();
	struct timeval tv = { 0, 100000 };
	int s = fresh(0);

	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	R(to(s, &a));
	R(to(s, &a));
	R(error_of(s));
	R(recv(s, &(char){ 0 }, 1, MSG_DONTWAIT));
	R(shutdown(s, SHUT_WR));
	R(ready(s));
	R(recv(s, &(char){ 0 }, 1, MSG_DONTWAIT));
	R(to(s, &same_addr));
	R(to(s, &same_addr));
}

/* A listener with one place, which is taken: TCP asks again a second later */
static void no_room_here(int fd[2])
{
	int s = fresh(SOCK_NONBLOCK), first = fresh(SOCK_NONBLOCK), ep = epoll_create1(0), listener;
	struct sockaddr_in a = elsewhere(&listener), peer;
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	socklen_t len = sizeof(peer);
	char c;

	R(listen(listener, 0));
	R(to(first, &a));
	same_wait(first, POLLOUT);
	same_sleep(20);
	R(epoll_ctl(ep, EPOLL_CTL_ADD, s, &e));
	R(epoll_wait(ep, &e, 1, 0));
	R(e.events);
	R(to(s, &a));
	R(ready(s));
	R(epoll_wait(ep, &e, 1, 50));
	R(send(s, "x", 1, MSG_NOSIGNAL));
	R(recv(s, &c, 1, 0));
	R(to(s, &a));
	R(getpeername(s, (struct sockaddr *)&peer, &len));
	R(error_of(s));
	R(close(accept(listener, NULL, NULL)));
	R(epoll_wait(ep, &e, 1, 30000));
	R(e.events);
	same_wait(s, POLLOUT);
	R(error_of(s));
	R(send(s, "x", 1, MSG_NOSIGNAL));
	fd[1] = accept(listener, NULL, NULL);
	R(recv(fd[1], &c, 1, 0));
}

static void to_nowhere(void *arg)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	if (connect(*(int *)arg, &none, sizeof(none)))
		same_say("to nowhere: %s", strerror(errno));
}

static void shut(void *arg)
{
	if (shutdown(*(int *)arg, SHUT_RDWR))
		same_say("shutdown: %s", strerror(errno));
}

static void ended_meanwhile(int fd[2])
{
	struct sockaddr_in a = nowhere_to_go();
	int s = fresh(0);

	same_later(100, to_nowhere, &s);
	R(to(s, &a));
	same_join();
	R(ready(s));
	R(to(s, &same_addr));
	s = fresh(0);
	same_later(100, shut, &s);
	R(to(s, &a));
	same_join();
	R(ready(s));
	R(to(s, &same_addr));
}

/* --- in a call --- */

static void close_it(void *arg)
{
	close(*(int *)arg);
}

/* The end may have come by then */
static void put_late(void *arg)
{
	send(*(int *)arg, "late", 4, MSG_NOSIGNAL);
}

static void closed_then_put(int fd[2])
{
	char buf[4] = "";
	long got;

	same_later(50, close_it, &fd[0]);
	same_later(200, put_late, &fd[1]);
	got = recv(fd[0], buf, 4, 0);
	same_say("%ld", got);
}

static sigjmp_buf out;

static void on_fault(int number)
{
	siglongjmp(out, 1);
}

/* TCP says EFAULT, here is a fault: what the program does about it harms no other connection */
static void faults(int fd[2])
{
	char *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction action = { .sa_handler = on_fault };
	int other[2];
	char c = 0;

	dup2(open("/dev/null", O_WRONLY), STDERR_FILENO); /* a log line says that it broke */
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	same_pair(other);
	put(fd[1], "0123456789");
	for (int i = 0; i < 2; i++)
		if (!sigsetjmp(out, 1) && (i ? write(fd[1], none, 9) : read(fd[0], none, 9)) >= 0)
			same_say("no fault");
	for (int i = 0; i < 3; i++) {
		R(write(other[0], "x", 1));
		R(read(other[1], &c, 1));
	}
	alarm(1);
	same_signals = 0;
	R(read(other[1], &c, 1));
	R(same_signals);
	R(close(fd[0]));
	R(close(fd[1]));
	R(write(other[0], "x", 1));
	R(read(other[1], &c, 1));
}

/* A program that never reads: whatever becomes of the first octets, it hears of the end soon */
static void only_writes(int fd[2])
{
	for (int how = 0; how < 3; how++) {
		int p[2], sent = 0;

		same_pair(p);
		if (how)
			shutdown(p[1], how == 1 ? SHUT_WR : SHUT_RDWR);
		close(p[1]);
		while (sent < 100 && send(p[0], "x", 1, MSG_NOSIGNAL) == 1) {
			sent++;
			same_sleep(5);
		}
		same_say("%s", strerrorname_np(errno));
		R(sent < 20);
		R(send(p[0], "x", 1, MSG_NOSIGNAL));
		close(p[0]);
	}
}

/* --- waiting for room --- */

static char big[32 << 20];

static void reset_it(void *arg)
{
	struct linger none = { 1, 0 };

	setsockopt(*(int *)arg, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(*(int *)arg);
}

static void shut_sending(void *arg)
{
	if (shutdown(*(int *)arg, SHUT_WR))
		same_say("shutdown: %s", strerror(errno));
}

/* How much is taken in before is each transport's own */
static void put_big(int fd)
{
	ssize_t n = send(fd, big, sizeof(big), MSG_NOSIGNAL);

	if (n > 0)
		same_say("%s", n < (ssize_t)sizeof(big) ? "some" : "all");
	else
		same_say("%zd %s", n, strerrorname_np(errno));
}

static void stuff(int fd)
{
	while (send(fd, big, 65536, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
}

/* A sender sleeps: it has given a part of its octets, or none, when the end comes */
static void no_more_room(int fd[2])
{
	static const struct {
		const char *text;
		void (*end)(void *fd);
		int side;
	} ends[] = { { "the peer closes", close_it, 1 },
		     { "the peer resets", reset_it, 1 },
		     { "shut by a thread", shut_sending, 0 } };

	for (size_t i = 0; i < 3 * sizeof(ends) / sizeof(ends[0]); i++) {
		struct pollfd p = { .events = POLLOUT };
		int pair[2];

		same_say("%s", ends[i / 3].text);
		same_pair(pair);
		if (i % 3)
			stuff(pair[0]);
		same_later(100, ends[i / 3].end, &pair[ends[i / 3].side]);
		p.fd = pair[0];
		if (i % 3 == 0)
			put_big(pair[0]);
		else if (i % 3 == 1)
			R(send(pair[0], "x", 1, MSG_NOSIGNAL));
		else
			R(poll(&p, 1, 20000) > 0 ? p.revents : -1);
		same_join();
		R(send(pair[0], "x", 1, MSG_NOSIGNAL));
		R(send(pair[0], "x", 1, MSG_NOSIGNAL));
		close(pair[0]);
		if (!ends[i / 3].side)
			close(pair[1]);
	}
}

/* A peer that reads lets who sleeps go on, to the last octet */
static long taken;

static void takes_all(void *arg)
{
	static char buf[65536];
	long n;

	while ((n = recv(*(int *)arg, buf, sizeof(buf), 0)) > 0)
		taken += n;
}

static void room_at_last(int fd[2])
{
	struct pollfd p = { .fd = fd[0], .events = POLLOUT };

	same_later(100, takes_all, &fd[1]);
	put_big(fd[0]);
	R(poll(&p, 1, 20000));
	R(shutdown(fd[0], SHUT_WR));
	same_join();
	R(taken);
}

/* --- what has not been acknowledged --- */

static bool is_bounded(int fd, long sent)
{
	int n = -1;

	return !ioctl(fd, SIOCOUTQ, &n) && n >= 0 && n <= sent;
}

static void unacknowledged(int fd[2])
{
	long sent = 0, n = 0;
	bool bounded = true;

	for (int i = 0, left = -1; i < 500 && left; i++) {
		ioctl(fd[0], SIOCOUTQ, &left);
		same_sleep(10);
	}
	while ((n = send(fd[0], big, 1 << 20, MSG_DONTWAIT)) > 0) {
		sent += n;
		bounded = bounded && is_bounded(fd[0], sent);
	}
	while (sent > 0) {
		n = recv(fd[1], big, 1 << 20, 0);
		sent -= n > 0 ? n : sent;
	}
	R(bounded);
	same_sleep(300);
	R(is_bounded(fd[0], 0));
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		SAME("refused, without waiting", refused),
		SAME("refused, and connected to another", refused_and_again),
		SAME("addresses that are not for connect", wrong_addresses),
		DIFFERS("connect to oneself", oneself, "EPROTO\n"),
		SAME("a peer that does not answer", no_room),
		SAME("a listener of its own that has no room", no_room_here),
		SAME("connect ended by another thread", ended_meanwhile),
		DIFFERS("close while a thread reads", closed_then_put, "-1\n"),
		SAME("the end, to one who only writes", only_writes),
		SAME("the end, to one who waits for room", no_more_room),
		SAME("room, to one who waits for it", room_at_last),
		SAME("a handler jumps out of a fault", faults),
		SAME("SIOCOUTQ counts no more than was written", unacknowledged),
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
