/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Urgent data: MSG_OOB both ways, where reads stop, ends, and other processes.
 */
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/e2e/programs/same_urgent.h"

/* --- one octet --- */

static void alone(int fd[2])
{
	oob(fd[1], 0);
	look(fd[1]);
	R(send(fd[0], "u", 1, MSG_OOB));
	same_sleep(5);
	look(fd[1]);
	get(fd[1], 0, MSG_PEEK);
	oob(fd[1], MSG_PEEK);
	oob(fd[1], MSG_PEEK);
	oob(fd[1], 0);
	oob(fd[1], 0);
	look(fd[1]);
	get(fd[1], 8, 0);
	look(fd[1]);
	oob(fd[1], 0);
}

static void passed_over(int fd[2])
{
	put(fd[0], "u", MSG_OOB);
	get(fd[1], 8, MSG_PEEK);
	look(fd[1]);
	get(fd[1], 8, 0);
	look(fd[1]);
	oob(fd[1], 0);
	put(fd[0], "abc", 0);
	get(fd[1], 8, 0);
}

static void among(int fd[2])
{
	put(fd[0], "before", 0);
	put(fd[0], "u", MSG_OOB);
	put(fd[0], "after", 0);
	look(fd[1]);
	get(fd[1], 2, 0);
	look(fd[1]);
	get(fd[1], 20, MSG_PEEK);
	get(fd[1], 20, 0);
	look(fd[1]);
	get(fd[1], 20, MSG_PEEK);
	oob(fd[1], 0);
	look(fd[1]);
	get(fd[1], 2, 0);
	look(fd[1]);
	get(fd[1], 20, 0);
}

static void several(int fd[2])
{
	put(fd[0], "abcd", MSG_OOB);
	look(fd[1]);
	get(fd[1], 20, 0);
	look(fd[1]);
	oob(fd[1], 0);
	put(fd[0], "efgh", MSG_OOB);
	oob(fd[1], 0);
	get(fd[1], 2, 0);
	get(fd[1], 20, 0);
	look(fd[1]);
	R(send(fd[0], "", 0, MSG_OOB));
	look(fd[1]);
	put(fd[0], "x", 0);
	get(fd[1], 20, 0);
	look(fd[1]);
}

static void read_to_it(int fd[2])
{
	put(fd[0], "ab", 0);
	put(fd[0], "u", MSG_OOB);
	get(fd[1], 20, MSG_WAITALL);
	get(fd[1], 20, MSG_PEEK);
	put(fd[0], "cd", 0);
	look(fd[1]);
	get(fd[1], 1, 0);
	look(fd[1]);
	oob(fd[1], 0);
	get(fd[1], 20, 0);
}

/* --- two --- */

static void second(int fd[2])
{
	put(fd[0], "a", MSG_OOB);
	put(fd[0], "b", MSG_OOB);
	look(fd[1]);
	oob(fd[1], 0);
	get(fd[1], 20, 0);
	look(fd[1]);
	get(fd[1], 20, 0);
	look(fd[1]);
}

static void second_later(int fd[2])
{
	put(fd[0], "x", 0);
	put(fd[0], "a", MSG_OOB);
	put(fd[0], "y", 0);
	get(fd[1], 20, MSG_PEEK);
	put(fd[0], "b", MSG_OOB);
	put(fd[0], "z", 0);
	look(fd[1]);
	get(fd[1], 20, 0);
	look(fd[1]);
	oob(fd[1], 0);
	get(fd[1], 20, 0);
	oob(fd[1], 0);
}

/* The reader stands at the first one when the second comes */
static void second_at_first(int fd[2])
{
	put(fd[0], "x", 0);
	put(fd[0], "a", MSG_OOB);
	get(fd[1], 20, 0);
	look(fd[1]);
	put(fd[0], "yb", MSG_OOB);
	look(fd[1]);
	get(fd[1], 20, 0);
	oob(fd[1], 0);
	look(fd[1]);
	get(fd[1], 20, 0);
}

static void second_after_taken(int fd[2])
{
	put(fd[0], "a", MSG_OOB);
	oob(fd[1], 0);
	put(fd[0], "b", MSG_OOB);
	look(fd[1]);
	oob(fd[1], 0);
	get(fd[1], 20, 0);
	look(fd[1]);
	in_line(fd[1], 1);
	put(fd[0], "c", MSG_OOB);
	put(fd[0], "d", MSG_OOB);
	look(fd[1]);
	get(fd[1], 20, 0);
	get(fd[1], 20, 0);
	look(fd[1]);
}

/* --- SO_OOBINLINE --- */

