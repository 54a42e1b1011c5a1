/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Linux promises of stream sockets, call by call. Run by itself it checks the promises
 * against the kernel's TCP; under the launcher, Warpsock against the promises. It must pass both.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/tap.h"

/* Why the case at hand is no good */
#define need(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("# %s:%d: %s (errno %d)\n", __func__, __LINE__, #condition, errno); \
			return false;                                                              \
		}                                                                                  \
	} while (0)

static int lfd; /* listens */
static struct sockaddr_in laddr;
static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	signals++;
}

static void setup(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	socklen_t len = sizeof(laddr);

	laddr = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	lfd = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(lfd, (struct sockaddr *)&laddr, len) || listen(lfd, 16) ||
	    getsockname(lfd, (struct sockaddr *)&laddr, &len))
		exit(1);
	sigaction(SIGPIPE, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
}

/* Both ends of a connection: fd[0] connected, fd[1] was accepted */
static bool pair(int fd[2])
{
	char c;

	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	need(!connect(fd[0], (struct sockaddr *)&laddr, sizeof(laddr)));
	fd[1] = accept(lfd, NULL, NULL);
	need(fd[1] >= 0);
	/* One octet each way, so that the connection is up for both */
	need(write(fd[0], "a", 1) == 1 && read(fd[1], &c, 1) == 1 && c == 'a');
	need(write(fd[1], "b", 1) == 1 && read(fd[0], &c, 1) == 1 && c == 'b');
	return true;
}

static void done(int fd[2])
{
	close(fd[0]);
	close(fd[1]);
}

static short ready(int fd, short events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, ms) > 0 ? p.revents : 0;
}

