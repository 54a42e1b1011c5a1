/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connecting twice, the wrong way round, and not at all; disconnecting; shutting down; TCP Fast
 * Open and deferred accept.
 */
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "tests/e2e/programs/same.h"

static void put(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		same_say("put: %s", strerror(errno));
	same_sleep(5);
}

static int fresh(int flags)
{
	return socket(AF_INET, SOCK_STREAM | flags, 0);
}

static int to_peer(int fd)
{
	return connect(fd, (struct sockaddr *)&same_addr, sizeof(same_addr));
}

static int error_of(int fd)
{
	socklen_t len = sizeof(int);
	int value = -1;

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &len);
	return value;
}

static int ready(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP | POLLPRI };

	return poll(&p, 1, 50) < 0 ? -1 : p.revents;
}

static int nowhere(int fd)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	return connect(fd, &none, sizeof(none));
}

/* --- the wrong call at the wrong time --- */

static void twice(int fd[2])
{
	struct sockaddr_in other = same_addr;
	int s;

	R(to_peer(fd[0]));
	R(to_peer(fd[1]));
	other.sin_port = htons(1);
	R(connect(fd[0], (struct sockaddr *)&other, sizeof(other)));
	R(connect(fd[0], (struct sockaddr *)&other, 3));
	R(connect(fd[0], NULL, sizeof(other)));
	R(listen(fd[0], 1));
	R(listen(fd[1], 1));
	R(accept(fd[0], NULL, NULL));
	R(accept4(fd[1], NULL, NULL, 0));
	R(bind(fd[0], (struct sockaddr *)&same_addr, sizeof(same_addr)));
	R(to_peer(same_listener));
	s = fresh(0);
	R(accept(s, NULL, NULL));
	put(fd[0], "still");
	R(read(fd[1], &other, 5));
}

static void unconnected(int fd[2])
{
	char c;
	int s = fresh(0);

	R(read(s, &c, 1));
	R(recv(s, &c, 1, MSG_PEEK));
	R(write(s, "x", 1));
	R(send(s, "x", 1, MSG_NOSIGNAL));
	R(sendto(s, "x", 1, MSG_NOSIGNAL, (struct sockaddr *)&same_addr, sizeof(same_addr)));
	R(shutdown(s, SHUT_RD));
	R(shutdown(s, SHUT_WR));
	R(shutdown(s, 7));
	R(read(s, &c, 1));
	R(ready(s));
	R(read(same_listener, &c, 1));
	R(send(same_listener, "x", 1, MSG_NOSIGNAL));
	same_say("signals %d", same_signals);
	R(to_peer(s));
}

static void refused(int fd[2])
{
	struct sockaddr_in to = same_addr;
	socklen_t len = sizeof(to);
	int s = fresh(0);

	to.sin_port = 0;
	R(bind(s, (struct sockaddr *)&to, sizeof(to)));
	R(getsockname(s, (struct sockaddr *)&to, &len));
	close(s);
	s = fresh(0);
	R(connect(s, (struct sockaddr *)&to, sizeof(to)));
	R(error_of(s));
	R(to_peer(s));
	R(accept(same_listener, NULL, NULL) >= 0);
}

/* --- shutdown --- */

static void shut_twice(int fd[2])
{
	char c;

	R(shutdown(fd[0], 3));
	R(shutdown(fd[0], -1));
	R(shutdown(fd[0], SHUT_WR));
	R(shutdown(fd[0], SHUT_WR));
	R(read(fd[1], &c, 1));
	R(send(fd[0], "x", 1, MSG_NOSIGNAL));
	R(ready(fd[0]));
	R(shutdown(fd[1], SHUT_WR));
	same_sleep(20);
	R(shutdown(fd[1], SHUT_WR));
	R(shutdown(fd[1], SHUT_RD));
	R(shutdown(fd[0], SHUT_WR));
	R(ready(fd[0]));
	R(ready(fd[1]));
	R(read(fd[0], &c, 1));
}

/* Who has shut both ways is told of no end */
static void shut_told(int fd[2])
{
	R(shutdown(fd[0], SHUT_RDWR));
	R(shutdown(fd[1], SHUT_WR));
	same_sleep(20);
	R(shutdown(fd[0], SHUT_WR));
}

