/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A server under pressure: server thread|event|fork PORT. It prints "ready" when it listens.
 *
 * A client sends lines. "E TEXT" is echoed, "B N" is answered by N bytes of a pattern, and at "Q"
 * the server closes. Each way to serve uses the same code for a connection: step() goes on until
 * the socket has nothing more to give or to take, or the connection has ended. A socket that blocks
 * never says EAGAIN, so step() then serves the connection to its end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_MAX_SIZE 4096
#define STACK_SIZE 65536
#define EVENTS 64
#define PAUSE_US 10000

enum step { WANTS_INPUT, WANTS_ROOM, ENDED };

struct conn {
	int fd;
	bool closing;
	size_t in, sent, out;  /* bytes in input, and sent of those in output */
	unsigned long big, at; /* bytes of the pattern to send, and where it is */
	char input[LINE_MAX_SIZE], output[LINE_MAX_SIZE];
};

static char pattern[65536];

static void pattern_init(void)
{
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (char)(i * 7 + (i >> 8));
}

/* Whether the socket is to be asked again later; anything else than EAGAIN is an end. */
static enum step later(enum step wanted)
{
	return errno == EAGAIN || errno == EWOULDBLOCK ? wanted : ENDED;
}

/* The next bytes to send, and how many */
static const char *pending(const struct conn *conn, size_t *size)
{
	size_t at = conn->at % sizeof(pattern);

	*size = conn->out - conn->sent;
	if (*size)
		return conn->output + conn->sent;
	*size = sizeof(pattern) - at;
	if (*size > conn->big)
		*size = conn->big;
	return pattern + at;
}

static void sent(struct conn *conn, size_t size)
{
	if (conn->out > conn->sent) {
		conn->sent += size;
		return;
	}
	conn->big -= size;
	conn->at += size;
}

/* All that there is to send; true: it is sent */
static bool flush(struct conn *conn, enum step *step)
{
	const char *from;
	size_t size;
	ssize_t n;

	while (from = pending(conn, &size), size) {
		n = send(conn->fd, from, size, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			*step = later(WANTS_ROOM);
			return false;
		}
		sent(conn, (size_t)n);
	}
	conn->sent = conn->out = 0;
	return true;
}

static void answer(struct conn *conn, const char *line, size_t size)
{
	if (line[0] == 'E') {
		memcpy(conn->output, line, size);
		conn->out = size;
	} else if (line[0] == 'B') {
		conn->big = strtoul(line + 1, NULL, 10);
		conn->at = 0;
	} else {
		conn->closing = true;
	}
}

/* Answers one line; false: there is none yet */
static bool take_line(struct conn *conn)
{
	char *end = memchr(conn->input, '\n', conn->in);
	size_t size;

	if (!end)
		return false;
	size = (size_t)(end + 1 - conn->input);
	answer(conn, conn->input, size);
	conn->in -= size;
	memmove(conn->input, end + 1, conn->in);
	return true;
}

static enum step step(struct conn *conn)
{
	enum step step = ENDED;
	ssize_t n;

	while (true) {
		if (!flush(conn, &step))
			return step;
		if (conn->closing || (!take_line(conn) && conn->in == sizeof(conn->input)))
			return ENDED;
		if (conn->out || conn->big || conn->closing || memchr(conn->input, '\n', conn->in))
			continue;
		n = recv(conn->fd, conn->input + conn->in, sizeof(conn->input) - conn->in, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? later(WANTS_INPUT) : ENDED;
		conn->in += (size_t)n;
	}
}

static struct conn *conn_create(int fd)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	int one = 1;

	if (!conn) {
		close(fd);
		return NULL;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	conn->fd = fd;
	return conn;
}

static void conn_destroy(struct conn *conn)
{
	close(conn->fd);
	free(conn);
}

static void *serve(void *arg)
{
	struct conn *conn = arg;

	step(conn);
	conn_destroy(conn);
	return NULL;
}

static void begin_thread(int listener, struct conn *conn)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, serve, conn))
		conn_destroy(conn);
	pthread_attr_destroy(&attr);
}

/* The listener is the first process's alone: another server may take its port. */
static void begin_process(int listener, struct conn *conn)
{
	pid_t pid = fork();

	if (!pid) {
		close(listener);
		serve(conn);
		exit(0);
	}
	conn_destroy(conn);
}

static void accept_blocking(int listener, void (*begin)(int listener, struct conn *conn))
{
	struct conn *conn;
	int fd;

	while (true) {
		fd = accept(listener, NULL, NULL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (fd < 0 && errno != EINTR)
			usleep(PAUSE_US);
		conn = fd < 0 ? NULL : conn_create(fd);
		if (conn)
			begin(listener, conn);
	}
}

static void watch(int set, int op, int fd, struct conn *conn, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = conn };

	epoll_ctl(set, op, fd, &event);
}

static void accept_all(int set, int listener)
{
	struct conn *conn;
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		conn = conn_create(fd);
		if (conn)
			watch(set, EPOLL_CTL_ADD, fd, conn, EPOLLIN);
	}
	if (errno == EMFILE)
		usleep(PAUSE_US / 10);
}

static void serve_events(int listener)
{
	struct epoll_event events[EVENTS];
	int set = epoll_create1(0), n;
	struct conn *conn;
	enum step now;

	watch(set, EPOLL_CTL_ADD, listener, NULL, EPOLLIN);
	while (true) {
		n = epoll_wait(set, events, EVENTS, -1);
		for (int i = 0; i < n; i++) {
			conn = events[i].data.ptr;
			if (!conn) {
				accept_all(set, listener);
				continue;
			}
			now = step(conn);
			if (now == ENDED)
				conn_destroy(conn);
			else
				watch(set, EPOLL_CTL_MOD, conn->fd, conn,
				      now == WANTS_ROOM ? EPOLLOUT : EPOLLIN);
		}
	}
}

static int listen_at(const char *port, bool blocking)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)atoi(port)),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | (blocking ? 0 : SOCK_NONBLOCK), 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 4096)) {
		perror(port);
		exit(1);
	}
	puts("ready");
	fflush(stdout);
	return fd;
}

static void child_ended(int number)
{
}

static void end(int number)
{
	_exit(0);
}

int main(int argc, char **argv)
{
	struct sigaction child = { .sa_handler = child_ended }, term = { .sa_handler = end };
	const struct itimerval second = { .it_interval.tv_sec = 1, .it_value.tv_sec = 1 };

	if (argc != 3)
		return 2;
	pattern_init();
	sigaction(SIGCHLD, &child, NULL);
	/* A child that ends a moment before accept() begins is waited for all the same, soon */
	sigaction(SIGALRM, &child, NULL);
	setitimer(ITIMER_REAL, &second, NULL);
	sigaction(SIGTERM, &term, NULL);
	if (!strcmp(argv[1], "event"))
		serve_events(listen_at(argv[2], false));
	accept_blocking(listen_at(argv[2], true),
			strcmp(argv[1], "fork") ? begin_thread : begin_process);
}