static bool nonblock(int fd)
{
	return !fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Writes until nothing more fits; how much did */
static long stuff(int fd)
{
	static char buf[65536];
	long sum = 0, n;

	while ((n = send(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		sum += n;
	return errno == EAGAIN ? sum : -1;
}

static bool drain(int fd, long sum)
{
	static char buf[65536];

	while (sum > 0) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		need(n > 0);
		sum -= n;
	}
	return true;
}

/* --- data --- */

static bool one_thread(void)
{
	int fd[2] = { socket(AF_INET, SOCK_STREAM, 0), -1 };
	char buf[8] = "";

	need(!connect(fd[0], (struct sockaddr *)&laddr, sizeof(laddr)));
	need(write(fd[0], "early", 5) == 5);
	fd[1] = accept(lfd, NULL, NULL);
	need(read(fd[1], buf, sizeof(buf)) == 5 && !strcmp(buf, "early"));
	done(fd);
	return true;
}

static bool flags(void)
{
	char buf[16] = "";
	int fd[2];

	need(pair(fd));
	need(recv(fd[1], buf, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	need(write(fd[0], "0123456789", 10) == 10);
	need(recv(fd[1], buf, 4, MSG_PEEK) == 4 && !memcmp(buf, "0123", 4));
	need(recv(fd[1], buf, 6, MSG_PEEK) == 6 && !memcmp(buf, "012345", 6));
	need(recv(fd[1], buf, 4, 0) == 4 && !memcmp(buf, "0123", 4));
	need(recv(fd[1], buf, 4, MSG_TRUNC) == 4);
	need(recv(fd[1], buf, 16, 0) == 2 && !memcmp(buf, "89", 2));
	need(read(fd[1], buf, 0) == 0);
	need(recv(fd[1], buf, 1, MSG_OOB) < 0 && errno == EINVAL);
	done(fd);
	return true;
}

static void *write_slowly(void *arg)
{
	for (int i = 0; i < 5; i++) {
		usleep(10000);
		if (write(*(int *)arg, &"abcde"[i], 1) != 1)
			break;
	}
	return NULL;
}

static bool waitall(void)
{
	pthread_t thread;
	char buf[8] = "";
	int fd[2];

	need(pair(fd));
	pthread_create(&thread, NULL, write_slowly, &fd[0]);
	need(recv(fd[1], buf, 5, MSG_WAITALL) == 5 && !strcmp(buf, "abcde"));
	pthread_join(thread, NULL);
	done(fd);
	return true;
}

static bool vectors(void)
{
	char a[4] = "", b[8] = "";
	struct iovec out[3] = { { "one", 3 }, { "", 0 }, { "-two", 4 } };
	struct iovec in[2] = { { a, 3 }, { b, 7 } };
	struct msghdr msg = { .msg_iov = in, .msg_iovlen = 2 };
	int fd[2];

	need(pair(fd));
	need(writev(fd[0], out, 3) == 7);
	need(readv(fd[1], in, 2) == 7 && !strcmp(a, "one") && !strcmp(b, "-two"));
	memset(a, 0, sizeof(a));
	msg.msg_iov = out;
	msg.msg_iovlen = 3;
	need(sendmsg(fd[1], &msg, 0) == 7);
	msg.msg_iov = in;
	msg.msg_iovlen = 2;
	need(recvmsg(fd[0], &msg, MSG_PEEK) == 7 && !strcmp(a, "one"));
	need(recvmsg(fd[0], &msg, MSG_DONTWAIT) == 7 && !msg.msg_flags && !msg.msg_controllen);
	need(recvmsg(fd[0], &msg, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	done(fd);
	return true;
}

static bool file(void)
{
	char path[] = "/tmp/warpsock-calls-XXXXXX", buf[16] = "";
	int fd[2], in = mkstemp(path);
	off_t off = 2;

	unlink(path);
	need(pair(fd) && write(in, "0123456789", 10) == 10);
	need(sendfile(fd[0], in, &off, 4) == 4 && off == 6);
	need(recv(fd[1], buf, 16, 0) == 4 && !memcmp(buf, "2345", 4));
	need(lseek(in, 7, SEEK_SET) == 7);
	need(sendfile(fd[0], in, NULL, 100) == 3 && lseek(in, 0, SEEK_CUR) == 10);
	need(recv(fd[1], buf, 16, 0) == 3 && !memcmp(buf, "789", 3));
	need(sendfile(fd[0], in, NULL, 100) == 0);
	done(fd);
	close(in);
	return true;
}

static bool backpressure(void)
{
	int fd[2];
	long sum;

	need(pair(fd) && nonblock(fd[0]));
	sum = stuff(fd[0]);
	need(sum > 0);
	need(!(ready(fd[0], POLLOUT, 0) & POLLOUT));
	need(drain(fd[1], sum));
	need(ready(fd[0], POLLOUT, 1000) & POLLOUT);
	need(stuff(fd[0]) > 0);
	done(fd);
	return true;
}

static bool waits(void)
{
	struct timeval tv = { .tv_usec = 50000 };
	double begin = now();
	char c;
	int fd[2];

	need(pair(fd));
	need(!setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	need(read(fd[0], &c, 1) < 0 && errno == EAGAIN);
	need(now() - begin > 0.045 && now() - begin < 2);
	done(fd);
	return true;
}

static void alarm_in(int ms)
{
	struct itimerval timer = { .it_value.tv_usec = ms * 1000 };

	signals = 0;
	setitimer(ITIMER_REAL, &timer, NULL);
}

static bool interrupted(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd[2], ep = epoll_create1(0);
	char c;

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	alarm_in(20);
	need(read(fd[0], &c, 1) < 0 && errno == EINTR && signals == 1);
	alarm_in(20);
	need(poll(&(struct pollfd){ .fd = fd[0], .events = POLLIN }, 1, -1) < 0 && errno == EINTR);
	alarm_in(20);
	need(epoll_wait(ep, &e, 1, -1) < 0 && errno == EINTR && signals == 1);
	done(fd);
	close(ep);
	return true;
}

static bool options(void)
{
	struct sockaddr_in a, b;
	socklen_t len = sizeof(int), alen = sizeof(a), blen = sizeof(b);
	int fd[2], n = -1, on = 1, off = 0;

	need(pair(fd));
	need(!getsockopt(fd[0], SOL_SOCKET, SO_TYPE, &n, &len) && n == SOCK_STREAM);
	need(!getsockopt(fd[0], SOL_SOCKET, SO_ERROR, &n, &len) && n == 0);
	need(!getsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &n, &len) && n == 0);
	need(!setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
	need(!getsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &n, &len) && n == 1);
	need(!setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &off, sizeof(off)));
	need(!getsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &n, &len) && n == 0);
	need(getsockopt(fd[0], SOL_SOCKET, 9999, &n, &len) < 0 && errno == ENOPROTOOPT);
	need(!getpeername(fd[0], (struct sockaddr *)&a, &alen) && a.sin_port == laddr.sin_port);
	need(!getsockname(fd[0], (struct sockaddr *)&a, &alen));
	need(!getpeername(fd[1], (struct sockaddr *)&b, &blen) && a.sin_port == b.sin_port);
	need(write(fd[0], "12345", 5) == 5 && ready(fd[1], POLLIN, 1000));
	need(!ioctl(fd[1], FIONREAD, &n) && n == 5);
	need(!ioctl(fd[1], FIONBIO, &on) && fcntl(fd[1], F_GETFL) & O_NONBLOCK);
	done(fd);
	return true;
}

/* --- ends --- */

static bool half_close(void)
{
	int fd[2];
	char c;

	need(pair(fd));
	need(write(fd[0], "x", 1) == 1 && !shutdown(fd[0], SHUT_WR));
	need(read(fd[1], &c, 1) == 1 && read(fd[1], &c, 1) == 0 && read(fd[1], &c, 1) == 0);
	need(ready(fd[1], POLLIN | POLLRDHUP, 0) == (POLLIN | POLLRDHUP));
	need(write(fd[1], "y", 1) == 1 && read(fd[0], &c, 1) == 1 && c == 'y');
	signals = 0;
	need(send(fd[0], "z", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE && signals == 0);
	need(write(fd[0], "z", 1) < 0 && errno == EPIPE && signals == 1);
	close(fd[1]);
	need(read(fd[0], &c, 1) == 0);
	close(fd[0]);
	return true;
}

static bool peer_closed(void)
{
	int fd[2];
	char c;

	need(pair(fd));
	need(write(fd[0], "last", 4) == 4);
	close(fd[0]);
	usleep(20000);
	need(read(fd[1], &c, 1) == 1 && c == 'l');
	need(drain(fd[1], 3));
	need(read(fd[1], &c, 1) == 0);
	for (int i = 0; i < 50 && send(fd[1], "x", 1, MSG_NOSIGNAL) > 0; i++)
		usleep(1000);
	need(send(fd[1], "x", 1, MSG_NOSIGNAL) < 0 && (errno == EPIPE || errno == ECONNRESET));
	close(fd[1]);
	return true;
}

static bool reset_by(bool unread)
{
	struct linger hard = { 1, 0 };
	int fd[2];
	char c;

	need(pair(fd));
	if (unread)
		need(write(fd[0], "unread", 6) == 6 && ready(fd[1], POLLIN, 1000));
	else
		need(!setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)));
	close(fd[1]);
	usleep(20000);
	need(ready(fd[0], POLLIN, 1000) & POLLIN);
	need(read(fd[0], &c, 1) < 0 && errno == ECONNRESET);
	need(read(fd[0], &c, 1) == 0);
	close(fd[0]);
	return true;
}

static bool reset_unread(void)
{
	return reset_by(true);
}

static bool reset_hard(void)
{
	return reset_by(false);
}

static bool shut_read(void)
{
	int fd[2];
	char c;

	need(pair(fd));
	need(!shutdown(fd[0], SHUT_RD) && read(fd[0], &c, 1) == 0);
	need(write(fd[0], "x", 1) == 1 && read(fd[1], &c, 1) == 1);
	need(shutdown(fd[0], 77) < 0 && errno == EINVAL);
	done(fd);
	return true;
}

/* --- connecting --- */

static bool connect_later(void)
{
	int fd[2] = { socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), -1 }, n = -1;
	struct sockaddr *to = (struct sockaddr *)&laddr;
	socklen_t len = sizeof(n);
	char c;

	need(connect(fd[0], to, sizeof(laddr)) < 0 && errno == EINPROGRESS);
	fd[1] = accept4(lfd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	need(fd[1] >= 0 && fcntl(fd[1], F_GETFL) & O_NONBLOCK && fcntl(fd[1], F_GETFD));
	need(read(fd[1], &c, 1) < 0 && errno == EAGAIN);
	need(ready(fd[0], POLLOUT, 1000) == POLLOUT);
	need(!getsockopt(fd[0], SOL_SOCKET, SO_ERROR, &n, &len) && n == 0);
	connect(fd[0], to, sizeof(laddr));
	need(connect(fd[0], to, sizeof(laddr)) < 0 && errno == EISCONN);
	need(write(fd[0], "x", 1) == 1 && ready(fd[1], POLLIN, 1000) && read(fd[1], &c, 1) == 1);
	done(fd);
	return true;
}

static bool connect_refused(void)
{
	struct sockaddr_in a = laddr;
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0), n = 0;

	a.sin_port = 0;
	need(!bind(fd, (struct sockaddr *)&a, len) &&
	     !getsockname(fd, (struct sockaddr *)&a, &len));
	close(fd);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	need(connect(fd, (struct sockaddr *)&a, len) < 0 && errno == ECONNREFUSED);
	close(fd);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (connect(fd, (struct sockaddr *)&a, len) < 0 && errno == ECONNREFUSED) {
		close(fd);
		return true;
	}
	need(ready(fd, POLLOUT, 1000) & POLLERR);
	len = sizeof(n);
	need(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &n, &len) && n == ECONNREFUSED);
	close(fd);
	return true;
}

/* --- epoll --- */

static int wait_one(int ep, struct epoll_event *e, int ms)
{
	memset(e, 0, sizeof(*e));
	return epoll_wait(ep, e, 1, ms);
}

static bool epoll_errors(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd[2], ep = epoll_create1(0);

	need(pair(fd));
	need(epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], &e) < 0 && errno == ENOENT);
	need(epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], &e) < 0 && errno == ENOENT);
	need(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	need(epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e) < 0 && errno == EEXIST);
	need(epoll_ctl(ep, EPOLL_CTL_MOD, fd[1], &e) < 0 && errno == ENOENT);
	need(epoll_ctl(ep, 77, fd[0], &e) < 0 && errno == EINVAL);
	need(epoll_wait(9999, &e, 1, 0) < 0 && errno == EBADF);
	need(epoll_wait(fd[0], &e, 1, 0) < 0 && errno == EINVAL);
	need(epoll_wait(ep, &e, 0, 0) < 0 && errno == EINVAL);
	need(epoll_ctl(fd[0], EPOLL_CTL_ADD, fd[1], &e) < 0 && errno == EINVAL);
	need(!epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], NULL));
	need(epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], NULL) < 0 && errno == ENOENT);
	done(fd);
	return !close(ep);
}