static void inline_all(int fd[2])
{
	int on = -1;
	socklen_t len = sizeof(on);

	R(setsockopt(fd[1], SOL_SOCKET, SO_OOBINLINE, &(int){ 5 }, sizeof(int)));
	R(getsockopt(fd[1], SOL_SOCKET, SO_OOBINLINE, &on, &len));
	same_say("%d", on);
	R(setsockopt(fd[1], SOL_SOCKET, SO_OOBINLINE, &on, 1));
	put(fd[0], "ab", 0);
	put(fd[0], "u", MSG_OOB);
	put(fd[0], "cd", 0);
	look(fd[1]);
	oob(fd[1], 0);
	get(fd[1], 20, 0);
	look(fd[1]);
	oob(fd[1], 0);
	get(fd[1], 20, MSG_PEEK);
	get(fd[1], 1, 0);
	look(fd[1]);
	get(fd[1], 20, 0);
	look(fd[1]);
}

static void inline_changed(int fd[2])
{
	put(fd[0], "a", MSG_OOB);
	in_line(fd[1], 1);
	look(fd[1]);
	oob(fd[1], 0);
	in_line(fd[1], 0);
	look(fd[1]);
	oob(fd[1], 0);
	in_line(fd[1], 1);
	look(fd[1]);
	get(fd[1], 20, 0);
	look(fd[1]);
}

static void inline_inherited(int fd[2])
{
	int on = -1;
	socklen_t len = sizeof(on);

	in_line(same_listener, 1);
	close(fd[0]);
	close(fd[1]);
	same_pair(fd);
	R(getsockopt(fd[1], SOL_SOCKET, SO_OOBINLINE, &on, &len));
	same_say("%d", on);
	put(fd[0], "au", MSG_OOB);
	get(fd[1], 20, 0);
	get(fd[1], 20, 0);
}

/* --- forms of calls --- */

static void messages(int fd[2])
{
	char a[4] = "", b[4] = "", c = '-', control[64];
	struct iovec out[2] = { { (void *)"ab", 2 }, { (void *)"cd", 2 } },
		     in[2] = { { a, 0 }, { b, 3 } };
	struct msghdr msg = { .msg_iov = out, .msg_iovlen = 2 };
	struct mmsghdr many = { 0 };

	R(sendmsg(fd[0], &msg, MSG_OOB));
	same_sleep(5);
	msg = (struct msghdr){ .msg_iov = in, .msg_iovlen = 2, .msg_control = control };
	msg.msg_controllen = sizeof(control);
	R(recvmsg(fd[1], &msg, MSG_OOB | MSG_PEEK));
	same_say("%s, flags %#x, control %zu", b, msg.msg_flags, msg.msg_controllen);
	msg.msg_iovlen = 0;
	R(recvmsg(fd[1], &msg, MSG_OOB));
	same_say("flags %#x", msg.msg_flags);
	R(recvmsg(fd[1], &msg, MSG_OOB));
	get(fd[1], 20, 0);
	R(sendto(fd[0], "ef", 2, MSG_OOB, NULL, 0));
	many.msg_hdr = (struct msghdr){ .msg_iov = out, .msg_iovlen = 1 };
	R(sendmmsg(fd[0], &many, 1, MSG_OOB));
	same_sleep(5);
	R(recvfrom(fd[1], &c, 1, MSG_OOB | MSG_TRUNC, NULL, NULL));
	same_say("%c", c);
	put(fd[0], "g", MSG_OOB);
	many.msg_hdr = (struct msghdr){ .msg_iov = in, .msg_iovlen = 2 };
	R(recvmmsg(fd[1], &many, 1, MSG_OOB, NULL));
	same_say("%u %s, flags %#x", many.msg_len, b, many.msg_hdr.msg_flags);
	get(fd[1], 20, 0);
	R(syscall(SYS_sendto, fd[0], "h", 1, MSG_OOB, NULL, 0));
	same_sleep(5);
	R(syscall(SYS_recvfrom, fd[1], &c, 1, MSG_OOB, NULL, NULL));
	same_say("%c", c);
}

static void wrong(int fd[2])
{
	char *volatile none = (char *)16;

	R(send(fd[0], none, 1, MSG_OOB));
	R(ioctl(fd[1], SIOCATMARK, none));
	put(fd[0], "u", MSG_OOB);
	R(recv(fd[1], none, 1, MSG_OOB));
	oob(fd[1], 0);
	put(fd[0], "v", MSG_OOB);
	R(recv(fd[1], none, 0, MSG_OOB));
	oob(fd[1], 0);
	R(recv(same_listener, none, 1, MSG_OOB));
	R(send(same_listener, "x", 1, MSG_OOB | MSG_NOSIGNAL));
}

static void discarded(int fd[2])
{
	put(fd[0], "abu", MSG_OOB);
	put(fd[0], "cd", 0);
	R(recv(fd[1], NULL, 20, MSG_TRUNC));
	look(fd[1]);
	R(recv(fd[1], NULL, 20, MSG_TRUNC));
	look(fd[1]);
}