/* Before the other end has even been accepted */
static void shut_early(int fd[2])
{
	int s = fresh(0), a;
	char buf[8] = "";

	R(to_peer(s));
	R(write(s, "early", 5));
	R(shutdown(s, SHUT_WR));
	R(send(s, "x", 1, MSG_NOSIGNAL));
	a = accept(same_listener, NULL, NULL);
	R(recv(a, buf, 8, MSG_WAITALL));
	SHOW(buf, 5);
	R(recv(a, buf, 8, 0));
	R(write(a, "reply", 5));
	R(shutdown(a, SHUT_WR));
	R(recv(s, buf, 8, MSG_WAITALL));
	SHOW(buf, 5);
	s = fresh(0);
	R(to_peer(s));
	a = accept(same_listener, NULL, NULL);
	R(shutdown(a, SHUT_WR));
	R(recv(s, buf, 8, 0));
	R(write(s, "late", 4));
	R(recv(a, buf, 4, MSG_WAITALL));
}

static void shut_both(int fd[2])
{
	char c;

	put(fd[1], "abc");
	R(shutdown(fd[0], SHUT_RDWR));
	R(read(fd[0], &c, 1));
	R(read(fd[0], &c, 1));
	R(ready(fd[0]));
	same_sleep(5);
	R(read(fd[1], &c, 1));
	R(ready(fd[1]));
	R(shutdown(fd[1], SHUT_RDWR));
	R(read(fd[1], &c, 1));
	R(ready(fd[1]));
}

static void shut_read(int fd[2])
{
	char c;

	R(shutdown(fd[0], SHUT_RD));
	R(shutdown(fd[0], SHUT_RD));
	R(read(fd[0], &c, 1));
	R(ready(fd[0]));
	R(write(fd[0], "x", 1));
	R(read(fd[1], &c, 1));
	R(shutdown(fd[0], SHUT_WR));
	R(read(fd[1], &c, 1));
	R(close(fd[0]));
	R(close(fd[1]));
}

/* --- connect() to nowhere --- */

static void disconnect(int fd[2])
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	char c;
	int peer;

	put(fd[1], "abc");
	R(nowhere(fd[0]));
	same_sleep(5);
	R(read(fd[1], &c, 1));
	R(read(fd[1], &c, 1));
	R(getpeername(fd[0], (struct sockaddr *)&a, &len));
	R(read(fd[0], &c, 1));
	R(send(fd[0], "x", 1, MSG_NOSIGNAL));
	R(ready(fd[0]));
	R(nowhere(fd[0]));
	R(error_of(fd[0]));
	R(to_peer(fd[0]));
	peer = accept(same_listener, NULL, NULL);
	put(fd[0], "again");
	R(recv(peer, &c, 1, 0));
	put(peer, "x");
	R(recv(fd[0], &c, 1, 0));
}

static void nowhere_later(void *arg)
{
	if (nowhere(*(int *)arg))
		same_say("nowhere: %s", strerror(errno));
}

static void disconnect_reader(int fd[2])
{
	char c;

	same_later(50, nowhere_later, &fd[0]);
	/* EPIPE in Linux where it races, ECONNRESET where it does not */
	R(recv(fd[0], &c, 1, 0) < 0 && (errno == EPIPE || errno == ECONNRESET));
	same_join();
	R(to_peer(fd[0]));
	fd[1] = accept(same_listener, NULL, NULL);
	same_later(50, nowhere_later, &fd[0]);
	same_wait(fd[0], POLLIN);
	same_join();
	for (int i = 0; i < 20; i++) {
		if (to_peer(fd[0]))
			same_say("again: %s", strerror(errno));
		fd[1] = accept(same_listener, NULL, NULL);
		if (write(fd[0], "x", 1) != 1 || read(fd[1], &c, 1) != 1 || c != 'x')
			same_say("not the octet");
		close(fd[1]);
		nowhere(fd[0]);
	}
}

/* To nowhere and back, while another thread is in a call */
static void elsewhere(void *arg)
{
	int *fd = arg;

	if (nowhere(fd[0]) || to_peer(fd[0]))
		same_say("elsewhere: %s", strerror(errno));
	fd[1] = accept(same_listener, NULL, NULL);
	put(fd[1], "next");
}

