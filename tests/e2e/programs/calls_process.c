/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Linux promises of connections when descriptors are closed by the range, and when processes
 * are made, replaced and ended. As calls.c, for the kernel's TCP and for Warpsock.
 */
#include "tests/e2e/programs/calls.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

extern char **environ;

static void *answer(void *arg)
{
	int fd = *(int *)arg;
	char c;

	while (read(fd, &c, 1) == 1 && write(fd, &c, 1) == 1)
		;
	return NULL;
}

/* Across threads, so that they wake each other */
static bool threads_talk(int a, int b)
{
	pthread_t thread;
	char c;

	need(!pthread_create(&thread, NULL, answer, &b));
	for (int i = 0; i < 100; i++)
		need(write(a, "x", 1) == 1 && read(a, &c, 1) == 1);
	need(!shutdown(a, SHUT_WR) && !pthread_join(thread, NULL));
	return true;
}

/* --- ranges --- */

/* A pair of which one end is above all else */
static bool pair_above(int fd[2], int number)
{
	need(pair(fd) && dup2(fd[0], number) == number && !close(fd[0]));
	fd[0] = number;
	return true;
}

static bool range_ends(void)
{
	int a[2], b[2];

	need(pair_above(a, 600) && pair_above(b, 610));
	need(write(600, "last", 4) == 4);
	need(!close_range(590, 605, 0) && fcntl(600, F_GETFD) < 0 && errno == EBADF);
	need(recv(a[1], (char[4]){ 0 }, 4, MSG_WAITALL) == 4 && at_end(a[1]));
	need(talk(610, b[1]));
	closefrom(605);
	need(at_end(b[1]) && fcntl(610, F_GETFD) < 0);
	close(a[1]);
	close(b[1]);
	return true;
}

static bool range_flags(void)
{
	int fd[2];

	need(pair_above(fd, 600));
	need(close_range(5, 4, 0) < 0 && errno == EINVAL);
	need(close_range(600, 600, 64) < 0 && errno == EINVAL);
	need(!close_range(600, ~0u, CLOSE_RANGE_CLOEXEC) && fcntl(600, F_GETFD) == FD_CLOEXEC);
	need(talk(600, fd[1]));
	done(fd);
	return true;
}

/* The rest must go on with what it has left: wakeup fds, sets, lingering ones */
static bool others_closed(bool range)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 3 };
	int fd[2], old[2], epfd = epoll_create1(0);
	struct rlimit limit;

	need(pair(old) && pair(fd) && threads_talk(old[0], old[1]));
	need(dup2(fd[0], 40) == 40 && dup2(fd[1], 41) == 41 && dup2(epfd, 42) == 42);
	need(dup2(lfd, 43) == 43 && !getrlimit(RLIMIT_NOFILE, &limit));
	lfd = 43;
	need(!epoll_ctl(42, EPOLL_CTL_ADD, 40, &event));
	if (range)
		need(!close_range(3, 39, 0) && !close_range(44, ~0u, 0));
	for (int i = 3; !range && i < (int)limit.rlim_cur && i < 70000; i++)
		if (i < 40 || i > 43)
			close(i);
	need(write(41, "x", 1) == 1 && epoll_wait(42, &event, 1, 1000) == 1);
	need(event.data.u64 == 3 && read(40, (char[1]){ 0 }, 1) == 1);
	need(talk(40, 41) && threads_talk(40, 41));
	need(!close_range(40, 42, 0) && pair(fd) && threads_talk(fd[0], fd[1]));
	done(fd);
	return true;
}

static bool every_number(void)
{
	return others_closed(false);
}

static bool range_of_all(void)
{
	return others_closed(true);
}

static bool range_unshared(void)
{
	int fd[2];
	pid_t pid;

	need(pair_above(fd, 600));
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(close_range(600, ~0u, CLOSE_RANGE_UNSHARE) || fcntl(600, F_GETFD) >= 0);
	need(in_child(pid) && talk(600, fd[1]));
	done(fd);
	return true;
}

