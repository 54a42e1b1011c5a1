/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MSG_ flags, iovecs, buffers that are none, and what recvmsg() says besides the octets.
 */
#include <limits.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "tests/e2e/programs/same.h"

static char big[65536];
/* Addresses that a compiler must not know */
static volatile int minus = -1;
static char *volatile none, *volatile low = (char *)16, *volatile far = (char *)-4096;

static void put(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		same_say("put: %s", strerror(errno));
	same_sleep(5);
}

/* --- reading --- */

static void peek(int fd[2])
{
	char buf[16] = "", a[4] = "", b[8] = "";
	struct iovec in[2] = { { a, 3 }, { b, 7 } };
	struct msghdr msg = { .msg_iov = in, .msg_iovlen = 2 };

	R(recv(fd[1], buf, 4, MSG_PEEK | MSG_DONTWAIT));
	put(fd[0], "0123456789");
	for (int i = 0; i < 3; i++) {
		R(recv(fd[1], buf, (size_t)(2 + i), MSG_PEEK));
		SHOW(buf, 2 + i);
	}
	R(recvmsg(fd[1], &msg, MSG_PEEK));
	SHOW(a, 3);
	SHOW(b, 7);
	put(fd[0], "ab");
	R(recv(fd[1], buf, 16, MSG_PEEK));
	SHOW(buf, 12);
	R(recv(fd[1], buf, 11, 0));
	R(recv(fd[1], buf, 16, MSG_PEEK));
	SHOW(buf, 1);
	R(recv(fd[1], buf, 16, MSG_PEEK | MSG_TRUNC));
	R(recv(fd[1], buf, 16, 0));
	R(recv(fd[1], buf, 16, MSG_PEEK | MSG_DONTWAIT));
	shutdown(fd[0], SHUT_WR);
	same_sleep(5);
	R(recv(fd[1], buf, 16, MSG_PEEK));
	R(recv(fd[1], buf, 16, MSG_PEEK | MSG_WAITALL));
}

static void write_parts(void *arg)
{
	for (int i = 0; i < 5; i++) {
		same_sleep(10);
		if (write(*(int *)arg, &"abcde"[i], 1) != 1)
			same_say("write: %s", strerror(errno));
	}
}

static void peek_waitall(int fd[2])
{
	char buf[8] = "";

	same_later(5, write_parts, &fd[0]);
	R(recv(fd[1], buf, 5, MSG_PEEK | MSG_WAITALL));
	SHOW(buf, 5);
	R(recv(fd[1], buf, 5, 0));
	SHOW(buf, 5);
}

static void waitall(int fd[2])
{
	char a[4] = "", b[4] = "";
	struct iovec in[2] = { { a, 2 }, { b, 3 } };
	struct msghdr msg = { .msg_iov = in, .msg_iovlen = 2 };

	same_later(5, write_parts, &fd[0]);
	R(recvmsg(fd[1], &msg, MSG_WAITALL));
	SHOW(a, 2);
	SHOW(b, 3);
	put(fd[0], "x");
	R(recv(fd[1], a, 3, MSG_WAITALL | MSG_DONTWAIT));
	R(recv(fd[1], a, 3, MSG_WAITALL | MSG_DONTWAIT));
	same_nonblock(fd[1]);
	put(fd[0], "yz");
	R(recv(fd[1], a, 3, MSG_WAITALL));
}

static void shut_write(void *arg)
{
	shutdown(*(int *)arg, SHUT_WR);
}

static void waitall_end(int fd[2])
{
	char buf[8];

	put(fd[0], "xyz");
	same_later(20, shut_write, &fd[0]);
	R(recv(fd[1], buf, 5, MSG_WAITALL));
	R(recv(fd[1], buf, 5, MSG_WAITALL));
}