/* What the next connection brings is not for a call that slept on the one before */
static void reconnect(int fd[2])
{
	static char much[8 << 20];
	int old = fd[1];
	char buf[8] = "";
	long sent;

	same_later(50, elsewhere, fd);
	/* As above */
	R(recv(fd[0], buf, 4, 0) < 0 && (errno == EPIPE || errno == ECONNRESET));
	same_join();
	R(recv(fd[0], buf, 4, 0));
	SHOW(buf, 4);
	close(old);
	old = fd[1];
	put(old, "p");
	same_later(50, elsewhere, fd);
	R(recv(fd[0], buf, 5, MSG_WAITALL));
	same_join();
	R(recv(fd[0], buf, 4, 0));
	SHOW(buf, 4);
	close(old);
	old = fd[1];
	same_later(50, elsewhere, fd);
	sent = send(fd[0], much, sizeof(much), 0);
	R(sent > 0 && sent < (long)sizeof(much));
	same_join();
	R(recv(fd[1], buf, 1, MSG_DONTWAIT));
	R(recv(fd[0], buf, 4, 0));
	R(error_of(fd[0]));
	close(old);
}

static void disconnect_listener(int fd[2])
{
	int s = fresh(0);

	R(nowhere(same_listener));
	R(to_peer(s));
	R(listen(same_listener, 5));
	R(nowhere(fresh(0)));
	R(nowhere(fd[1]));
	R(shutdown(fd[1], SHUT_WR));
}

/* --- not waiting --- */

static void later(int fd[2])
{
	int s = fresh(SOCK_NONBLOCK), a;
	char c;

	R(to_peer(s) < 0 ? errno : 0);
	a = accept(same_listener, NULL, NULL);
	R(recv(a, &c, 1, MSG_DONTWAIT));
	same_wait(s, POLLOUT);
	R(error_of(s));
	R(ready(s));
	/* Asked again it may say once that it is done */
	to_peer(s);
	R(to_peer(s));
	put(s, "x");
	R(recv(a, &c, 1, 0));
}

/* --- TCP Fast Open, deferred accept --- */

static void fast_open_send(int fd[2])
{
	int s = fresh(0), n = 5, a;
	char buf[8] = "";

	R(setsockopt(same_listener, IPPROTO_TCP, TCP_FASTOPEN, &n, sizeof(n)));
	R(sendto(s, "hello", 5, MSG_FASTOPEN, (struct sockaddr *)&same_addr, sizeof(same_addr)));
	a = accept(same_listener, NULL, NULL);
	R(recv(a, buf, 5, MSG_WAITALL));
	SHOW(buf, 5);
	put(a, "x");
	R(recv(s, buf, 1, 0));
	R(sendto(s, "hello", 5, MSG_FASTOPEN, (struct sockaddr *)&same_addr, sizeof(same_addr)));
	R(close(s));
	R(recv(a, buf, 1, 0));
}

static void fast_open_unasked(int fd[2])
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int s = fresh(0);

	R(sendto(s, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, NULL, 0) < 0);
	R(sendto(s, "x", 1, MSG_FASTOPEN, &none, sizeof(none)));
}

static void fast_open_connect(int fd[2])
{
	int s = fresh(0), on = 1, a;
	socklen_t len = sizeof(on);
	char buf[8] = "";

	R(setsockopt(s, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)));
	R(to_peer(s));
	R(send(s, "hello", 5, 0));
	a = accept(same_listener, NULL, NULL);
	R(recv(a, buf, 5, MSG_WAITALL));
	SHOW(buf, 5);
	put(a, "x");
	R(recv(s, buf, 1, 0));
	R(getsockopt(s, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, &len));
	same_say("%d", on);
	R(setsockopt(s, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)));
}

static void put_x(void *arg)
{
	put(*(int *)arg, "x");
}

static void defer_accept(int fd[2])
{
	int s = fresh(0), n = 10, a;
	char c;

	R(setsockopt(same_listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &n, sizeof(n)));
	R(to_peer(s));
	same_later(50, put_x, &s);
	a = accept(same_listener, NULL, NULL);
	same_say(a >= 0 ? "accepted" : "not accepted");
	R(recv(a, &c, 1, 0));
	put(a, "y");
	R(recv(s, &c, 1, 0));
}

static void defer_accept_early(int fd[2])
{
	int s = fresh(0), n = 10, a;

	setsockopt(same_listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &n, sizeof(n));
	to_peer(s);
	fcntl(same_listener, F_SETFL, O_NONBLOCK);
	same_sleep(20);
	a = accept(same_listener, NULL, NULL);
	same_say(a >= 0 ? "accepted" : "not accepted");
}

