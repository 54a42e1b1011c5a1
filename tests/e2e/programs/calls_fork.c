/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Linux promises of a child that is made while other threads are in the middle of calls: it
 * has what they used, and can use it. Each case has threads that do a thing over and over, while
 * the first thread forks and the children do the same thing. As calls.c, for the kernel's TCP and
 * for Warpsock.
 */
#include "tests/e2e/programs/calls.h"

#include <aio.h>
#include <pthread.h>
#include <spawn.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#define HAMMERS 2
/* So many children, but no longer than this for all of them */
#define FORKS 2000
#define LONG_S 4
/* A child that takes so long waits for a lock that nobody has */
#define PATIENCE_S 20

extern char **environ;
extern pid_t _Fork(void);

static volatile sig_atomic_t over;
static int ends[2]; /* of the connection at hand */
static FILE *file;

/* --- what is done over and over --- */

static bool leave_at_once(void)
{
	char c;

	return recv(ends[0], &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void *call_and_end(void *arg)
{
	return leave_at_once() ? NULL : arg;
}

/* A thread that makes its first call, and ends */
static bool thread_once(void)
{
	pthread_t thread;
	void *failed;

	need(!pthread_create(&thread, NULL, call_and_end, ends));
	need(!pthread_join(thread, &failed) && !failed);
	return true;
}

static void *call_and_wait(void *arg)
{
	char c;

	leave_at_once();
	read(ends[0], &c, 1);
	return NULL;
}

static bool cancel_once(void)
{
	pthread_t thread;
	void *how;

	need(!pthread_create(&thread, NULL, call_and_wait, NULL));
	need(!pthread_cancel(thread) && !pthread_join(thread, &how) && how == PTHREAD_CANCELED);
	return true;
}

static bool file_once(void)
{
	int fd = dup(ends[0]);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r+");

	need(f && fileno(f) == fd && !fclose(f));
	return true;
}

static bool flush_once(void)
{
	return fputc('x', file) == 'x' && !fflush(NULL);
}

/* Each request has a mark of its own: notices come from threads, at once and in any order */
static void on_notice(union sigval value)
{
	__atomic_store_n((bool *)value.sival_ptr, true, __ATOMIC_RELEASE);
}

static bool is_told(const bool *told)
{
	for (int i = 0; i < 200000 && !__atomic_load_n(told, __ATOMIC_ACQUIRE); i++)
		usleep(100);
	return __atomic_load_n(told, __ATOMIC_ACQUIRE);
}

static bool request_once(void)
{
	struct aiocb cb = { .aio_fildes = ends[0], .aio_buf = "x", .aio_nbytes = 1 };
	const struct aiocb *list[] = { &cb };
	bool told = false;

	cb.aio_sigevent.sigev_notify = SIGEV_THREAD;
	cb.aio_sigevent.sigev_notify_function = on_notice;
	cb.aio_sigevent.sigev_value.sival_ptr = &told;
	need(!aio_write(&cb));
	while (aio_error(&cb) == EINPROGRESS)
		aio_suspend(list, 1, NULL);
	need(aio_return(&cb) == 1);
	need(is_told(&told));
	return true;
}

static bool set_once(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(EPOLL_CLOEXEC);

	need(set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event));
	need(epoll_wait(set, &event, 1, 0) == 0 && !close(set));
	return true;
}

static bool socket_once(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), more = dup(fd);

	return fd >= 0 && more >= 0 && !close(fd) && !close(more);
}

static bool spawn_once(void)
{
	char *argv[] = { (char *)"true", NULL };
	int status = -1;
	pid_t pid;

	need(!posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ));
	need(waitpid(pid, &status, 0) == pid && !status);
	return true;
}

/* --- hammers, and children --- */

static void *hammer(void *arg)
{
	bool (*once)(void) = *(bool (**)(void))arg;
	bool good = true;

	while (good && !over)
		good = once();
	return good ? NULL : arg;
}

/* What requests and FILEs write is taken, so that they go on */
static void *taker(void *arg)
{
	static char buf[4096];

	while (read(ends[1], buf, sizeof(buf)) > 0)
		;
	return NULL;
}

/* The octets of both processes go the same way, so only one of them looks at a time */
static bool child_is_well(bool (*once)(void), pid_t (*make)(void))
{
	int status = -1;
	pid_t pid = make();

	if (!pid) {
		signal(SIGALRM, SIG_DFL);
		alarm(PATIENCE_S);
		status = once() ? 0 : 1;
		fflush(stdout);
		_exit(status);
	}
	need(pid > 0 && waitpid(pid, &status, 0) == pid);
	if (status)
		printf("# a child ended with %#x\n", status);
	return !status;
}

static bool beside(bool (*once)(void), bool (*in_child)(void), pid_t (*make)(void))
{
	pthread_t threads[HAMMERS], reader;
	double begin = now();
	bool good = true;
	void *failed;

	over = 0;
	need(pair(ends));
	file = fdopen(dup(ends[0]), "w");
	need(file && !pthread_create(&reader, NULL, taker, NULL));
	for (int i = 0; i < HAMMERS; i++)
		need(!pthread_create(&threads[i], NULL, hammer, &once));
	for (int i = 0; i < FORKS && good && now() - begin < LONG_S; i++)
		good = child_is_well(in_child, make);
	over = 1;
	for (int i = 0; i < HAMMERS; i++)
		need(!pthread_join(threads[i], &failed) && !failed);
	need(!fclose(file) && !shutdown(ends[0], SHUT_WR) && !pthread_join(reader, NULL));
	done(ends);
	return good;
}

static bool threads_come_and_go(void)
{
	return beside(thread_once, thread_once, fork) && beside(thread_once, leave_at_once, _Fork);
}

/* The first cancellation loads the unwinder, and libc's loader has a lock of its own */
static bool unwinder_is_there(void)
{
	bool good;

	need(pair(ends));
	good = cancel_once();
	done(ends);
	return good;
}

static bool threads_are_cancelled(void)
{
	return unwinder_is_there() && beside(cancel_once, cancel_once, fork);
}

static bool files(void)
{
	return beside(file_once, file_once, fork);
}

static bool flushing(void)
{
	return beside(flush_once, flush_once, fork);
}

/* Those of libc do not work in a child */
static bool has_ddp(void)
{
	return getenv("LD_PRELOAD") && !getenv("WARPSOCK_TCP_SPIN");
}

static bool requests(void)
{
	return beside(request_once, has_ddp() ? request_once : leave_at_once, fork);
}

static bool sets(void)
{
	return beside(set_once, set_once, fork) && beside(set_once, set_once, _Fork);
}

static bool sockets(void)
{
	return beside(socket_once, socket_once, fork) && beside(socket_once, socket_once, _Fork);
}

static bool programs(void)
{
	return beside(spawn_once, spawn_once, fork);
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "a fork while threads come and go", threads_come_and_go },
		{ "a fork while threads are cancelled", threads_are_cancelled },
		{ "a fork while FILEs are opened and closed", files },
		{ "a fork while all FILEs are flushed", flushing },
		{ "a fork while requests are made and end", requests },
		{ "a fork while epoll sets are made", sets },
		{ "a fork while sockets are made and duplicated", sockets },
		{ "a fork while programs are started", programs },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
