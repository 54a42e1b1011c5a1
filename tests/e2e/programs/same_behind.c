/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writing behind the peer's end: the first write is taken, the second one fails, and what read(),
 * poll(), SO_ERROR and epoll sets say in between.
 */
#include <sys/mman.h>
#include <sys/sendfile.h>

#include "tests/e2e/programs/same_sets.h"

static const char *const ways[] = { "closed", "both ways shut", "one way shut, then the other",
				    "one way shut, then closed" };

static void end(int fd, int way)
{
	if (way > 1)
		R(shutdown(fd, SHUT_WR));
	if (way == 2)
		R(shutdown(fd, SHUT_RD));
	else if (way == 1)
		R(shutdown(fd, SHUT_RDWR));
	else
		close(fd);
}

static void polled(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP };

	poll(&p, 1, 0);
	same_say("poll:%s%s%s%s%s", p.revents & POLLIN ? " in" : "",
		 p.revents & POLLOUT ? " out" : "", p.revents & POLLRDHUP ? " rdhup" : "",
		 p.revents & POLLHUP ? " hup" : "", p.revents & POLLERR ? " err" : "");
}

static void error(int fd)
{
	socklen_t len = sizeof(int);
	int err;

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	same_say("SO_ERROR: %s", err ? strerrorname_np(err) : "0");
}

/* The answer to it comes at once on this host, and not in the same moment */
static void put(int fd, const char *text)
{
	same_signals = 0;
	R(write(fd, text, strlen(text)));
	same_sleep(5);
	same_say("signals: %d", (int)same_signals);
}

static void take(int fd)
{
	char c;

	R(recv(fd, &c, 1, MSG_DONTWAIT));
}

/* A connection whose peer has ended by @way, with octets of its behind, or none */
static void ended(int fd[2], int way, bool unread)
{
	same_pair(fd);
	sets_put(fd[0], "a");
	sets_take(fd[1], 1);
	if (unread)
		sets_put(fd[1], "xy");
	same_say("%s%s", ways[way], unread ? ", with octets before the end" : "");
	end(fd[1], way);
	same_wait(fd[0], POLLRDHUP);
	same_sleep(5);
}

static void each(void (*fn)(int fd[2]))
{
	int fd[2];

	for (int i = 0; i < 8; i++) {
		ended(fd, i / 2, i % 2);
		fn(fd);
		close(fd[0]);
		if (i / 2 == 1 || i / 2 == 2)
			close(fd[1]);
	}
}

static void twice(int fd[2])
{
	polled(fd[0]);
	put(fd[0], "first");
	polled(fd[0]);
	for (int i = 0; i < 3; i++)
		take(fd[0]);
	put(fd[0], "second");
	polled(fd[0]);
	error(fd[0]);
	put(fd[0], "third");
}

static void asked_between(int fd[2])
{
	put(fd[0], "first");
	error(fd[0]);
	polled(fd[0]);
	error(fd[0]);
	put(fd[0], "second");
	for (int i = 0; i < 3; i++)
		take(fd[0]);
	R(shutdown(fd[0], SHUT_RDWR));
}

static void read_before(int fd[2])
{
	for (int i = 0; i < 3; i++)
		take(fd[0]);
	put(fd[0], "first");
	take(fd[0]);
	R(shutdown(fd[0], SHUT_WR));
	polled(fd[0]);
}

static void of_no_octets(int fd[2])
{
	R(send(fd[0], "", 0, 0));
	polled(fd[0]);
	put(fd[0], "first");
	same_signals = 0;
	R(send(fd[0], "", 0, MSG_NOSIGNAL));
	R(send(fd[0], "", 0, 0));
	R(write(fd[0], "", 0));
	same_say("signals: %d", (int)same_signals);
}

static void own_end_before(int fd[2])
{
	R(shutdown(fd[0], SHUT_WR));
	put(fd[0], "first");
	polled(fd[0]);
	error(fd[0]);
}