/* --- a network that goes away --- */

static void loopback(bool up)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = up ? IFF_UP : 0 };
	int fd = fresh(0);

	R(ioctl(fd, SIOCSIFFLAGS, &lo));
	close(fd);
}

/* A pair in a network of its own, which only root may have; false: there is none */
static bool own_network(int fd[2])
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	socklen_t len = sizeof(same_addr);

	if (R(unshare(CLONE_NEWNET)))
		return false;
	loopback(true);
	same_listener = fresh(0);
	R(bind(same_listener, (struct sockaddr *)&any, sizeof(any)));
	R(listen(same_listener, 5));
	R(getsockname(same_listener, (struct sockaddr *)&same_addr, &len));
	same_addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	same_pair(fd);
	return true;
}

static void user_timeout(int fd[2])
{
	int ms = 500;
	char c;

	if (!own_network(fd))
		return;
	R(setsockopt(fd[0], IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms)));
	loopback(false);
	R(write(fd[0], "x", 1));
	same_wait(fd[0], POLLIN);
	R(ready(fd[0]));
	R(read(fd[0], &c, 1));
	R(read(fd[0], &c, 1));
	R(send(fd[0], "x", 1, MSG_NOSIGNAL));
}

/*
 * Until the peer's TCP has acknowledged all that @fd sent: who waits for an acknowledgement sends
 * no probe, and one that is under way when the network goes is lost
 */
static void acknowledged(int fd)
{
	double end = same_now() + 30;
	struct tcp_info info = { .tcpi_unacked = 1 };
	socklen_t len;

	do {
		len = sizeof(info);
		if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
			break;
	} while (info.tcpi_unacked && same_now() < end && !usleep(1000));
	same_say("%u unacknowledged", info.tcpi_unacked);
}

/* One probe, a second after the last octet, and a second for its answer */
static void keepalive_soon(int fd)
{
	int one = 1;

	R(setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof(one)));
	R(setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one)));
	R(setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &one, sizeof(one)));
	R(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)));
}

/* Who only reads finds out that nobody is there; by poll(), and asleep in the call */
static void keepalive(int fd[2])
{
	double begin;
	char c;

	if (!own_network(fd))
		return;
	keepalive_soon(fd[0]);
	put(fd[1], "x");
	R(read(fd[0], &c, 1));
	begin = same_now();
	acknowledged(fd[0]);
	acknowledged(fd[1]);
	loopback(false);
	same_wait(fd[0], POLLIN);
	same_say("%s", same_now() - begin > 0.9 ? "after its time" : "too early");
	R(ready(fd[0]));
	R(read(fd[0], &c, 1));
	R(read(fd[0], &c, 1));
	keepalive_soon(fd[1]);
	R(read(fd[1], &c, 1));
	R(read(fd[1], &c, 1));
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		SAME("connect, listen and accept on a connection", twice),
		SAME("calls on no connection", unconnected),
		SAME("refused, and connected after that", refused),
		SAME("shutdown twice", shut_twice),
		SAME("shutdown before accept", shut_early),
		DIFFERS("shutdown of one way, both ways shut before", shut_told,
			"shutdown(fd[0], SHUT_RDWR): 0\n"
			"shutdown(fd[1], SHUT_WR): 0\n"
			"shutdown(fd[0], SHUT_WR): 0\n"),
		SAME("shutdown both ways", shut_both),
		SAME("shutdown of reading", shut_read),
		SAME("connect to nowhere disconnects", disconnect),
		SAME("connect to nowhere while a thread reads", disconnect_reader),
		SAME("connect to nowhere and back while a thread reads, or writes", reconnect),
		SAME("connect to nowhere of other sockets", disconnect_listener),
		SAME("connect without waiting", later),
		SAME("MSG_FASTOPEN", fast_open_send),
		SAME("MSG_FASTOPEN without an address", fast_open_unasked),
		SAME("TCP_FASTOPEN_CONNECT", fast_open_connect),
		SAME("TCP_DEFER_ACCEPT", defer_accept),
		SAME("TCP_USER_TIMEOUT", user_timeout),
		SAME("SO_KEEPALIVE", keepalive),
		DIFFERS("TCP_DEFER_ACCEPT waits for a Request", defer_accept_early, "accepted\n"),
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
