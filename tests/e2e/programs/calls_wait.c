/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Linux promises of waiting on stream sockets: epoll, select, signals, threads, processes. To
 * be run by itself and under the launcher, as calls.c.
 */
#include "tests/e2e/programs/calls.h"

#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>

/* --- poll --- */

static _Noreturn void answer_each(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char c;

	if (connect(fd, (struct sockaddr *)&laddr, sizeof(laddr)))
		_exit(1);
	while (read(fd, &c, 1) == 1 && write(fd, &c, 1) == 1)
		;
	_exit(0);
}

/* What comes while the list is gone through, with the same socket in it many times */
static bool poll_numbers(void)
{
	enum { NUMBERS = 500, ROUNDS = 1000 };
	struct pollfd p[NUMBERS];
	pid_t pid = fork();
	int fd;
	char c;

	if (!pid)
		answer_each();
	fd = accept(lfd, NULL, NULL);
	p[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	for (int i = 1; i < NUMBERS; i++)
		p[i] = (struct pollfd){ .fd = dup(fd) };
	for (int i = 0; i < ROUNDS; i++) {
		need(write(fd, "a", 1) == 1);
		need(poll(p, NUMBERS, 10000) == 1 && p[0].revents == POLLIN);
		need(read(fd, &c, 1) == 1);
	}
	for (int i = 0; i < NUMBERS; i++)
		close(p[i].fd);
	return waitpid(pid, NULL, 0) == pid;
}

/* --- epoll --- */

static int wait_one(int ep, struct epoll_event *e, int ms)
{
	memset(e, 0, sizeof(*e));
	return epoll_wait(ep, e, 1, ms);
}

static bool epoll_errors(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd[2], ep = epoll_create1(0);

	need(pair(fd));
	need(epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], &e) < 0 && errno == ENOENT);
	need(epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], &e) < 0 && errno == ENOENT);
	need(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	need(epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e) < 0 && errno == EEXIST);
	need(epoll_ctl(ep, EPOLL_CTL_MOD, fd[1], &e) < 0 && errno == ENOENT);
	need(epoll_ctl(ep, 77, fd[0], &e) < 0 && errno == EINVAL);
	need(epoll_wait(9999, &e, 1, 0) < 0 && errno == EBADF);
	need(epoll_wait(fd[0], &e, 1, 0) < 0 && errno == EINVAL);
	need(epoll_wait(ep, &e, 0, 0) < 0 && errno == EINVAL);
	need(epoll_ctl(fd[0], EPOLL_CTL_ADD, fd[1], &e) < 0 && errno == EINVAL);
	need(!epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], NULL));
	need(epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], NULL) < 0 && errno == ENOENT);
	done(fd);
	return !close(ep);
}

static bool epoll_level(void)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = 0x123456789abcdef0 };
	int fd[2], ep = epoll_create1(0);
	char c;

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	need(wait_one(ep, &e, 0) == 0);
	need(write(fd[1], "xy", 2) == 2);
	for (int i = 0; i < 3; i++)
		need(wait_one(ep, &e, 1000) == 1 && e.events == EPOLLIN &&
		     e.data.u64 == 0x123456789abcdef0);
	need(read(fd[0], &c, 1) == 1 && wait_one(ep, &e, 0) == 1);
	need(read(fd[0], &c, 1) == 1 && wait_one(ep, &e, 0) == 0);
	e = (struct epoll_event){ .events = EPOLLOUT };
	need(!epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], &e));
	need(wait_one(ep, &e, 0) == 1 && e.events == EPOLLOUT && e.data.u64 == 0);
	e = (struct epoll_event){ .events = EPOLLIN | EPOLLRDHUP };
	need(!epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], &e) && wait_one(ep, &e, 0) == 0);
	need(!shutdown(fd[1], SHUT_WR));
	need(wait_one(ep, &e, 1000) == 1 && e.events == (EPOLLIN | EPOLLRDHUP));
	done(fd);
	return !close(ep);
}

static bool epoll_edge(void)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	int fd[2], ep = epoll_create1(0);
	char c;

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	need(wait_one(ep, &e, 0) == 0);
	need(write(fd[1], "xy", 2) == 2);
	need(wait_one(ep, &e, 1000) == 1 && wait_one(ep, &e, 20) == 0);
	need(read(fd[0], &c, 1) == 1 && wait_one(ep, &e, 0) == 0);
	need(write(fd[1], "z", 1) == 1 && wait_one(ep, &e, 1000) == 1);
	need(wait_one(ep, &e, 0) == 0);
	e = (struct epoll_event){ .events = EPOLLIN | EPOLLET };
	need(!epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], &e));
	need(wait_one(ep, &e, 0) == 1 && wait_one(ep, &e, 0) == 0);
	done(fd);
	return !close(ep);
}

