/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reasons for which a connection ends that lie in what processes share: both ends are here, and the
 * state of one is written to as a process would leave it that died, or went wild.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <warp/ddp.h>
#include <wire/rsockets.h>

#include "base/process.h"
#include "stream/extension.h"
#include "stream/state.h"

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
	const char *dir = getenv("WARPSOCK_RUNTIME_DIR");
	unsigned long long cookie = 0;
	socklen_t len = sizeof(cookie);
	char path[256];
	void *p;
	int file, n;

	need(!getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len), "SO_COOKIE");
	n = dir ? snprintf(path, sizeof(path), "%s", dir)
		: snprintf(path, sizeof(path), "/dev/shm/warpsock-%u", geteuid());
	snprintf(path + n, sizeof(path) - (size_t)n, "/%016llx", cookie);
	file = open(path, O_RDWR);
	need(file >= 0, path);
	p = mmap(NULL, sizeof(struct stream_state), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	need(p != MAP_FAILED, "mmap");
	close(file);
	return p;
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

int main(void)
{
	unsigned int n = sizeof(cases) / sizeof(cases[0]);

	printf("1..%u\n", n);
	for (unsigned int i = 0; i < n; i++) {
		struct ddp_info info = { 0 };
		socklen_t len = sizeof(info);
		ssize_t got;
		int fd[2];
		char c;

		connected(fd);
		cases[i].damage(state_of(fd[0]));
		got = recv(fd[0], &c, 1, 0);
		need(!getsockopt(fd[0], SOL_DDP, DDP_INFO, &info, &len), "DDP_INFO");
		printf("%s %u - %s\n",
		       got == -1 && errno == ECONNRESET && info.reason == cases[i].reason ? "ok"
											  : "not "
											    "ok",
		       i + 1, cases[i].name);
		printf("# %zd, errno %d, reason %u\n", got, errno, info.reason);
		close(fd[0]);
		close(fd[1]);
	}
	return 0;
}