/* --- reads that wait --- */

static void waitall(int fd[2])
{
	char buf[16] = "";

	put(fd[0], "ab", 0);
	same_later(20, send_both, &fd[0]);
	R(recv(fd[1], buf, 5, MSG_WAITALL));
	look(fd[1]);
	R(recv(fd[1], buf, 3, MSG_WAITALL));
	SHOW(buf, 3);
	oob(fd[1], 0);
}

static void waits_over_it(int fd[2])
{
	char buf[16] = "";

	same_later(20, send_both, &fd[0]);
	R(recv(fd[1], buf, 5, 0));
	SHOW(buf, 3);
	oob(fd[1], 0);
	same_join();
	same_later(20, send_both, &fd[0]);
	R(recv(fd[1], buf, 3, MSG_PEEK | MSG_WAITALL));
	SHOW(buf, 3);
	look(fd[1]);
	get(fd[1], 16, 0);
}

static void low_water(int fd[2])
{
	int lowat = 3;

	setsockopt(fd[1], SOL_SOCKET, SO_RCVLOWAT, &lowat, sizeof(lowat));
	put(fd[0], "a", 0);
	put(fd[0], "u", MSG_OOB);
	look(fd[1]);
	put(fd[0], "b", 0);
	look(fd[1]);
	get(fd[1], 8, 0);
	look(fd[1]);
	put(fd[0], "c", 0);
	look(fd[1]);
	put(fd[0], "d", 0);
	look(fd[1]);
	get(fd[1], 8, 0);
}

/* --- ends --- */

static void ended(int fd[2])
{
	put(fd[0], "ab", 0);
	put(fd[0], "u", MSG_OOB);
	shutdown(fd[0], SHUT_WR);
	same_sleep(5);
	R(send(fd[0], "x", 1, MSG_OOB | MSG_NOSIGNAL));
	look(fd[1]);
	get(fd[1], 8, 0);
	look(fd[1]);
	oob(fd[1], 0);
	get(fd[1], 8, 0);
	get(fd[1], 8, 0);
	look(fd[1]);
	oob(fd[1], 0);
}

static void ended_alone(int fd[2])
{
	put(fd[0], "u", MSG_OOB);
	close(fd[0]);
	same_sleep(5);
	look(fd[1]);
	oob(fd[1], MSG_PEEK);
	get(fd[1], 8, MSG_PEEK);
	get(fd[1], 8, 0);
	look(fd[1]);
	oob(fd[1], 0);
}

static void shut_here(int fd[2])
{
	put(fd[0], "u", MSG_OOB);
	shutdown(fd[1], SHUT_RD);
	look(fd[1]);
	oob(fd[1], 0);
	get(fd[1], 8, 0);
	put(fd[1], "v", MSG_OOB);
	oob(fd[0], 0);
}

static void reset(int fd[2])
{
	struct linger hard = { 1, 0 };

	put(fd[0], "u", MSG_OOB);
	setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd[0]);
	same_sleep(5);
	oob(fd[1], 0);
	R(send(fd[1], "x", 1, MSG_OOB | MSG_NOSIGNAL));
	oob(fd[1], 0);
}

static void closed_unread(int fd[2])
{
	put(fd[0], "u", MSG_OOB);
	close(fd[1]);
	same_sleep(5);
	get(fd[0], 8, 0);
}

static void closed_taken(int fd[2])
{
	put(fd[0], "u", MSG_OOB);
	oob(fd[1], 0);
	get(fd[1], 8, 0);
	close(fd[1]);
	same_sleep(5);
	get(fd[0], 8, 0);
}

/* --- other processes --- */

static void forked(int fd[2])
{
	pid_t child;

	put(fd[0], "ab", 0);
	put(fd[0], "u", MSG_OOB);
	fflush(stdout);
	child = fork();
	if (!child) {
		look(fd[1]);
		get(fd[1], 8, 0);
		oob(fd[1], 0);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	look(fd[1]);
	oob(fd[1], 0);
	put(fd[0], "c", 0);
	get(fd[1], 8, 0);
	look(fd[1]);
}

static void pass(int line, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = { (void *)"f", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room };
	struct cmsghdr *c;

	msg.msg_controllen = sizeof(room);
	c = CMSG_FIRSTHDR(&msg);
	*c = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(line, &msg, 0) != 1)
		same_say("sendmsg: %s", strerror(errno));
}

