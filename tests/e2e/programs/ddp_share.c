/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of several processes, where that is special for DDP: the limits of waking each other,
 * and what becomes of a connection when one dies that is at work on it. Under the launcher only.
 */
#include "tests/e2e/programs/calls_octets.h"
#include "tests/e2e/programs/states.h"

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

static bool until_stopped(const struct share *s)
{
	while (!__atomic_load_n(&crew->stop, __ATOMIC_ACQUIRE))
		nap_ms(1);
	return true;
}

/* A process that is the first of its own PID namespace, as those of others are */
static pid_t first_start(const struct share *s, bool (*run)(const struct share *s))
{
	pid_t pid;

	if (unshare(CLONE_NEWPID)) {
		printf("# no PID namespace is to be had: %s\n", strerror(errno));
		crew->alike = true;
	}
	pid = fork();
	if (!pid)
		_exit(!run(s));
	close(s->fd);
	return pid;
}

static bool as_first(const struct share *s, bool (*run)(const struct share *s))
{
	int status;
	pid_t pid = first_start(s, run);

	need(pid > 0 && waitpid(pid, &status, 0) == pid);
	return !status;
}

#define PINGS 50

static bool answers_some(const struct share *s)
{
	char c;

	for (int i = 0; i < 2 * PINGS; i++)
		need(read(s->fd, &c, 1) == 1 && write(s->fd, &c, 1) == 1);
	return true;
}

static bool first_answers(const struct share *s)
{
	return as_first(s, answers_some);
}

static bool first_waits(const struct share *s)
{
	return as_first(s, until_stopped);
}

static bool crew_wait_for(int i)
{
	int status;

	need(waitpid(crew_pid[i], &status, 0) == crew_pid[i] && !status);
	crew_pid[i] = 0;
	return true;
}

/*
 * Both are number 1. When one has gone the other goes on, and the last one takes the state away,
 * for which nobody else counts
 */
static bool same_number_twice(void)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);
	char c;
	int fd[2];

	need(crew_pair(fd) && !getsockopt(fd[1], SOL_SOCKET, SO_COOKIE, &cookie, &len));
	need(states_find(cookie));
	crew_clear();
	need(crew_start(fd, first_waits) && crew_start(fd, first_answers));
	close(fd[1]);
	need(pings(fd[0], PINGS));
	__atomic_store_n(&crew->stop, true, __ATOMIC_RELEASE);
	need(crew_wait_for(0) && pings(fd[0], PINGS));
	need(crew_ended() && read(fd[0], &c, 1) == 0 && !states_find(cookie));
	close(fd[0]);
	return true;
}

static bool first_dies(const struct share *s)
{
	pid_t pid = first_start(s, until_stopped);
	int status;

	need(pid > 0 && !kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status);
}

/* Nobody elsewhere knows: for the others it has the connection still, and its state stays */
static bool killed_elsewhere(void)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);
	char c;
	int fd[2];

	need(crew_pair(fd) && !getsockopt(fd[1], SOL_SOCKET, SO_COOKIE, &cookie, &len));
	crew_clear();
	need(crew_start(fd, first_dies) && crew_ended());
	need(write(fd[0], "x", 1) == 1 && read(fd[1], &c, 1) == 1 && write(fd[1], "y", 1) == 1);
	need(!close(fd[1]) && read(fd[0], &c, 1) == 1 && read(fd[0], &c, 1) == 0);
	need(!states_find(cookie) == crew->alike);
	close(fd[0]);
	return true;
}

/* Whether it was in time or not */
static void *finds_it_closed(void *arg)
{
	char c;
	long n = read(*(int *)arg, &c, 1);

	return (void *)(intptr_t)(n < 0 && errno == EBADF);
}

/* A thread reads what its process closes; another process may go on with it */
static bool closed_beside_a_reader(bool shared)
{
	pthread_t thread;
	void *ended = NULL;
	int fd[2];

	need(crew_pair(fd) && (!shared || crew_start(fd, answers)));
	need(!pthread_create(&thread, NULL, finds_it_closed, &fd[1]));
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
		{ "processes in other PID namespaces", same_number_twice },
		{ "one is killed in another PID namespace", killed_elsewhere },
		{ "a process behind a filter", beside_a_filter },
		{ "a process is killed at its work", killed_at_work },
		{ "a process closes beside its reader", closed_beside_readers },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