static bool epoll_edge_out(void)
{
	struct epoll_event e = { .events = EPOLLOUT | EPOLLET };
	int fd[2], ep = epoll_create1(0);
	long sum;

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	need(wait_one(ep, &e, 0) == 1 && e.events == EPOLLOUT && wait_one(ep, &e, 0) == 0);
	sum = stuff(fd[0]);
	need(sum > 0);
	while (wait_one(ep, &e, 20) == 1)
		sum += stuff(fd[0]);
	need(drain(fd[1], sum));
	need(wait_one(ep, &e, 1000) == 1 && e.events == EPOLLOUT);
	done(fd);
	return !close(ep);
}

static bool epoll_once(void)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLONESHOT };
	int fd[2], ep = epoll_create1(0);

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	need(write(fd[1], "x", 1) == 1 && wait_one(ep, &e, 1000) == 1);
	need(wait_one(ep, &e, 20) == 0);
	need(write(fd[1], "y", 1) == 1 && wait_one(ep, &e, 20) == 0);
	e = (struct epoll_event){ .events = EPOLLIN | EPOLLONESHOT };
	need(!epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], &e) && wait_one(ep, &e, 0) == 1);
	done(fd);
	return !close(ep);
}

static bool epoll_mixed(void)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = 1 }, got[4];
	int fd[2], pipes[2], ep = epoll_create1(0);
	char c;

	need(pair(fd) && !pipe(pipes) && !epoll_ctl(ep, EPOLL_CTL_ADD, pipes[0], &e));
	e.data.u32 = 2;
	need(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	e.data.u32 = 3;
	need(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[1], &e));
	need(write(pipes[1], "p", 1) == 1 && wait_one(ep, got, 0) == 1 && got[0].data.u32 == 1);
	need(write(fd[1], "s", 1) == 1 && ready(fd[0], POLLIN, 1000));
	need(epoll_wait(ep, got, 4, 100) == 2 && got[0].data.u32 + got[1].data.u32 == 3);
	need(epoll_wait(ep, got, 1, 100) == 1);
	need(read(pipes[0], &c, 1) == 1);
	need(epoll_pwait(ep, got, 4, 0, NULL) == 1 && got[0].data.u32 == 2);
	close(fd[0]);
	need(wait_one(ep, got, 1000) == 1 && got[0].data.u32 == 3);
	close(fd[1]);
	need(wait_one(ep, got, 20) == 0);
	close(pipes[0]);
	close(pipes[1]);
	return !close(ep);
}

/* --- threads and processes --- */

static void *write_later(void *arg)
{
	usleep(30000);
	if (write(*(int *)arg, "t", 1) != 1)
		perror("write");
	return NULL;
}

/* Another thread takes the octets in while this one sleeps; both sleepers must hear of theirs */
static void *read_one(void *arg)
{
	char c;

	return read(*(int *)arg, &c, 1) == 1 ? arg : NULL;
}

static bool two_readers(void)
{
	pthread_t threads[2];
	void *got[2];
	int fd[2];

	need(pair(fd));
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, read_one, &fd[0]);
	usleep(20000);
	need(write(fd[1], "12", 2) == 2);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], &got[i]);
	need(got[0] && got[1]);
	done(fd);
	return true;
}