static bool epoll_level(void)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = 0x123456789abcdef0 };
	int fd[2], ep = epoll_create1(0);
	char c;

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	need(wait_one(ep, &e, 0) == 0);
	need(write(fd[1], "xy", 2) == 2);
	for (int i = 0; i < 3; i++)
		need(wait_one(ep, &e, 1000) == 1 && e.events == EPOLLIN &&
		     e.data.u64 == 0x123456789abcdef0);
	need(read(fd[0], &c, 1) == 1 && wait_one(ep, &e, 0) == 1);
	need(read(fd[0], &c, 1) == 1 && wait_one(ep, &e, 0) == 0);
	e = (struct epoll_event){ .events = EPOLLOUT };
	need(!epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], &e));
	need(wait_one(ep, &e, 0) == 1 && e.events == EPOLLOUT && e.data.u64 == 0);
	e = (struct epoll_event){ .events = EPOLLIN | EPOLLRDHUP };
	need(!epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], &e) && wait_one(ep, &e, 0) == 0);
	need(!shutdown(fd[1], SHUT_WR));
	need(wait_one(ep, &e, 1000) == 1 && e.events == (EPOLLIN | EPOLLRDHUP));
	done(fd);
	return !close(ep);
}

static bool epoll_edge(void)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	int fd[2], ep = epoll_create1(0);
	char c;

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	need(wait_one(ep, &e, 0) == 0);
	need(write(fd[1], "xy", 2) == 2);
	need(wait_one(ep, &e, 1000) == 1 && wait_one(ep, &e, 20) == 0);
	need(read(fd[0], &c, 1) == 1 && wait_one(ep, &e, 0) == 0);
	need(write(fd[1], "z", 1) == 1 && wait_one(ep, &e, 1000) == 1);
	need(wait_one(ep, &e, 0) == 0);
	e = (struct epoll_event){ .events = EPOLLIN | EPOLLET };
	need(!epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], &e));
	need(wait_one(ep, &e, 0) == 1 && wait_one(ep, &e, 0) == 0);
	done(fd);
	return !close(ep);
}