#define NO_NAMESPACE 77

/* The kernel grants both to a process of one thread. What is closed at one end lingers */
static int namespace_main(int fd[2], int lingers[2])
{
	int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	char c;

	if (close(lingers[0]) || (setns(mounts, 0) && errno != EPERM))
		return 1;
	if (unshare(CLONE_NEWUSER))
		return errno == EPERM || errno == ENOSPC ? NO_NAMESPACE : 2;
	return talk(fd[0], fd[1]) && threads_talk(fd[0], fd[1]) && !read(lingers[1], &c, 1) ? 0 : 3;
}

static bool own_namespace(void)
{
	int fd[2], lingers[2], status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(pair(fd) && pair(lingers) ? namespace_main(fd, lingers) : 4);
	need(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_NAMESPACE)
		return tap_skip("no user namespace is to be had");
	need(!WEXITSTATUS(status));
	return true;
}

/* --- processes --- */

static bool vforked(void)
{
	int fd[2], ends[2], status;
	pid_t pid;

	need(pair(fd) && !pipe(ends));
	pid = vfork();
	if (!pid) {
		dup2(ends[1], 1);
		close_range(3, ~0u, 0);
		execl("/bin/echo", "echo", "hi", NULL);
		_exit(1);
	}
	need(in_child(pid) && read(ends[0], (char[4]){ 0 }, 4) == 3);
	need(talk(fd[0], fd[1]));
	pid = vfork();
	if (!pid) {
		close(fd[0]);
		close(fd[1]);
		_exit(3);
	}
	need(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3);
	need(talk(fd[0], fd[1]) && threads_talk(fd[0], fd[1]));
	close(ends[0]);
	close(ends[1]);
	done(fd);
	return true;
}

/* Processes that libc has not made */
static bool forked_raw(void)
{
	int fd[2];
	pid_t pid;

	need(pair(fd));
	fflush(stdout);
	pid = (pid_t)syscall(SYS_fork);
	if (!pid) {
		close(fd[0]);
		close(fd[1]);
		_exit(0);
	}
	need(in_child(pid) && talk(fd[0], fd[1]));
	pid = _Fork();
	if (!pid)
		_exit(write(fd[0], "child", 5) != 5);
	need(in_child(pid) && recv(fd[1], (char[5]){ 0 }, 5, MSG_WAITALL) == 5);
	need(talk(fd[0], fd[1]) && !close(fd[0]) && at_end(fd[1]));
	close(fd[1]);
	return true;
}

/* A child of _Fork() has a new life, too: signals, threads to be cancelled, requests */
static void *reads_for_ever(void *arg)
{
	char c;

	return (void *)(intptr_t)read(*(int *)arg, &c, 1);
}

static int parity(int fd[2])
{
	struct timeval soon = { 0, 20000 };
	pthread_t thread;
	void *how;

	if (setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, soon }, NULL))
		return 1;
	signals = 0;
	if (ready(fd[1], POLLIN, 20000) || errno != EINTR || signals != 1)
		return 2;
	if (pthread_create(&thread, NULL, reads_for_ever, &fd[1]))
		return 3;
	usleep(20000);
	if (pthread_cancel(thread) || pthread_join(thread, &how) || how != PTHREAD_CANCELED)
		return 4;
	return !talk(fd[0], fd[1]);
}

static bool forked_without_handlers(void)
{
	pthread_t thread;
	int fd[2], other[2];
	pid_t pid;

	/* A thread of the parent's that is inside, and not in the child */
	need(pair(fd) && pair(other));
	need(!pthread_create(&thread, NULL, reads_for_ever, &other[1]));
	fflush(stdout);
	pid = _Fork();
	if (!pid)
		_exit(parity(fd));
	need(in_child(pid) && talk(fd[0], fd[1]));
	need(write(other[0], "x", 1) == 1 && !pthread_join(thread, NULL));
	need(!close(fd[0]) && at_end(fd[1]));
	close(fd[1]);
	done(other);
	return true;
}