static bool sleeping_set(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd[2], ep = epoll_create1(0);
	pthread_t thread;

	need(pair(fd));
	pthread_create(&thread, NULL, write_later, &fd[1]);
	need(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	need(wait_one(ep, &e, 2000) == 1);
	pthread_join(thread, NULL);
	done(fd);
	return !close(ep);
}

static bool child(void)
{
	int fd[2], status;
	char buf[8] = "";
	pid_t pid;

	need(pair(fd));
	pid = fork();
	if (pid == 0) {
		close(fd[0]);
		_exit(read(fd[1], buf, 5) == 5 && write(fd[1], buf, 5) == 5 ? 0 : 1);
	}
	close(fd[1]);
	need(write(fd[0], "child", 5) == 5);
	need(recv(fd[0], buf, 5, MSG_WAITALL) == 5 && !strcmp(buf, "child"));
	need(read(fd[0], buf, 1) == 0);
	need(waitpid(pid, &status, 0) == pid && status == 0);
	close(fd[0]);
	return true;
}

/* --- select --- */

static bool selected(void)
{
	struct timeval tv = { .tv_usec = 30000 };
	int fd[2], pipes[2];
	fd_set in, out;

	need(pair(fd) && !pipe(pipes));
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(fd[0], &in);
	FD_SET(pipes[0], &in);
	need(select(FD_SETSIZE, &in, NULL, NULL, &tv) == 0 && !tv.tv_sec && !tv.tv_usec);
	need(!FD_ISSET(fd[0], &in) && !FD_ISSET(pipes[0], &in));
	need(write(fd[1], "x", 1) == 1 && write(pipes[1], "y", 1) == 1);
	need(ready(fd[0], POLLIN, 1000));
	FD_SET(fd[0], &in);
	FD_SET(pipes[0], &in);
	FD_SET(fd[0], &out);
	tv.tv_sec = 5;
	need(select(FD_SETSIZE, &in, &out, NULL, &tv) == 3 && tv.tv_sec >= 4);
	need(FD_ISSET(fd[0], &in) && FD_ISSET(pipes[0], &in) && FD_ISSET(fd[0], &out));
	done(fd);
	close(pipes[0]);
	close(pipes[1]);
	return true;
}

static void alarm_in(int ms)
{
	struct itimerval timer = { .it_value.tv_usec = ms * 1000 };

	signals = 0;
	setitimer(ITIMER_REAL, &timer, NULL);
}

static bool interrupted(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd[2], ep = epoll_create1(0);
	char c;

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	alarm_in(20);
	need(read(fd[0], &c, 1) < 0 && errno == EINTR && signals == 1);
	alarm_in(20);
	need(poll(&(struct pollfd){ .fd = fd[0], .events = POLLIN }, 1, -1) < 0 && errno == EINTR);
	alarm_in(20);
	need(epoll_wait(ep, &e, 1, -1) < 0 && errno == EINTR && signals == 1);
	done(fd);
	close(ep);
	return true;
}

/* A client that is killed when told, and its socket reset right behind its last word */
static pid_t short_lived(int go)
{
	struct linger hard = { 1, 0 };
	pid_t pid = fork();
	char c;
	int fd;

	if (pid)
		return pid;
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (!connect(fd, (struct sockaddr *)&laddr, sizeof(laddr)) && write(fd, "a", 1) == 1 &&
	    !setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)) && read(go, &c, 1) == 1 &&
	    write(fd, "x", 1) == 1)
		raise(SIGKILL);
	_exit(1);
}

static bool reset_behind(uint32_t mode)
{
	struct epoll_event e = { .events = EPOLLIN | mode };
	int fd, go[2], status, ep = epoll_create1(0);
	pid_t pid;
	char c[8];

	need(!pipe(go) && (pid = short_lived(go[0])) > 0);
	fd = accept(lfd, NULL, NULL);
	need(fd >= 0 && read(fd, c, 1) == 1);
	need(!epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) && wait_one(ep, &e, 0) == 0);
	need(write(go[1], "g", 1) == 1 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	need(wait_one(ep, &e, 5000) == 1 && e.events & EPOLLIN);
	need(read(fd, c, sizeof(c)) == 1 && *c == 'x');
	if (!(e.events & EPOLLHUP))
		need(wait_one(ep, &e, 5000) == 1 && e.events & EPOLLHUP);
	need(read(fd, c, sizeof(c)) < 0 && errno == ECONNRESET);
	close(fd);
	close(go[0]);
	close(go[1]);
	return !close(ep);
}

/* Bytes that come between a wait and the read are read with the others, if they have arrived */
static bool behind_wait(int sent_before)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd[2], ep = epoll_create1(0);
	ssize_t got = 0;
	char c[8];

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	need(!setsockopt(fd[1], IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)));
	while (sent_before--)
		need(write(fd[0], "0", 1) == 1 && read(fd[1], c, 1) == 1 &&
		     write(fd[1], "0", 1) == 1 && read(fd[0], c, 1) == 1);
	for (int i = 0; i < 100 && got != 4; i++) {
		need(write(fd[1], "12", 2) == 2 && wait_one(ep, &e, 5000) == 1);
		need(write(fd[1], "34", 2) == 2);
		got = read(fd[0], c, sizeof(c));
		need(got == 4 || (got == 2 && read(fd[0], c, sizeof(c)) == 2));
	}
	need(got == 4);
	done(fd);
	return !close(ep);
}

static bool behind_a_wait(void)
{
	return behind_wait(0);
}

/* Then what each end sends is counted by the connection */
static bool behind_a_wait_later(void)
{
	return behind_wait(50);
}

static bool reset_level(void)
{
	return reset_behind(0);
}

static bool reset_edge(void)
{
	return reset_behind(EPOLLET);
}

enum { PIECE = 65536, LOTS = 64 * PIECE };