static bool epoll_edge_out(void)
{
	struct epoll_event e = { .events = EPOLLOUT | EPOLLET };
	int fd[2], ep = epoll_create1(0);
	long sum;

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	need(wait_one(ep, &e, 0) == 1 && e.events == EPOLLOUT && wait_one(ep, &e, 0) == 0);
	sum = stuff(fd[0]);
	need(sum > 0);
	while (wait_one(ep, &e, 20) == 1)
		sum += stuff(fd[0]);
	need(drain(fd[1], sum));
	need(wait_one(ep, &e, 1000) == 1 && e.events == EPOLLOUT);
	done(fd);
	return !close(ep);
}

static bool epoll_once(void)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLONESHOT };
	int fd[2], ep = epoll_create1(0);

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	need(write(fd[1], "x", 1) == 1 && wait_one(ep, &e, 1000) == 1);
	need(wait_one(ep, &e, 20) == 0);
	need(write(fd[1], "y", 1) == 1 && wait_one(ep, &e, 20) == 0);
	e = (struct epoll_event){ .events = EPOLLIN | EPOLLONESHOT };
	need(!epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], &e) && wait_one(ep, &e, 0) == 1);
	done(fd);
	return !close(ep);
}

static bool epoll_mixed(void)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = 1 }, got[4];
	int fd[2], pipes[2], ep = epoll_create1(0);
	char c;

	need(pair(fd) && !pipe(pipes) && !epoll_ctl(ep, EPOLL_CTL_ADD, pipes[0], &e));
	e.data.u32 = 2;
	need(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	e.data.u32 = 3;
	need(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[1], &e));
	need(write(pipes[1], "p", 1) == 1 && wait_one(ep, got, 0) == 1 && got[0].data.u32 == 1);
	need(write(fd[1], "s", 1) == 1 && ready(fd[0], POLLIN, 1000));
	need(epoll_wait(ep, got, 4, 100) == 2 && got[0].data.u32 + got[1].data.u32 == 3);
	need(epoll_wait(ep, got, 1, 100) == 1);
	need(read(pipes[0], &c, 1) == 1);
	need(epoll_pwait(ep, got, 4, 0, NULL) == 1 && got[0].data.u32 == 2);
	close(fd[0]);
	need(wait_one(ep, got, 1000) == 1 && got[0].data.u32 == 3);
	close(fd[1]);
	need(wait_one(ep, got, 20) == 0);
	close(pipes[0]);
	close(pipes[1]);
	return !close(ep);
}