/* A fork() that fails has made nobody who has the connections, too */
static int forks_in_vain(int fd[2])
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 1;
	for (int i = 0; i < 3; i++)
		if (fork() != -1 || errno != EAGAIN || _Fork() != -1 || errno != EAGAIN)
			return 2;
	return !(talk(fd[0], fd[1]) && !close(fd[0]) && at_end(fd[1]));
}

static bool fork_fails(void)
{
	int fd[2];
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(pair(fd) ? forks_in_vain(fd) : 3);
	return in_child(pid);
}

/* A child that executes has closed its copies; its parent's connections stay as they are */
static bool forked_and_executed(void)
{
	int fd[2];
	pid_t pid;

	need(pair(fd));
	for (int i = 0; i < 2; i++)
		need(!fcntl(fd[i], F_SETFD, FD_CLOEXEC));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		execlp("true", "true", NULL);
		_exit(1);
	}
	need(in_child(pid) && talk(fd[0], fd[1]));
	pid = fork();
	if (!pid) {
		execl("/nonexistent/program", "program", NULL);
		_exit(!(errno == ENOENT && write(fd[0], "still", 5) == 5));
	}
	need(in_child(pid) && recv(fd[1], (char[5]){ 0 }, 5, MSG_WAITALL) == 5);
	need(talk(fd[0], fd[1]));
	done(fd);
	return true;
}

/* The connection is the process's own, and the kernel would close it at the execution */
static bool executed(void)
{
	static char data[200000];
	int fd[2], ends[2];
	pid_t pid;

	need(!pipe(ends));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(fd[0], (struct sockaddr *)&laddr, sizeof(laddr)) ||
		    write(fd[0], data, sizeof(data)) != sizeof(data))
			_exit(1);
		dup2(ends[1], 1);
		execle("/bin/sh", "sh", "-c", "echo $WORD", NULL, (char *[]){ "WORD=new", NULL });
		_exit(1);
	}
	fd[1] = accept(lfd, NULL, NULL);
	usleep(50000);
	need(drain(fd[1], sizeof(data)) && at_end(fd[1]) && in_child(pid));
	need(read(ends[0], (char[8]){ 0 }, 8) == 4);
	close(fd[1]);
	close(ends[0]);
	close(ends[1]);
	return true;
}

/* What another program does with a listener that it was given by number */
static int serve(int fd)
{
	int got = accept(fd, NULL, NULL);
	char buf[4];

	if (recv(got, buf, 4, MSG_WAITALL) != 4 || write(got, buf, 4) != 4)
		return 1;
	return read(got, buf, 1) != 0;
}

static bool listener_inherited(void)
{
	char number[16], buf[4];
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	pid_t pid;

	snprintf(number, sizeof(number), "%d", lfd);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		execl("/proc/self/exe", "server", number, NULL);
		_exit(1);
	}
	need(!connect(fd, (struct sockaddr *)&laddr, sizeof(laddr)) && write(fd, "word", 4) == 4);
	need(recv(fd, buf, 4, MSG_WAITALL) == 4 && !memcmp(buf, "word", 4));
	need(!shutdown(fd, SHUT_WR) && in_child(pid));
	close(fd);
	return true;
}

static bool spawned(void)
{
	char *argv[] = { "sh", "-c", "exit 0", NULL };
	int fd[2];
	pid_t pid;
	FILE *p;

	need(pair(fd));
	need(!posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) && in_child(pid));
	need(talk(fd[0], fd[1]));
	need(!posix_spawnp(&pid, "sh", NULL, NULL, argv, environ) && in_child(pid));
	need(posix_spawnp(&pid, "no-such-program", NULL, NULL, argv, environ) == ENOENT);
	need(!system("exit 0") && WEXITSTATUS(system("exit 3")) == 3);
	p = popen("echo out", "r");
	need(p && fgetc(p) == 'o' && !pclose(p));
	need(!(fcntl(fd[0], F_GETFD) & FD_CLOEXEC) && talk(fd[0], fd[1]));
	done(fd);
	return true;
}

