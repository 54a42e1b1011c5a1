/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reasons for which a connection ends that lie in what processes share: both ends are here, and the
 * state of one is written to as a process would leave it that died, or went wild. And rubbish in it
 * when another program is about to come to it, by exec or by a message: that goes on, or is told.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <warp/ddp.h>
#include <wire/rsockets.h>

#include "base/process.h"
#include "stream/life/life.h"
#include "stream/protocol/extension.h"
#include "tests/e2e/programs/states.h"

#define SPACE_SHIFT 24 /* base/lock.c */

static void need(int sound, const char *what)
{
	if (sound)
		return;
	printf("Bail out! %s: errno %d\n", what, errno);
	exit(1);
}

static void connected(int fd[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	char c = 'x';

	need(!bind(listener, (struct sockaddr *)&a, len) && !listen(listener, 1), "listen");
	need(!getsockname(listener, (struct sockaddr *)&a, &len), "getsockname");
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	need(!connect(fd[0], (struct sockaddr *)&a, len), "connect");
	fd[1] = accept(listener, NULL, NULL);
	need(fd[1] >= 0, "accept");
	need(write(fd[0], &c, 1) == 1 && read(fd[1], &c, 1) == 1, "one octet");
	need(write(fd[1], &c, 1) == 1 && read(fd[0], &c, 1) == 1, "one back");
	close(listener);
}

static struct stream_state *state_of(int fd)
{
	unsigned long long cookie = 0;
	socklen_t len = sizeof(cookie);
	struct stream_state *st;

	need(!getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len), "SO_COOKIE");
	st = states_find(cookie);
	need(st != NULL, "a state of this cookie");
	return st;
}

/* The lock is held by a process that is no more */
static void die_inside(struct stream_state *st)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	need(pid > 0 && waitpid(pid, NULL, 0) == pid, "fork");
	__atomic_store_n(&st->rx_lock.word,
			 (uint32_t)pid | (base_process_self().space & BASE_LOCK_SPACE)
						 << SPACE_SHIFT,
			 __ATOMIC_SEQ_CST);
}

/* More was read than ever came */
static void go_wild(struct stream_state *st)
{
	__atomic_store_n(&st->rx.delivered, st->rx.consumed - 1, __ATOMIC_SEQ_CST);
}

static const struct {
	const char *name;
	void (*damage)(struct stream_state *st);
	unsigned int reason;
} cases[] = {
	{ "SHARER_DIED", die_inside, DDP_REASON_SHARER_DIED },
	{ "STATE_DAMAGED", go_wild, DDP_REASON_STATE_DAMAGED },
};

static unsigned int reason_of(int fd)
{
	struct ddp_info info = { 0 };
	socklen_t len = sizeof(info);

	need(!getsockopt(fd, SOL_DDP, DDP_INFO, &info, &len), "DDP_INFO");
	return info.reason;
}

/* And what the other end is told of it: a reset */
static bool damaged(void (*damage)(struct stream_state *st), unsigned int wanted)
{
	unsigned int reason[2];
	int fd[2], err[2];
	char c;

	connected(fd);
	damage(state_of(fd[0]));
	for (int i = 0; i < 2; i++) {
		err[i] = recv(fd[i], &c, 1, 0) < 0 ? errno : 0;
		reason[i] = reason_of(fd[i]);
		close(fd[i]);
	}
	printf("# errno %d and %d, reason %u and %u\n", err[0], err[1], reason[0], reason[1]);
	return err[0] == ECONNRESET && err[1] == ECONNRESET && reason[0] == wanted &&
	       (reason[1] == DDP_REASON_PEER_RESET || reason[1] == DDP_REASON_PEER_CUT);
}

/* --- rubbish --- */

#define ROUNDS 200
#define LIMIT 60 /* seconds */

static uint64_t seed;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

#define FROM(member) offsetof(struct stream_state, member)

/* What is believed or judged apart, and all of it */
static const struct {
	size_t from, to;
} ranges[] = {
	{ FROM(exec_record), FROM(exec_record) + STREAM_EXEC_RECORD / 4 },
	{ FROM(made.flags), FROM(rx_lock) },
	{ FROM(rx_lock), FROM(sgl_stag) },
	{ FROM(rx.placed), FROM(rx.entry) },
	{ FROM(rx.chunks_free), FROM(holder) },
	{ FROM(rx_lock), sizeof(struct stream_state) },
	{ 0, sizeof(struct stream_state) },
};

/* Some octets, or many of them */
static void scribble(struct stream_state *st)
{
	unsigned int i = below(sizeof(ranges) / sizeof(ranges[0]));
	uint32_t room = (uint32_t)(ranges[i].to - ranges[i].from);
	uint8_t *p = (uint8_t *)st + ranges[i].from;

	for (unsigned int n = 1 + below(3); n; n--) {
		uint32_t len = 1 + below(below(2) ? 8 : room), at;

		for (at = below(room); len && at < room; len--)
			p[at++] = below(3) ? (uint8_t)below(256) : 0xff;
	}
}

