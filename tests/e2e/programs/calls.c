/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Linux promises of stream sockets, call by call: octets, ends, connecting. Run by itself it
 * checks the promises against the kernel's TCP; under the launcher, Warpsock against the promises.
 */
#include "tests/e2e/programs/calls.h"

#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

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

/* The writer never calls again, in every state that a full kernel may leave it in */
static bool accepted_leaves(void)
{
	for (int room = 4000; room < 12000; room += 400) {
		int fd[2];
		long sum;

		need(pair(fd) && nonblock(fd[0]));
		setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
		sum = stuff(fd[0]);
		need(sum > 0 && drain(fd[1], sum));
		done(fd);
	}
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

int main(void)
{
	static const struct call_case cases[] = {
		{ "one thread is both ends", one_thread },
		{ "recv flags", flags },
		{ "MSG_WAITALL", waitall },
		{ "readv, writev, sendmsg, recvmsg", vectors },
		{ "sendfile", file },
		{ "a full connection and its end", backpressure },
		{ "what was accepted leaves without another call", accepted_leaves },
		{ "SO_RCVTIMEO", waits },
		{ "options and names", options },
		{ "half-close", half_close },
		{ "the peer has closed", peer_closed },
		{ "close with octets unread resets", reset_unread },
		{ "SO_LINGER 0 resets", reset_hard },
		{ "SHUT_RD", shut_read },
		{ "non-blocking connect", connect_later },
		{ "refused connect", connect_refused },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