/* Children of a process whose threads are busy */
static volatile int stop;

static void *busy(void *arg)
{
	int *fd = arg;

	while (!stop)
		if (!talk(fd[0], fd[1]))
			return (void *)1;
	return NULL;
}

static bool forked_beside_threads(void)
{
	int fd[2][2], mine[2];
	pthread_t thread[2];
	void *bad[2];

	stop = 0;
	need(pair(mine));
	for (int i = 0; i < 2; i++)
		need(pair(fd[i]) && !pthread_create(&thread[i], NULL, busy, fd[i]));
	fflush(stdout);
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();

		if (!pid) {
			done(fd[0]);
			_exit(write(mine[0], "c", 1) != 1);
		}
		need(in_child(pid) && read(mine[1], (char[1]){ 0 }, 1) == 1);
	}
	stop = 1;
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], &bad[i]);
		done(fd[i]);
	}
	need(!bad[0] && !bad[1] && talk(mine[0], mine[1]));
	done(mine);
	return true;
}

/* --- ends --- */

static void leave_by_daemon(void)
{
	if (!daemon(0, 1) && write(4, "d", 1) == 1)
		_exit(0);
}

static void leave_by_abort(void)
{
	signal(SIGABRT, SIG_DFL);
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	abort();
}

static void leave_without_descriptors(void)
{
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, 0 });
	close(4);
	_exit(0);
}

static void leave_by_exit(void)
{
	exit(0);
}

static void leave_by_quick_exit(void)
{
	quick_exit(0);
}

static void leave_at_once(void)
{
	_exit(0);
}

/* What was accepted arrives, though its writer ends at once */
static bool all_arrives(void (*leave)(void), long extra)
{
	static char data[100000];
	int fd;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&laddr, sizeof(laddr)))
			_exit(1);
		dup2(fd, 4);
		if (fd != 4)
			close(fd);
		if (write(4, data, sizeof(data)) == sizeof(data))
			leave();
		_exit(1);
	}
	fd = accept(lfd, NULL, NULL);
	need(fd >= 0);
	usleep(100000);
	need(drain(fd, (long)sizeof(data) + extra) && at_end(fd));
	need(waitpid(pid, NULL, 0) == pid);
	close(fd);
	return true;
}

static bool ends(void)
{
	need(all_arrives(leave_by_exit, 0));
	need(all_arrives(leave_by_quick_exit, 0));
	need(all_arrives(leave_at_once, 0));
	need(all_arrives(leave_by_daemon, 1));
	need(all_arrives(leave_without_descriptors, 0));
	return true;
}

static bool aborts(void)
{
	need(all_arrives(leave_by_abort, 0));
	return true;
}

struct sleeper {
	int fd;
	int (*sleep)(int fd);
};

static int sleep_recv(int fd)
{
	char c;

	return (int)recv(fd, &c, 1, 0);
}

static int sleep_poll(int fd)
{
	return ready(fd, POLLIN, -1);
}

static int sleep_epoll(int fd)
{
	struct epoll_event e = { .events = EPOLLIN };
	int ep = epoll_create1(0);

	epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
	return epoll_wait(ep, &e, 1, -1);
}

