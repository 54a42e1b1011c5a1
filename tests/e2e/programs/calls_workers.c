/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Linux promises of servers of several processes: workers made before the first connection
 * share a listener, or have one each at the same port. As calls.c, for the kernel's TCP and for
 * Warpsock.
 */
#include "tests/e2e/programs/calls_share.h"

#define WORKERS 6
#define CLIENTS 60

/* It answers with its number, until the other end closes */
static bool serve(int conn, int number)
{
	char c, answer = (char)('0' + number);
	ssize_t n;

	while ((n = read(conn, &c, 1)) == 1)
		need(write(conn, &answer, 1) == 1);
	need(n == 0 && !close(conn));
	return true;
}

/* Its last connection says so */
static bool is_over(int conn)
{
	char c;

	return recv(conn, &c, 1, MSG_PEEK) == 1 && c == 'q';
}

static bool blocking(const struct share *s)
{
	for (;;) {
		int conn = accept(s->fd, NULL, NULL);
		bool over;

		need(conn >= 0);
		over = is_over(conn);
		need(serve(conn, s->number));
		if (over)
			return true;
	}
}

/* Everybody is woken for one, and who comes too late sleeps on */
static bool by_set(const struct share *s, uint32_t events)
{
	struct epoll_event event = { .events = events };
	int set = epoll_create1(0);

	need(!epoll_ctl(set, EPOLL_CTL_ADD, s->fd, &event));
	for (;;) {
		bool over;
		int conn;

		need(epoll_wait(set, &event, 1, LIMIT_MS) == 1);
		conn = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
		if (conn < 0 && errno == EAGAIN)
			continue;
		need(conn >= 0);
		over = is_over(conn);
		need(serve(conn, s->number));
		if (over)
			return true;
	}
}

static bool woken_all(const struct share *s)
{
	return by_set(s, EPOLLIN);
}

static bool woken_alone(const struct share *s)
{
	return by_set(s, EPOLLIN | EPOLLEXCLUSIVE);
}

/* Listener and connections in one set, as servers of events have it */
static bool events(const struct share *s)
{
	struct epoll_event got[8], event = { .events = EPOLLIN, .data.fd = s->fd };
	int set = epoll_create1(0), conn, over = 0, open = 0;
	char c, answer = (char)('0' + s->number);

	need(!epoll_ctl(set, EPOLL_CTL_ADD, s->fd, &event));
	while (!over || open) {
		int n = epoll_wait(set, got, 8, LIMIT_MS);

		need(n > 0);
		for (int i = 0; i < n; i++) {
			if (got[i].data.fd != s->fd) {
				ssize_t k = read(got[i].data.fd, &c, 1);

				need(k >= 0);
				over |= k == 1 && c == 'q';
				if (k == 1)
					need(write(got[i].data.fd, &answer, 1) == 1);
				else
					open -= !close(got[i].data.fd);
				continue;
			}
			conn = over ? -1 : accept4(s->fd, NULL, NULL, SOCK_NONBLOCK);
			if (over || (conn < 0 && errno == EAGAIN))
				continue;
			event = (struct epoll_event){ .events = EPOLLIN, .data.fd = conn };
			need(conn >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, conn, &event));
			open++;
		}
		if (over)
			epoll_ctl(set, EPOLL_CTL_DEL, s->fd, &event);
	}
	return true;
}

static int connected(const struct sockaddr_in *to)
{
	struct timeval limit = { LIMIT_MS / 1000, 0 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)))
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

/* One after the other, then many at once, then the last words */
static bool clients(const struct sockaddr_in *to, int workers)
{
	int fd[CLIENTS];
	char c;

	for (int i = 0; i < CLIENTS; i++) {
		fd[0] = connected(to);
		need(fd[0] >= 0 && write(fd[0], "x", 1) == 1 && read(fd[0], &c, 1) == 1);
		need(c >= '0' && c < '0' + workers);
		close(fd[0]);
	}
	for (int i = 0; i < workers; i++) {
		fd[i] = connected(to);
		need(fd[i] >= 0 && write(fd[i], "x", 1) == 1);
	}
	for (int i = 0; i < workers; i++)
		need(read(fd[i], &c, 1) == 1 && !close(fd[i]));
	return true;
}

