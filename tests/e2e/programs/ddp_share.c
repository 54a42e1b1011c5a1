/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of several processes, where that is special for DDP: the limits of waking each other,
 * and what becomes of a connection when one dies that is at work on it. Under the launcher only.
 */
#include "tests/e2e/programs/calls_octets.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Each octet is answered by whom it came to */
static bool answers(const struct share *s)
{
	ssize_t n;
	char c;

	for (;;) {
		if (!ready(s->fd, POLLIN, LIMIT_MS))
			return false;
		n = recv(s->fd, &c, 1, MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			continue;
		if (n <= 0)
			return n == 0;
		need(write(s->fd, &c, 1) == 1);
	}
}

static bool pings(int fd, int n)
{
	char c;

	for (int i = 0; i < n; i++)
		need(write(fd, "x", 1) == 1 && read(fd, &c, 1) == 1);
	return true;
}

/* Those who find no place in the table look by themselves */
#define MANY 40

static bool many(void)
{
	int fd[2];

	need(crew_pair(fd));
	for (int i = 0; i < MANY; i++)
		need(crew_start(fd, answers));
	close(fd[1]);
	need(pings(fd[0], 200) && !shutdown(fd[0], SHUT_WR) && crew_ended());
	close(fd[0]);
	return true;
}

/* Nobody can ring who is in another network namespace */
static bool answers_elsewhere(const struct share *s)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) && unshare(CLONE_NEWNET)) {
		printf("# no network namespace is to be had\n");
		need(errno == EPERM);
	}
	return answers(s);
}

static bool looks(const struct share *s)
{
	while (!__atomic_load_n(&crew->stop, __ATOMIC_ACQUIRE))
		ready(s->fd, POLLIN, 0);
	return true;
}

/* One of two only looks, the other answers */
static bool looked_at(bool (*looker)(const struct share *s), bool (*other)(const struct share *s))
{
	int fd[2];

	need(crew_pair(fd));
	crew_clear();
	need(crew_start(fd, looker) && crew_start(fd, other));
	close(fd[1]);
	need(pings(fd[0], 200) && !shutdown(fd[0], SHUT_WR));
	__atomic_store_n(&crew->stop, true, __ATOMIC_RELEASE);
	need(crew_ended());
	close(fd[0]);
	return true;
}

static bool elsewhere(void)
{
	return looked_at(looks, answers_elsewhere);
}

/* Nor may it be rung where that would be the end of the one who rings */
static bool looks_behind_filter(const struct share *s)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	need(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	return looks(s);
}

static bool beside_a_filter(void)
{
	return looked_at(looks_behind_filter, answers);
}

/* To the end, or a reset */
static bool takes_what_comes(const struct share *s)
{
	static uint8_t buf[20000];
	ssize_t n;

	while ((n = read(s->fd, buf, sizeof(buf))) > 0)
		need(note(buf, n));
	if (n < 0)
		need(errno == ECONNRESET);
	__atomic_add_fetch(&crew->resets, n < 0, __ATOMIC_RELAXED);
	return true;
}

static bool given_or_reset(int fd, long from, long to)
{
	return put_part(fd, from, to) || errno == ECONNRESET || errno == EPIPE;
}

/*
 * One of two readers is killed at its work. Who is left goes on, or both ends hear of a reset, if
 * the other one was just moving octets; nobody gets any twice, and nobody hangs
 */
static bool killed_at_work(void)
{
	unsigned int seed = (unsigned int)getpid(), resets = 0;
	int fd[2];

	printf("# seed %u\n", seed);
	srand(seed);
	for (int i = 0; i < 40; i++) {
		need(crew_pair(fd));
		crew_clear();
		need(crew_start(fd, takes_what_comes) && crew_start(fd, takes_what_comes));
		close(fd[1]);
		need(given_or_reset(fd[0], 0, STREAM / 4));
		nap_us(rand() % 2000);
		need(crew_kill(0));
		need(given_or_reset(fd[0], STREAM / 4, STREAM / 2));
		shutdown(fd[0], SHUT_WR);
		need(crew_ended() && none_twice());
		resets += crew->resets;
		close(fd[0]);
	}
	printf("# %u of 40 connections were reset\n", resets);
	return true;
}

/* It finds the end, or came too late */
static void *reads_an_end(void *arg)
{
	char c;
	long n = read(*(int *)arg, &c, 1);

	return (void *)(intptr_t)(n == 0 || (n < 0 && errno == EBADF));
}

/* A thread reads what its process closes; another process may go on with it */
static bool closed_beside_a_reader(bool shared)
{
	pthread_t thread;
	void *ended = NULL;
	int fd[2];

	need(crew_pair(fd) && (!shared || crew_start(fd, answers)));
	need(!pthread_create(&thread, NULL, reads_an_end, &fd[1]));
	nap_ms(20);
	close(fd[1]);
	need(!pthread_join(thread, &ended) && ended);
	need((!shared || pings(fd[0], 50)) && !shutdown(fd[0], SHUT_WR) && crew_ended());
	close(fd[0]);
	return true;
}

static bool closed_beside_readers(void)
{
	for (int i = 0; i < 20; i++)
		need(closed_beside_a_reader(i % 2));
	return true;
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "more processes than places", many },
		{ "a process in another network namespace", elsewhere },
		{ "a process behind a filter", beside_a_filter },
		{ "a process is killed at its work", killed_at_work },
		{ "a process closes beside its reader", closed_beside_readers },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