static int take(int line)
{
	char room[CMSG_SPACE(sizeof(int))], c;
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room };
	int fd = -1;

	msg.msg_controllen = sizeof(room);
	if (recvmsg(line, &msg, 0) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* Forked before there was a connection: it has it by the message alone */
static void passed(int fd[2])
{
	int line[2], pair[2], status;
	pid_t child;

	R(socketpair(AF_UNIX, SOCK_STREAM, 0, line));
	close(fd[0]);
	close(fd[1]);
	fflush(stdout);
	child = fork();
	if (!child) {
		int s = take(line[1]);

		look(s);
		oob(s, 0);
		get(s, 8, 0);
		look(s);
		put(s, "v", MSG_OOB);
		_exit(0);
	}
	same_pair(pair);
	in_line(pair[1], 0);
	put(pair[0], "abu", MSG_OOB);
	look(pair[1]);
	get(pair[1], 1, 0);
	pass(line[0], pair[1]);
	waitpid(child, &status, 0);
	oob(pair[0], 0);
	get(pair[1], 8, 0);
	look(pair[1]);
}

static void executed(int fd[2])
{
	char number[16], *argv[] = { (char *)"same_urgent", (char *)"--exec", number, NULL };
	pid_t child;

	put(fd[0], "abu", MSG_OOB);
	look(fd[1]);
	snprintf(number, sizeof(number), "%d", fd[1]);
	fflush(stdout);
	child = fork();
	if (!child) {
		execv("/proc/self/exe", argv);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	look(fd[1]);
	get(fd[1], 8, 0);
	look(fd[1]);
}

static void program(int s)
{
	look(s);
	get(s, 8, 0);
	oob(s, 0);
	in_line(s, 1);
}

/* Much, and marks in it */
static void stream_out(void *arg)
{
	static char block[3000];
	int fd = *(int *)arg;

	memset(block, 'o', sizeof(block));
	for (int i = 0; i < 200; i++)
		if (send(fd, block, sizeof(block), 0) < 0 || send(fd, "!u", 2, MSG_OOB) != 2)
			same_say("stream: %s", strerror(errno));
	shutdown(fd, SHUT_WR);
}

static void stream(int fd[2])
{
	static char buf[1 << 16];
	size_t plain = 0, marks = 0;
	ssize_t n;

	in_line(fd[1], 1);
	same_later(0, stream_out, &fd[0]);
	while ((n = recv(fd[1], buf, sizeof(buf), 0)) > 0)
		for (ssize_t i = 0; i < n; i++) {
			marks += buf[i] == 'u';
			plain += buf[i] != 'u';
		}
	same_say("%zd, %zu octets, %zu urgent", n, plain, marks);
}

/* The reader looks for the mark as telnet does, and throws away what is before it */
static void synch(int fd[2])
{
	char buf[4];

	in_line(fd[1], 1);
	for (int i = 0; i < 100; i++)
		R(send(fd[0], "stuff", 5, 0) * 0);
	put(fd[0], "\377\362", MSG_OOB);
	put(fd[0], "go", 0);
	/* TCP waits for acknowledgements of so many small segments */
	same_sleep(200);
	while (!sockatmark(fd[1]) && read(fd[1], buf, 3) > 0)
		;
	R(read(fd[1], buf, 4));
	same_say("%02x %c%c", buf[0] & 0xff, buf[1], buf[2]);
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		SAME("an urgent octet alone", alone),
		SAME("an urgent octet that a read passes over", passed_over),
		SAME("an urgent octet among others", among),
		SAME("several octets: the last one is urgent", several),
		SAME("a read up to it, and over it", read_to_it),
		SAME("two before the first is read", second),
		SAME("two with octets between", second_later),
		SAME("a second one when the reader stands at the first", second_at_first),
		SAME("a second one after the first was taken", second_after_taken),
		SAME("SO_OOBINLINE", inline_all),
		SAME("SO_OOBINLINE is set when it has come", inline_changed),
		SAME("SO_OOBINLINE of the listener", inline_inherited),
		SAME("sendmsg, recvmsg and their kin", messages),
		SAME("wrong uses", wrong),
		SAME("MSG_TRUNC", discarded),
		SAME("MSG_WAITALL ends at the mark", waitall),
		SAME("a read that waits passes over it", waits_over_it),
		SAME("SO_RCVLOWAT", low_water),
		SAME("the end behind it", ended),
		SAME("close behind it", ended_alone),
		SAME("SHUT_RD", shut_here),
		SAME("a reset", reset),
		SAME("close with it unread", closed_unread),
		SAME("close when it was taken", closed_taken),
		SAME("fork", forked),
		SAME("SCM_RIGHTS", passed),
		SAME("exec", executed),
		SAME("many in a long stream", stream),
		SAME("as telnet does it", synch),
	};

	if (argc == 3 && !strcmp(argv[1], "--exec")) {
		program(atoi(argv[2]));
		return 0;
	}
	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