/* --- threads and processes --- */

static void *write_later(void *arg)
{
	usleep(30000);
	if (write(*(int *)arg, "t", 1) != 1)
		perror("write");
	return NULL;
}

/* Another thread takes the octets in while this one sleeps; both sleepers must hear of theirs */
static void *read_one(void *arg)
{
	char c;

	return read(*(int *)arg, &c, 1) == 1 ? arg : NULL;
}

static bool two_readers(void)
{
	pthread_t threads[2];
	void *got[2];
	int fd[2];

	need(pair(fd));
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, read_one, &fd[0]);
	usleep(20000);
	need(write(fd[1], "12", 2) == 2);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], &got[i]);
	need(got[0] && got[1]);
	done(fd);
	return true;
}

static bool sleeping_set(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd[2], ep = epoll_create1(0);
	pthread_t thread;

	need(pair(fd));
	pthread_create(&thread, NULL, write_later, &fd[1]);
	need(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	need(wait_one(ep, &e, 2000) == 1);
	pthread_join(thread, NULL);
	done(fd);
	return !close(ep);
}

static bool child(void)
{
	int fd[2], status;
	char buf[8] = "";
	pid_t pid;

	need(pair(fd));
	pid = fork();
	if (pid == 0) {
		close(fd[0]);
		_exit(read(fd[1], buf, 5) == 5 && write(fd[1], buf, 5) == 5 ? 0 : 1);
	}
	close(fd[1]);
	need(write(fd[0], "child", 5) == 5);
	need(recv(fd[0], buf, 5, MSG_WAITALL) == 5 && !strcmp(buf, "child"));
	need(read(fd[0], buf, 1) == 0);
	need(waitpid(pid, &status, 0) == pid && status == 0);
	close(fd[0]);
	return true;
}

/* --- select --- */

static bool selected(void)
{
	struct timeval tv = { .tv_usec = 30000 };
	int fd[2], pipes[2];
	fd_set in, out;

	need(pair(fd) && !pipe(pipes));
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(fd[0], &in);
	FD_SET(pipes[0], &in);
	need(select(FD_SETSIZE, &in, NULL, NULL, &tv) == 0 && !tv.tv_sec && !tv.tv_usec);
	need(!FD_ISSET(fd[0], &in) && !FD_ISSET(pipes[0], &in));
	need(write(fd[1], "x", 1) == 1 && write(pipes[1], "y", 1) == 1);
	need(ready(fd[0], POLLIN, 1000));
	FD_SET(fd[0], &in);
	FD_SET(pipes[0], &in);
	FD_SET(fd[0], &out);
	tv.tv_sec = 5;
	need(select(FD_SETSIZE, &in, &out, NULL, &tv) == 3 && tv.tv_sec >= 4);
	need(FD_ISSET(fd[0], &in) && FD_ISSET(pipes[0], &in) && FD_ISSET(fd[0], &out));
	done(fd);
	close(pipes[0]);
	close(pipes[1]);
	return true;
}

int main(void)
{
	static const struct {
		const char *name;
		bool (*run)(void);
	} cases[] = {
		{ "one thread is both ends", one_thread },
		{ "recv flags", flags },
		{ "MSG_WAITALL", waitall },
		{ "readv, writev, sendmsg, recvmsg", vectors },
		{ "sendfile", file },
		{ "a full connection and its end", backpressure },
		{ "SO_RCVTIMEO", waits },
		{ "signals interrupt", interrupted },
		{ "options and names", options },
		{ "half-close", half_close },
		{ "the peer has closed", peer_closed },
		{ "close with octets unread resets", reset_unread },
		{ "SO_LINGER 0 resets", reset_hard },
		{ "SHUT_RD", shut_read },
		{ "non-blocking connect", connect_later },
		{ "refused connect", connect_refused },
		{ "epoll: errors", epoll_errors },
		{ "epoll: level", epoll_level },
		{ "epoll: edge", epoll_edge },
		{ "epoll: edge of room", epoll_edge_out },
		{ "epoll: one shot", epoll_once },
		{ "epoll: mixed members", epoll_mixed },
		{ "two readers of one socket", two_readers },
		{ "a thread wakes a set", sleeping_set },
		{ "a child serves a connection", child },
		{ "select", selected },
	};

	setup();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		alarm(0);
		tap_case(cases[i].run(), cases[i].name);
	}
	return tap_finish();
}