/* What a program does with a connection: some of it, whatever comes of it */
static int goes_on(int fd)
{
	struct pollfd p = { fd, POLLIN | POLLOUT, 0 };
	struct sockaddr_in6 peer;
	socklen_t len = sizeof(peer);
	char octets[256];
	int on = 1;

	for (int i = 0; i < 10; i++) {
		poll(&p, 1, 1);
		if (recv(fd, octets, sizeof(octets), MSG_DONTWAIT) > (ssize_t)sizeof(octets))
			return 1;
		send(fd, octets, sizeof(octets), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	getpeername(fd, (struct sockaddr *)&peer, &len);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	shutdown(fd, SHUT_WR);
	close(fd);
	return 0;
}

/* Octets are here that the program has not read */
static void begun(int fd[2])
{
	char octets[100] = "";

	connected(fd);
	need(write(fd[1], octets, sizeof(octets)) == sizeof(octets), "write");
	need(recv(fd[0], octets, sizeof(octets), MSG_PEEK) > 0, "recv");
}

static bool is_well(pid_t pid, unsigned int round)
{
	int status;

	need(waitpid(pid, &status, 0) == pid, "waitpid");
	if (status)
		printf("# round %u ended with %#x\n", round, status);
	return !status;
}

/* Written to between the exec and the first instruction of what is executed */
static bool executed(unsigned int round)
{
	struct stream_state *st;
	char number[16];
	int fd[2], status;
	pid_t pid;

	begun(fd);
	st = state_of(fd[0]);
	snprintf(number, sizeof(number), "%d", fd[0]);
	pid = fork();
	if (!pid) {
		alarm(LIMIT);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl("/proc/self/exe", "ddp_state", number, NULL);
		_exit(2);
	}
	close(fd[0]);
	need(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "it has executed");
	scribble(st);
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	munmap(st, sizeof(*st));
	close(fd[1]);
	return is_well(pid, round);
}

union right {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

/* Sends @fd, or receives one: it */
static int pass(int channel, int fd)
{
	union right right = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec iov = { &(char){ 0 }, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &right,
			    .msg_controllen = sizeof(right) };

	memcpy(CMSG_DATA(&right.head), &fd, sizeof(fd));
	if ((fd < 0 ? recvmsg(channel, &m, 0) : sendmsg(channel, &m, 0)) != 1)
		return -1;
	memcpy(&fd, CMSG_DATA(&right.head), sizeof(fd));
	return fd;
}

/* Written to between the message's way out and its way in */
static bool sent(unsigned int round)
{
	int fd[2], channel[2], go[2];
	struct stream_state *st;
	pid_t pid;

	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, channel) && !pipe(go), "channel");
	pid = fork();
	if (!pid) {
		alarm(LIMIT);
		close(go[1]);
		exit(read(go[0], &(char){ 0 }, 1) || goes_on(pass(channel[1], -1)));
	}
	begun(fd);
	st = state_of(fd[0]);
	need(pass(channel[0], fd[0]) == fd[0], "sendmsg");
	scribble(st);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(fd[i]);
	}
	munmap(st, sizeof(*st));
	close(channel[0]);
	close(channel[1]);
	return is_well(pid, round);
}

/* Where an address in the state leads nowhere: a network of lo alone */
static bool is_confined(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = -1;

	if (!unshare(CLONE_NEWNET))
		fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo))
		return false;
	return !close(fd);
}

static const struct {
	const char *name;
	bool (*round)(unsigned int round);
} ways[] = {
	{ "rubbish, and a program is executed", executed },
	{ "rubbish, and the descriptor is on its way", sent },
};

/* --- a socket that connects again and again --- */

/* Mappings of this process */
static unsigned int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	int c;

	need(f != NULL, "maps");
	while ((c = fgetc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

/* It is in a set all the time; what it had before is given back */
static bool connects_again(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	int listener = socket(AF_INET, SOCK_STREAM, 0), set = epoll_create1(0), fd, peer;
	socklen_t len = sizeof(a);
	unsigned int before = 0, after;

	need(!bind(listener, (struct sockaddr *)&a, len) && !listen(listener, 1), "listen");
	need(!getsockname(listener, (struct sockaddr *)&a, &len), "getsockname");
	fd = socket(AF_INET, SOCK_STREAM, 0);
	need(!epoll_ctl(set, EPOLL_CTL_ADD, fd, &e), "epoll_ctl");
	for (unsigned int i = 0; i < 50; i++) {
		need(!connect(fd, (struct sockaddr *)&a, len), "connect");
		peer = accept(listener, NULL, NULL);
		need(write(peer, "x", 1) == 1 && epoll_wait(set, &e, 1, 1000) == 1, "epoll_wait");
		need(!close(peer) && !connect(fd, &nowhere, sizeof(nowhere)), "disconnect");
		before = i == 9 ? mappings() : before;
	}
	after = mappings();
	close(fd);
	close(set);
	close(listener);
	return after < before + 20;
}

int main(int argc, char **argv)
{
	unsigned int n = sizeof(cases) / sizeof(cases[0]), more = sizeof(ways) / sizeof(ways[0]);
	bool confined, well;

	if (argc > 1)
		return goes_on(atoi(argv[1]));
	printf("1..%u\n", n + more + 1);
	for (unsigned int i = 0; i < n; i++) {
		well = damaged(cases[i].damage, cases[i].reason);
		printf("%s %u - %s\n", well ? "ok" : "not ok", i + 1, cases[i].name);
	}
	confined = is_confined();
	for (unsigned int i = 0; i < more; i++) {
		well = true;
		seed = i;
		for (unsigned int round = 1; confined && round <= ROUNDS; round++) {
			fflush(stdout);
			well &= ways[i].round(round);
		}
		printf("%s %u - %s%s\n", well ? "ok" : "not ok", n + i + 1, ways[i].name,
		       confined ? "" : " # SKIP no network of its own is to be had");
	}
	printf("%s %u - a socket that connects again and again keeps what it needs\n",
	       connects_again() ? "ok" : "not ok", n + more + 1);
	return 0;
}