static void reset(void *arg)
{
	struct linger hard = { 1, 0 };

	setsockopt(*(int *)arg, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(*(int *)arg);
}

static void waitall_reset(int fd[2])
{
	char buf[8];

	put(fd[0], "xyz");
	same_later(20, reset, &fd[0]);
	R(recv(fd[1], buf, 5, MSG_WAITALL));
	R(recv(fd[1], buf, 5, MSG_WAITALL));
	R(recv(fd[1], buf, 5, MSG_WAITALL));
}

static void waitall_signal(int fd[2])
{
	struct sigaction action = { .sa_handler = SIG_IGN };
	struct itimerval once = { .it_value.tv_usec = 50000 };
	char buf[8];

	sigaction(SIGPIPE, &action, NULL);
	put(fd[0], "xyz");
	setitimer(ITIMER_REAL, &once, NULL);
	R(recv(fd[1], buf, 5, MSG_WAITALL));
	setitimer(ITIMER_REAL, &once, NULL);
	R(recv(fd[1], buf, 5, MSG_WAITALL));
	same_say("signals %d", same_signals);
}

static void waitall_time(int fd[2])
{
	struct timeval tv = { .tv_usec = 50000 };
	double begin = same_now();
	char buf[8];

	setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	put(fd[0], "xyz");
	R(recv(fd[1], buf, 5, MSG_WAITALL));
	same_took(begin, 50);
	R(recv(fd[1], buf, 5, MSG_WAITALL));
}

static void discard(int fd[2])
{
	char buf[8] = "....";

	put(fd[0], "0123456789");
	R(recv(fd[1], buf, 4, MSG_TRUNC));
	SHOW(buf, 4);
	R(recv(fd[1], none, 2, MSG_TRUNC));
	R(recv(fd[1], buf, 8, 0));
	SHOW(buf, 4);
	put(fd[0], "ab");
	R(recv(fd[1], buf, 4, MSG_TRUNC | MSG_WAITALL | MSG_DONTWAIT));
	R(recv(fd[1], buf, 4, MSG_TRUNC | MSG_DONTWAIT));
}

static void unblocked(int fd[2])
{
	char buf[8];

	R(recv(fd[1], buf, 8, MSG_DONTWAIT));
	put(fd[0], "x");
	R(recv(fd[1], buf, 8, MSG_ERRQUEUE));
	R(recv(fd[1], buf, 8, MSG_OOB));
	R(recv(fd[1], buf, 8, MSG_DONTWAIT));
	same_nonblock(fd[1]);
	R(read(fd[1], buf, 8));
	R(recv(fd[1], buf, 8, 0));
	R(recv(fd[1], buf, 8, MSG_ERRQUEUE));
	R(recv(fd[1], buf, 8, MSG_ERRQUEUE | MSG_PEEK));
	R(recv(fd[1], buf, 8, MSG_OOB));
	R(recv(fd[1], buf, 8, MSG_OOB | MSG_DONTWAIT));
}

static void nothing(int fd[2])
{
	struct iovec hollow[2] = { { big, 0 }, { NULL, 0 } };
	struct msghdr msg = { .msg_iov = hollow, .msg_iovlen = 2 };
	struct msghdr empty = { .msg_iov = NULL };

	for (int i = 0; i < 2; i++) {
		R(read(fd[1], big, 0));
		R(read(fd[1], none, 0));
		R(readv(fd[1], hollow, 2));
		R(readv(fd[1], hollow, 0));
		R(readv(fd[1], (struct iovec *)none, 0));
		R(recv(fd[1], big, 0, MSG_DONTWAIT));
		R(recv(fd[1], none, 0, MSG_DONTWAIT));
		R(recv(fd[1], none, 0, MSG_DONTWAIT | MSG_PEEK));
		R(recvmsg(fd[1], &msg, MSG_DONTWAIT));
		R(recvmsg(fd[1], &empty, MSG_DONTWAIT));
		put(fd[0], "x");
	}
	R(write(fd[0], big, 0));
	R(write(fd[0], none, 0));
	R(writev(fd[0], hollow, 2));
	R(writev(fd[0], (struct iovec *)none, 0));
	R(send(fd[0], none, 0, 0));
	R(sendmsg(fd[0], &empty, 0));
	R(recv(fd[1], big, 9, MSG_DONTWAIT));
	shutdown(fd[0], SHUT_WR);
	R(recv(fd[1], none, 0, 0));
	R(write(fd[0], big, 0));
	R(writev(fd[0], hollow, 2));
	R(send(fd[0], none, 0, 0));
	R(send(fd[0], none, 0, MSG_NOSIGNAL));
	same_say("signals %d", same_signals);
}

static void many(int fd[2])
{
	static struct iovec iov[1025];
	struct msghdr msg = { .msg_iov = iov };

	for (int i = 0; i < 1025; i++)
		iov[i] = (struct iovec){ &big[i], 1 };
	memset(big, 'm', sizeof(big));
	R(writev(fd[0], iov, 1024));
	R(writev(fd[0], iov, 1025));
	R(writev(fd[0], iov, minus));
	msg.msg_iovlen = 1024;
	R(sendmsg(fd[0], &msg, 0));
	msg.msg_iovlen = 1025;
	R(sendmsg(fd[0], &msg, 0));
	R(recvmsg(fd[1], &msg, MSG_DONTWAIT));
	same_sleep(5);
	R(readv(fd[1], iov, 1025));
	R(readv(fd[1], iov, minus));
	msg.msg_iovlen = 1024;
	R(recvmsg(fd[1], &msg, MSG_WAITALL));
	R(recvmsg(fd[1], &msg, MSG_WAITALL));
	R(write(fd[0], big, 2000));
	same_wait(fd[1], POLLIN);
	R(recvmsg(fd[1], &msg, MSG_PEEK));
	R(readv(fd[1], iov, 1024));
	R(recvmsg(fd[1], &msg, MSG_WAITALL | MSG_DONTWAIT));
	R(recvmsg(fd[1], &msg, MSG_DONTWAIT));
}

static void huge(int fd[2])
{
	size_t room = (size_t)1 << 20;
	char *p = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec over[3] = { { p, room }, { p, (size_t)INT_MAX }, { p, (size_t)INT_MAX } };
	struct iovec negative[2] = { { p, 1 }, { p, (size_t)-1 } };
	struct msghdr msg = { .msg_iov = negative, .msg_iovlen = 2 };

	R(readv(fd[1], negative, 2));
	R(writev(fd[0], negative, 2));
	R(sendmsg(fd[0], &msg, 0));
	R(recvmsg(fd[1], &msg, MSG_DONTWAIT));
	put(fd[0], "0123456789");
	R(readv(fd[1], over, 3));
	R(read(fd[1], p, 0));
	put(fd[0], "0123456789");
	R(recv(fd[1], p, (size_t)INT_MAX + 4096, 0));
	put(fd[0], "0123456789");
	R(read(fd[1], p, SSIZE_MAX / 2));
}

/* --- buffers that are none --- */

static void bad_read(int fd[2])
{
	struct iovec iov[2] = { { big, 4 }, { NULL, 4 } };
	struct msghdr msg = { .msg_iov = NULL, .msg_iovlen = 1 };
	char buf[16] = "";

	R(recv(fd[1], none, 4, MSG_DONTWAIT));
	R(recv(fd[1], far, 4, MSG_DONTWAIT));
	R(readv(fd[1], (struct iovec *)none, 1));
	R(recvmsg(fd[1], (struct msghdr *)none, MSG_DONTWAIT));
	R(recvmsg(fd[1], &msg, MSG_DONTWAIT));
	put(fd[0], "01234567");
	R(recv(fd[1], none, 4, 0));
	R(recv(fd[1], far, 4, 0));
	R(read(fd[1], none, 4));
	R(read(fd[1], low, 4));
	R(recv(fd[1], none, 4, MSG_PEEK));
	R(recv(fd[1], buf, 4, 0));
	SHOW(buf, 4);
	iov[0].iov_base = NULL;
	R(readv(fd[1], iov, 2));
	R(recv(fd[1], buf, 16, 0));
	SHOW(buf, 4);
	shutdown(fd[0], SHUT_WR);
	same_sleep(5);
	R(recv(fd[1], none, 4, 0));
}

static void bad_write(int fd[2])
{
	struct iovec iov[2] = { { NULL, 4 }, { big, 4 } };
	struct msghdr msg = { .msg_iov = NULL, .msg_iovlen = 1 };

	R(send(fd[0], none, 4, 0));
	R(send(fd[0], far, 4, 0));
	R(write(fd[0], none, 4));
	R(write(fd[0], low, 4));
	R(writev(fd[0], (struct iovec *)none, 1));
	R(writev(fd[0], iov, 2));
	R(sendmsg(fd[0], (struct msghdr *)none, 0));
	R(sendmsg(fd[0], &msg, 0));
	put(fd[0], "end");
	R(recv(fd[1], big, 16, MSG_DONTWAIT));
	SHOW(big, 3);
	shutdown(fd[0], SHUT_WR);
	R(send(fd[0], none, 4, MSG_NOSIGNAL));
}

/* Not NULL, and nothing is there all the same */
static void unmapped(int fd[2])
{
	char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(p, 4096);
	R(send(fd[0], p, 100, 0));
}

/* --- writing --- */

static void more(int fd[2])
{
	char buf[64] = "";
	int on = 1, off = 0;

	R(send(fd[0], "a", 1, MSG_MORE));
	R(send(fd[0], "b", 1, 0));
	same_sleep(5);
	R(recv(fd[1], buf, 64, 0));
	R(setsockopt(fd[0], IPPROTO_TCP, TCP_CORK, &on, sizeof(on)));
	R(write(fd[0], "c", 1));
	R(write(fd[0], "d", 1));
	R(setsockopt(fd[0], IPPROTO_TCP, TCP_CORK, &off, sizeof(off)));
	same_sleep(5);
	R(recv(fd[1], buf, 64, 0));
	SHOW(buf, 2);
	/* What is never followed by anything leaves all the same */
	R(send(fd[0], "e", 1, MSG_MORE));
	same_wait(fd[1], POLLIN);
	R(recv(fd[1], buf, 64, 0));
	R(send(fd[0], "f", 1, MSG_MORE));
	R(close(fd[0]));
	same_wait(fd[1], POLLIN);
	R(recv(fd[1], buf, 64, MSG_WAITALL));
}

static void more_now(int fd[2])
{
	char buf[4];
	int on = 1;

	R(send(fd[0], "a", 1, MSG_MORE));
	R(recv(fd[1], buf, 4, MSG_DONTWAIT));
	setsockopt(fd[0], IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
	R(write(fd[0], "b", 1));
	R(recv(fd[1], buf, 4, MSG_DONTWAIT));
}

static void harmless(int fd[2])
{
	char buf[16] = "";

	R(send(fd[0], "a", 1, MSG_EOR));
	R(send(fd[0], "b", 1, MSG_CONFIRM));
	R(send(fd[0], "c", 1, MSG_DONTROUTE));
	R(send(fd[0], "d", 1, MSG_DONTWAIT | MSG_NOSIGNAL));
	R(send(fd[0], "e", 1, MSG_ZEROCOPY));
	R(send(fd[0], "f", 1, MSG_PEEK | MSG_WAITALL | MSG_TRUNC | MSG_CMSG_CLOEXEC));
	R(send(fd[0], "g", 1, MSG_ERRQUEUE));
	same_sleep(5);
	R(recv(fd[1], buf, 1, MSG_NOSIGNAL | MSG_EOR | MSG_CONFIRM | MSG_MORE | MSG_DONTROUTE));
	R(recv(fd[1], buf, 6, MSG_CMSG_CLOEXEC | MSG_WAITALL));
	SHOW(buf, 6);
}

/* Names that libc has for calls besides, and those that a compiler puts in their place */
ssize_t __read(int fd, void *buf, size_t len);
ssize_t __write(int fd, const void *buf, size_t len);
ssize_t __send(int fd, const void *buf, size_t len, int flags);
ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags, struct sockaddr *from,
		       socklen_t *fromlen);

static void other_names(int fd[2])
{
	char buf[4];

	R(__write(fd[0], "ab", 2));
	R(__send(fd[0], "cde", 3, 0));
	same_sleep(5);
	R(__read(fd[1], buf, 1));
	R(__read_chk(fd[1], buf, 1, 4));
	R(__recv_chk(fd[1], buf, 1, 4, 0));
	R(__recvfrom_chk(fd[1], buf, 1, 4, 0, NULL, NULL));
	SHOW(buf, 1);
	R(__recv_chk(fd[1], buf, 4, 4, MSG_DONTWAIT));
	/* More than there is room for ends the program */
	R(__read_chk(fd[1], buf, 5, 4));
}

static void broken_pipe(int fd[2])
{
	struct iovec iov = { "x", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	shutdown(fd[0], SHUT_WR);
	R(send(fd[0], "x", 1, MSG_NOSIGNAL));
	R(sendmsg(fd[0], &msg, MSG_NOSIGNAL));
	R(sendto(fd[0], "x", 1, MSG_NOSIGNAL, NULL, 0));
	same_say("signals %d", same_signals);
	R(send(fd[0], "x", 1, 0));
	R(sendmsg(fd[0], &msg, 0));
	R(write(fd[0], "x", 1));
	R(writev(fd[0], &iov, 1));
	same_say("signals %d", same_signals);
}

static void urgent(int fd[2])
{
	char buf[4];

	R(send(fd[0], "u", 1, MSG_OOB));
	same_sleep(5);
	R(recv(fd[1], buf, 1, MSG_OOB));
	R(recv(fd[1], buf, 1, MSG_DONTWAIT));
}

static void addressed(int fd[2])
{
	struct sockaddr_in to = same_addr;
	struct sockaddr_storage wide = { .ss_family = AF_UNSPEC };
	char buf[16] = "";

	R(sendto(fd[0], "a", 1, 0, (struct sockaddr *)&to, sizeof(to)));
	R(sendto(fd[0], "b", 1, 0, (struct sockaddr *)&to, 1));
	R(sendto(fd[0], "c", 1, 0, (struct sockaddr *)&wide, sizeof(wide)));
	R(sendto(fd[0], "d", 1, 0, (struct sockaddr *)&wide, sizeof(wide) + 1));
	R(sendto(fd[0], "e", 1, 0, (struct sockaddr *)&wide, (socklen_t)-1));
	R(sendto(fd[0], "f", 1, 0, (struct sockaddr *)none, 16));
	R(sendto(fd[0], "g", 1, MSG_FASTOPEN, (struct sockaddr *)&to, sizeof(to)));
	R(sendto(fd[0], "h", 1, MSG_FASTOPEN, (struct sockaddr *)&wide, sizeof(wide)));
	R(sendto(fd[0], "i", 1, MSG_FASTOPEN, NULL, 0));
	R(recv(fd[1], buf, 4, MSG_WAITALL));
	SHOW(buf, 4);
	R(recv(fd[1], buf, 4, MSG_DONTWAIT));
}

static void from(int fd[2])
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	char buf[8];

	put(fd[0], "abcd");
	R(recvfrom(fd[1], buf, 1, 0, (struct sockaddr *)&a, &len));
	same_say("length %u", len);
	len = sizeof(a);
	R(recvfrom(fd[1], buf, 1, 0, NULL, &len));
	same_say("length %u", len);
	R(recvfrom(fd[1], buf, 1, 0, (struct sockaddr *)&a, (socklen_t *)none));
	len = (socklen_t)-1;
	R(recvfrom(fd[1], buf, 1, MSG_DONTWAIT, (struct sockaddr *)&a, &len));
	len = sizeof(a);
	R(recvfrom(fd[1], buf, 1, MSG_DONTWAIT, (struct sockaddr *)&a, &len));
	R(recvfrom(fd[1], buf, 1, MSG_DONTWAIT, (struct sockaddr *)&a, &len));
	same_say("length %u", len);
}

static void message(int fd[2])
{
	struct sockaddr_in a;
	char buf[8], control[64];
	struct iovec in = { buf, 1 };
	struct msghdr msg;

	put(fd[0], "abcd");
	for (int i = 0; i < 6; i++) {
		msg = (struct msghdr){ .msg_iov = &in, .msg_iovlen = 1, .msg_flags = 0x5555 };
		msg.msg_name = i & 1 ? &a : NULL;
		msg.msg_namelen = sizeof(a);
		msg.msg_control = i & 2 ? control : NULL;
		msg.msg_controllen = sizeof(control);
		R(recvmsg(fd[1], &msg, MSG_DONTWAIT | (i & 2 ? MSG_CMSG_CLOEXEC : 0)));
		same_say("name %u control %zu flags %x", msg.msg_namelen, msg.msg_controllen,
			 (unsigned int)msg.msg_flags);
		if (i == 4)
			shutdown(fd[0], SHUT_WR), same_sleep(5);
	}
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		SAME("MSG_PEEK, repeated and over pieces", peek),
		SAME("MSG_PEEK with MSG_WAITALL", peek_waitall),
		SAME("MSG_WAITALL", waitall),
		SAME("MSG_WAITALL and the end", waitall_end),
		SAME("MSG_WAITALL and a reset", waitall_reset),
		SAME("MSG_WAITALL and a signal", waitall_signal),
		SAME("MSG_WAITALL and SO_RCVTIMEO", waitall_time),
		SAME("MSG_TRUNC discards", discard),
		SAME("MSG_DONTWAIT, MSG_ERRQUEUE and MSG_OOB with nothing there", unblocked),
		SAME("no octets at all", nothing),
		SAME("0, 1024, 1025 and -1 pieces", many),
		SAME("lengths beyond INT_MAX", huge),
		SAME("a buffer that is none, reading", bad_read),
		SAME("a buffer that is none, writing", bad_write),
		DIFFERS("an address where nothing is mapped", unmapped, "it ended with -11\n"),
		SAME("MSG_MORE and TCP_CORK lose nothing", more),
		DIFFERS("MSG_MORE and TCP_CORK do not wait", more_now,
			"send(fd[0], \"a\", 1, MSG_MORE): 1\n"
			"recv(fd[1], buf, 4, MSG_DONTWAIT): 1\n"
			"write(fd[0], \"b\", 1): 1\n"
			"recv(fd[1], buf, 4, MSG_DONTWAIT): 1\n"),
		SAME("flags that say nothing to a stream", harmless),
		SAME("other names of calls", other_names),
		SAME("MSG_NOSIGNAL", broken_pipe),
		SAME("urgent data", urgent),
		SAME("sendto with an address", addressed),
		SAME("recvfrom with an address", from),
		SAME("what recvmsg says besides", message),
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