static void own_reading_shut(int fd[2])
{
	R(shutdown(fd[0], SHUT_RD));
	put(fd[0], "first");
	polled(fd[0]);
	take(fd[0]);
	put(fd[0], "second");
}

static void by_other_calls(int fd[2])
{
	struct iovec iov[2] = { { "ab", 2 }, { "c", 1 } };
	int file = memfd_create("file", 0);

	sets_put(file, "octets of a file");
	R(sendfile(fd[0], file, &(off_t){ 0 }, 10));
	same_sleep(5);
	same_signals = 0;
	R(writev(fd[0], iov, 2));
	R(sendfile(fd[0], file, &(off_t){ 0 }, 10));
	same_say("signals: %d", (int)same_signals);
	close(file);
}

/* The loss of what was written is an edge both ways */
static void in_sets(int fd[2])
{
	int edges = epoll_create1(0), levels = epoll_create1(0), none = epoll_create1(0);
	int in = epoll_create1(0);

	ADD(in, fd[0], EPOLLIN | EPOLLET, 'i');
	WAIT(in, 8, 0);
	ADD(edges, fd[0], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, 'e');
	ADD(levels, fd[0], EPOLLIN, 'l');
	ADD(none, fd[0], EPOLLET, 'n');
	WAIT(edges, 8, 0);
	WAIT(edges, 8, NOT);
	WAIT(none, 8, 0);
	put(fd[0], "first");
	WAIT(edges, 8, COMES);
	WAIT(edges, 8, NOT);
	WAIT(levels, 8, COMES);
	WAIT(none, 8, COMES);
	WAIT(in, 8, COMES);
	error(fd[0]);
	WAIT(levels, 8, 0);
	WAIT(edges, 8, NOT);
	put(fd[0], "second");
	WAIT(edges, 8, NOT);
	close(edges);
	close(levels);
	close(none);
	close(in);
}

static void all_twice(int fd[2])
{
	each(twice);
}

static void all_asked_between(int fd[2])
{
	each(asked_between);
}

static void all_read_before(int fd[2])
{
	each(read_before);
}

static void all_of_no_octets(int fd[2])
{
	each(of_no_octets);
}

static void all_own_end_before(int fd[2])
{
	each(own_end_before);
}

static void all_own_reading_shut(int fd[2])
{
	each(own_reading_shut);
}

static void all_by_other_calls(int fd[2])
{
	each(by_other_calls);
}

static void all_in_sets(int fd[2])
{
	each(in_sets);
}

/* Over DDP who has shut both ways is told nothing of it */
static void seen_by_peer(int fd[2])
{
	R(shutdown(fd[1], SHUT_RDWR));
	same_wait(fd[0], POLLRDHUP);
	put(fd[0], "first");
	polled(fd[1]);
	take(fd[1]);
	take(fd[1]);
	put(fd[1], "x");
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		SAME("two writes", all_twice),
		SAME("SO_ERROR between two writes", all_asked_between),
		SAME("a write when all is read", all_read_before),
		SAME("writes of no octets", all_of_no_octets),
		SAME("a write behind its own end", all_own_end_before),
		SAME("a write when its reading is shut", all_own_reading_shut),
		SAME("sendfile and writev", all_by_other_calls),
		SAME("epoll sets", all_in_sets),
		DIFFERS("a write to an end that has shut both ways", seen_by_peer,
			"shutdown(fd[1], SHUT_RDWR): 0\n"
			"write(fd, text, strlen(text)): 5\n"
			"signals: 0\n"
			"poll: in out rdhup hup\n"
			"recv(fd, &c, 1, MSG_DONTWAIT): 0\n"
			"recv(fd, &c, 1, MSG_DONTWAIT): 0\n"
			"write(fd, text, strlen(text)): -1 EPIPE\n"
			"signals: 1\n"),
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