static bool write_all(int fd)
{
	static char buf[PIECE];
	long sum = 0, n;

	for (; sum < LOTS; sum += n) {
		n = write(fd, buf, sizeof(buf));
		need(n > 0);
	}
	return true;
}

/* poll() looks at no more descriptors than there may be, all else goes on */
static bool with_no_more(int fd)
{
	struct rlimit none = { 0, 0 };
	struct timeval little = { 0, 20000 };
	fd_set set;

	need(!setrlimit(RLIMIT_NOFILE, &none) && dup(fd) < 0 && errno == EMFILE);
	need(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) < 0 && errno == EINVAL);
	need(write_all(fd)); /* and waits for its reader */
	FD_ZERO(&set);
	FD_SET(fd, &set);
	need(select(fd + 1, &set, NULL, NULL, &little) == 0 && write(fd, "!", 1) == 1);
	FD_SET(fd, &set);
	need(select(fd + 1, &set, NULL, NULL, NULL) == 1);
	need(drain(fd, LOTS) && at_end(fd));
	return true;
}

/* As a process does that is to open nothing any more */
static bool no_descriptor_more(void)
{
	int fd[2];
	pid_t pid;

	need(pair(fd));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(fd[1]);
		_exit(!with_no_more(fd[0]));
	}
	close(fd[0]);
	usleep(50000);
	need(drain(fd[1], LOTS + 1) && write_all(fd[1]));
	need(!shutdown(fd[1], SHUT_WR) && in_child(pid));
	close(fd[1]);
	return true;
}

enum { OCTETS = 200 };

static unsigned int taken; /* by the thread; atomic */

static void *takes_each(void *arg)
{
	const int *fd = arg;
	struct pollfd p = { .fd = *fd, .events = POLLIN };
	char c;

	while (poll(&p, 1, -1) == 1 && read(*fd, &c, 1) == 1)
		__atomic_add_fetch(&taken, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Looks at what another thread sleeps for, until that one has taken it */
static bool look_until(int fd, unsigned int octets)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	double end = now() + 30;

	while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) < octets) {
		need(now() < end);
		poll(&p, 1, 0);
	}
	return true;
}

/* Nothing is to be had that one thread could wake another by; @go: when there is a limit */
static bool with_none_left(int go)
{
	int last = -1, next, fd;
	pthread_t thread;
	char c;

	close(lfd);
	need(read(go, &c, 1) == 1);
	while ((next = open("/dev/null", O_RDONLY)) >= 0)
		last = next;
	need(errno == EMFILE && last >= 0 && !close(last));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	need(!connect(fd, (struct sockaddr *)&laddr, sizeof(laddr)));
	need(!pthread_create(&thread, NULL, takes_each, &fd));
	for (unsigned int i = 0; i < OCTETS; i++)
		need(write(fd, "a", 1) == 1 && look_until(fd, i + 1));
	need(!shutdown(fd, SHUT_WR));
	return !pthread_join(thread, NULL);
}

static bool no_descriptor_left(void)
{
	struct rlimit few = { 64, 64 };
	int go[2], fd;
	pid_t pid;
	char c;

	need(!pipe(go));
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(!with_none_left(go[0]));
	need(pid > 0 && !prlimit(pid, RLIMIT_NOFILE, &few, NULL) && write(go[1], "!", 1) == 1);
	fd = accept(lfd, NULL, NULL);
	need(fd >= 0);
	while (read(fd, &c, 1) == 1)
		need(write(fd, &c, 1) == 1);
	close(fd);
	close(go[0]);
	close(go[1]);
	return in_child(pid);
}

int main(void)
{
	static const struct call_case cases[] = {
		/* Before there is a thread */
		{ "poll: one socket by many numbers", poll_numbers },
		{ "epoll: errors", epoll_errors },
		{ "epoll: level", epoll_level },
		{ "epoll: edge", epoll_edge },
		{ "epoll: edge of room", epoll_edge_out },
		{ "epoll: one shot", epoll_once },
		{ "epoll: mixed members", epoll_mixed },
		{ "epoll: what came behind a wait is read", behind_a_wait },
		{ "epoll: the same of ends that have sent much", behind_a_wait_later },
		{ "epoll: a reset behind octets, by level", reset_level },
		{ "epoll: a reset behind octets, by edge", reset_edge },
		{ "two readers of one socket", two_readers },
		{ "a thread wakes a set", sleeping_set },
		{ "a child serves a connection", child },
		{ "select", selected },
		{ "signals interrupt", interrupted },
		{ "a process that may open nothing more", no_descriptor_more },
		{ "threads of one that has opened all it may", no_descriptor_left },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