/* A worker takes one of these and no more, so that each is told */
static bool dismissed(const struct sockaddr_in *to, int workers)
{
	char c;

	for (int i = 0; i < workers; i++) {
		int fd = connected(to);

		need(fd >= 0 && write(fd, "q", 1) == 1 && read(fd, &c, 1) == 1 && !close(fd));
	}
	return true;
}

static int listener(struct sockaddr_in *at, bool reuse)
{
	socklen_t len = sizeof(*at);
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (reuse)
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)at, len) || listen(fd, 128) ||
	    getsockname(fd, (struct sockaddr *)at, &len))
		return -1;
	return fd;
}

static bool shared_listener(bool (*work)(const struct share *s), bool wait)
{
	struct sockaddr_in at = laddr;
	int fd;

	at.sin_port = 0;
	fd = listener(&at, false);
	need(fd >= 0 && (wait || nonblock(fd)));
	for (int i = 0; i < WORKERS; i++)
		need(crew_start((int[2]){ lfd, fd }, work));
	need(clients(&at, WORKERS) && dismissed(&at, WORKERS) && crew_ended());
	close(fd);
	return true;
}

static bool shared_blocking(void)
{
	return shared_listener(blocking, true);
}

static bool shared_all(void)
{
	return shared_listener(woken_all, false);
}

static bool shared_alone(void)
{
	return shared_listener(woken_alone, false);
}

static bool shared_events(void)
{
	return shared_listener(events, false);
}

/* The kernel has each connection go to one of them */
static bool own_listeners(void)
{
	struct sockaddr_in at = laddr;
	int fd, status;
	char c;

	at.sin_port = 0;
	for (int i = 0; i < WORKERS; i++) {
		fd = listener(&at, true);
		need(fd >= 0 && nonblock(fd) && crew_start((int[2]){ lfd, fd }, events));
		close(fd);
	}
	need(clients(&at, WORKERS));
	/* Which of them gets the last word is the kernel's choice */
	for (int left = WORKERS; left; left--) {
		int to = connected(&at);

		need(to >= 0 && write(to, "q", 1) == 1 && read(to, &c, 1) == 1 && !close(to));
		need(waitpid(crew_pid[c - '0'], &status, 0) == crew_pid[c - '0'] && !status);
		crew_pid[c - '0'] = 0;
	}
	return crew_ended();
}

static bool killed_worker(void)
{
	struct sockaddr_in at = laddr;
	char c;
	int fd, to;

	at.sin_port = 0;
	fd = listener(&at, false);
	need(fd >= 0 && crew_start((int[2]){ lfd, fd }, blocking));
	to = connected(&at);
	need(to >= 0 && write(to, "x", 1) == 1 && read(to, &c, 1) == 1 && c == '0');
	need(crew_kill(0) && crew_start((int[2]){ lfd, fd }, blocking));
	/* Its connection has ended, and the next worker has the next one */
	need(read(to, &c, 1) <= 0 && !close(to));
	to = connected(&at);
	need(to >= 0 && write(to, "q", 1) == 1 && read(to, &c, 1) == 1 && c == '1');
	close(to);
	close(fd);
	return crew_ended();
}

/* A process for each connection, which its parent closes at once */
static bool fork_for_each(void)
{
	struct sockaddr_in at = laddr;
	int fd, to[8], conn;
	char c;

	at.sin_port = 0;
	fd = listener(&at, false);
	for (int i = 0; i < 8; i++) {
		pid_t pid;

		to[i] = connected(&at);
		need(to[i] >= 0 && write(to[i], "x", 1) == 1);
		conn = accept(fd, NULL, NULL);
		need(conn >= 0);
		fflush(stdout);
		pid = fork();
		if (!pid) {
			for (int k = 0; k <= i; k++)
				close(to[k]);
			_exit(!serve(conn, i));
		}
		need(pid > 0 && !close(conn));
		crew_pid[crew_count++] = pid;
	}
	for (int i = 7; i >= 0; i--)
		need(read(to[i], &c, 1) == 1 && c == '0' + i && !close(to[i]));
	close(fd);
	return crew_ended();
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "workers that sleep in accept()", shared_blocking },
		{ "workers with a set each", shared_all },
		{ "workers with EPOLLEXCLUSIVE", shared_alone },
		{ "workers of events", shared_events },
		{ "workers with a listener each", own_listeners },
		{ "a worker is killed", killed_worker },
		{ "a process for each connection", fork_for_each },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