/* Not asleep, but at work without a pause */
static int work(int fd)
{
	while (send(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 || errno == EAGAIN)
		;
	return -1;
}

static void *sleep_then_exit(void *arg)
{
	struct sleeper *sleeper = arg;

	sleeper->sleep(sleeper->fd);
	_exit(7);
}

/* A thread that sleeps in a call does not see the process end */
static bool ends_asleep(void)
{
	static int (*const sleeps[])(int) = { sleep_recv, sleep_poll, sleep_epoll, work };
	int fd[2];

	for (size_t i = 0; i < sizeof(sleeps) / sizeof(sleeps[0]); i++) {
		pid_t pid = fork();

		if (!pid) {
			struct sleeper sleeper = { -1, sleeps[i] };
			pthread_t thread;

			if (!pair(fd))
				_exit(2);
			sleeper.fd = fd[0];
			pthread_create(&thread, NULL, sleep_then_exit, &sleeper);
			usleep(50000);
			_exit(0);
		}
		need(in_child(pid));
	}
	return true;
}

static void *make_sets(void *arg)
{
	while (!__atomic_load_n((bool *)arg, __ATOMIC_RELAXED))
		close(epoll_create1(0));
	return NULL;
}

/* A set that is closed while another thread forks */
static bool forked_beside_sets(void)
{
	bool stop = false;
	pthread_t thread;

	need(!pthread_create(&thread, NULL, make_sets, &stop));
	for (int i = 0; i < 1000; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		need(in_child(pid));
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	need(!pthread_join(thread, NULL));
	return true;
}

static int tell; /* a pipe */

/* The child lives, and makes calls, though its parent is about to end */
static void fork_late(int sig)
{
	if (fork())
		return;
	close(socket(AF_INET, SOCK_STREAM, 0));
	if (write(tell, "c", 1) == 1)
		_exit(0);
	_exit(1);
}

/* The end waits for a peer that does not read; a handler runs meanwhile */
static bool ends_and_forks(void)
{
	int fd[2], in[2], small = 4096, large = 1 << 18;
	pid_t pid;
	char c;

	need(!pipe(in) && !setsockopt(lfd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct itimerval soon = { .it_value.tv_usec = 200000 };

		tell = in[1];
		fd[0] = socket(AF_INET, SOCK_STREAM, 0);
		signal(SIGALRM, fork_late);
		if (connect(fd[0], (struct sockaddr *)&laddr, sizeof(laddr)) ||
		    read(fd[0], &c, 1) != 1 || stuff(fd[0]) < 0)
			_exit(1);
		setitimer(ITIMER_REAL, &soon, NULL);
		exit(0);
	}
	fd[1] = accept(lfd, NULL, NULL);
	need(fd[1] >= 0 && write(fd[1], "a", 1) == 1);
	close(in[1]);
	need(ready(in[0], POLLIN, 20000));
	close(in[0]);
	close(fd[1]); /* with octets unread: a reset, and the end comes */
	need(waitpid(pid, NULL, 0) == pid);
	return !setsockopt(lfd, SOL_SOCKET, SO_RCVBUF, &large, sizeof(large));
}

int main(int argc, char **argv)
{
	static const struct call_case cases[] = {
		{ "close_range, closefrom", range_ends },
		{ "close_range with flags", range_flags },
		{ "close_range in a table of its own", range_unshared },
		{ "unshare() and setns() of a process of one thread", own_namespace },
		{ "vfork", vforked },
		{ "forks that libc has not made", forked_raw },
		{ "fork without handlers", forked_without_handlers },
		{ "fork fails", fork_fails },
		{ "fork and exec", forked_and_executed },
		{ "exec", executed },
		{ "a listener is inherited", listener_inherited },
		{ "posix_spawn, system, popen", spawned },
		{ "fork beside busy threads", forked_beside_threads },
		{ "exit, quick_exit, _exit, daemon", ends },
		{ "the end beside threads that sleep", ends_asleep },
		{ "fork beside sets that are closed", forked_beside_sets },
		{ "a fork while the process ends", ends_and_forks },
		{ "abort", aborts },
		{ "each number is closed", every_number },
		{ "all numbers are closed", range_of_all },
	};

	if (argc > 1)
		return serve(atoi(argv[1]));
	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
