/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 *	short helper                prints its port and serves
 *	short calls PORT [ROOM]     the script, with the helper behind PORT
 *	short full PORT FOLDER      with connections that it has when the folder fills up
 *	short inherited FD          goes on with a connection, as the script's new program
 *
 * A script of calls for a process that is short of something: each works, or fails with an errno
 * that TCP has for it, and the script goes on with what it has. ROOM is how many descriptors it may
 * have above those it begins with. Beside it stands a connection that must not notice: it is
 * asked after each step. Where nothing is short any more all must work again.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <warp/ddp.h>

#define WORD 8
#define MANY 20000
#define ASKED 8 /* errnos that a step may have */

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)port),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

static int result(long r)
{
	return r < 0 ? errno : 0;
}

/* --- the helper: sends back what comes; "C" and a port: connects there, and says so --- */

/* In a thread of its own, for who is called may take its time */
static void *call_back(void *arg)
{
	struct sockaddr_in a = loopback((int)(intptr_t)arg);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char octets[WORD];
	ssize_t n = WORD;

	if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
		perror("helper: connect");
	memcpy(octets, "called..", WORD);
	while (n > 0 && send(fd, octets, (size_t)n, MSG_NOSIGNAL) == n)
		n = recv(fd, octets, sizeof(octets), 0);
	close(fd);
	return NULL;
}

/* False: it has ended */
static bool serve_one(int fd)
{
	char octets[4096 + 1];
	ssize_t n = recv(fd, octets, sizeof(octets) - 1, MSG_DONTWAIT);
	pthread_t thread;

	if (n < 0 && errno == EAGAIN)
		return true;
	if (n <= 0 || send(fd, octets, (size_t)n, MSG_NOSIGNAL) != n)
		return false;
	octets[n] = '\0';
	if (n == WORD && octets[0] == 'C' &&
	    !pthread_create(&thread, NULL, call_back, (void *)(intptr_t)atoi(octets + 1)))
		pthread_detach(thread);
	return true;
}

static int listen_at(int *port)
{
	struct sockaddr_in a = loopback(0);
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 16) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		abort();
	*port = ntohs(a.sin_port);
	return fd;
}

static _Noreturn void serve(void)
{
	static struct pollfd p[256];
	int port, n = 1;

	p[0] = (struct pollfd){ listen_at(&port), POLLIN, 0 };
	printf("%d\n", port);
	fflush(stdout);
	for (;;) {
		poll(p, (nfds_t)n, -1);
		for (int i = n - 1; i > 0; i--) {
			if (!p[i].revents || serve_one(p[i].fd))
				continue;
			close(p[i].fd);
			p[i] = p[--n];
		}
		if (p[0].revents)
			p[n++] = (struct pollfd){ accept(p[0].fd, NULL, NULL), POLLIN, 0 };
	}
}

/* --- the script --- */

static int helper_port, beside = -1;
static int listener = -1, mine = -1, client = -1, other = -1, set = -1, own_port;

static int echo(int fd, const char *p, size_t len)
{
	static char back[MANY];
	int err = result(send(fd, p, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -1);

	if (err)
		return err;
	if (recv(fd, back, len, MSG_WAITALL) != (ssize_t)len)
		return errno ? errno : EPIPE;
	return memcmp(back, p, len) ? EILSEQ : 0;
}

static int talk(int fd)
{
	static char octets[MANY];

	memset(octets, 't', sizeof(octets));
	errno = 0;
	return fd < 0 ? 0 : echo(fd, octets, sizeof(octets));
}

static int step_listen_socket(void)
{
	return result(listener = socket(AF_INET, SOCK_STREAM, 0));
}

static int step_listen(void)
{
	struct sockaddr_in a = loopback(0);
	socklen_t len = sizeof(a);

	if (listener < 0)
		return 0;
	if (bind(listener, (struct sockaddr *)&a, len) || listen(listener, 4) ||
	    getsockname(listener, (struct sockaddr *)&a, &len))
		return errno;
	own_port = ntohs(a.sin_port);
	return 0;
}

static bool aborted; /* the connection that was to be accepted is gone */

static int step_accept(void)
{
	char word[WORD + 1];
	struct pollfd p = { listener, POLLIN, 0 };
	int n;

	if (listener < 0 || mine >= 0)
		return 0;
	snprintf(word, sizeof(word), "C%07d", own_port);
	if (echo(beside, word, WORD))
		abort();
	n = poll(&p, 1, 30000);
	if (n != 1)
		return n < 0 ? errno : ETIME;
	mine = accept(listener, NULL, NULL);
	aborted = mine < 0 && errno == ECONNABORTED;
	return result(mine);
}

/* accept() again, of one that it could not take before */
static int step_accept_late(void)
{
	if (listener < 0 || mine >= 0 || aborted)
		return 0;
	return result(mine = accept(listener, NULL, NULL));
}

/* In mode auto, who could not take it on DDP is asked as a plain server is, and called again */
static int called_again(void)
{
	struct pollfd p = { listener, POLLIN, 0 };

	close(mine);
	mine = -1;
	if (poll(&p, 1, 30000) != 1)
		return ETIME;
	return result(mine = accept(listener, NULL, NULL));
}

static int step_called(void)
{
	char word[WORD];
	ssize_t n;
	int err = 0;

	if (mine < 0)
		return 0;
	errno = 0;
	n = recv(mine, word, WORD, MSG_WAITALL);
	if (n == WORD && !memcmp(word, "MPA ID Req", WORD)) {
		err = called_again();
		n = err ? 0 : recv(mine, word, WORD, MSG_WAITALL);
	}
	if (err || n != WORD)
		return err ? err : errno ? errno : EPIPE;
	return echo(mine, word, WORD);
}

static int step_socket(void)
{
	return result(client = socket(AF_INET, SOCK_STREAM, 0));
}

static int step_connect(void)
{
	struct sockaddr_in a = loopback(helper_port);
	int err;

	if (client < 0)
		return 0;
	err = result(connect(client, (struct sockaddr *)&a, sizeof(a)));
	if (err) {
		close(client);
		client = -1;
	}
	return err;
}

static int step_talk(void)
{
	return talk(client);
}

static int step_dup(void)
{
	return client < 0 ? 0 : result(other = dup(client));
}

static int step_talk_dup(void)
{
	return talk(other);
}

static int step_poll(void)
{
	struct pollfd p[2] = { { client, POLLIN | POLLOUT, 0 }, { mine, POLLOUT, 0 } };
	int wanted = (client >= 0) + (mine >= 0), n = wanted ? poll(p, 2, 30000) : 0;

	return n < 0 ? errno : n == wanted ? 0 : ETIME;
}

static int step_epoll(void)
{
	return result(set = epoll_create1(0));
}

static int step_epoll_add(void)
{
	struct epoll_event ev = { EPOLLIN, { .fd = client } };

	if (set < 0 || client < 0)
		return 0;
	return result(epoll_ctl(set, EPOLL_CTL_ADD, client, &ev)) ? errno : 0;
}

static int step_epoll_wait(void)
{
	struct epoll_event ev = { EPOLLIN, { .fd = client } };
	char word[WORD];
	int n;

	if (set < 0 || client < 0 || epoll_ctl(set, EPOLL_CTL_MOD, client, &ev))
		return 0; /* it is not in it */
	send(client, "epolled.", WORD, MSG_NOSIGNAL);
	n = epoll_wait(set, &ev, 1, 30000);
	if (n != 1)
		return n < 0 ? errno : ETIME;
	return recv(client, word, WORD, MSG_WAITALL) == WORD ? 0 : EPIPE;
}

static void *read_word(void *arg)
{
	char word[WORD];

	return (void *)(intptr_t)(recv(client, word, WORD, MSG_WAITALL) != WORD);
}

/* One thread sleeps in a call while another takes in what it waits for */
static int step_threads(void)
{
	pthread_t thread;
	void *bad = NULL;
	int err;

	if (client < 0)
		return 0;
	err = pthread_create(&thread, NULL, read_word, NULL);
	if (err)
		return err;
	usleep(20000);
	send(client, "thread..", WORD, MSG_NOSIGNAL);
	for (int i = 0; i < 20; i++) {
		poll(&(struct pollfd){ client, POLLOUT, 0 }, 1, 0);
		usleep(500);
	}
	pthread_join(thread, &bad);
	return bad ? EPIPE : 0;
}

static int step_fork(void)
{
	int status, pid = fork();

	if (pid < 0)
		return errno;
	if (!pid)
		_exit(talk(client));
	while (waitpid(pid, &status, 0) < 0)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

/* Of a new program: its linker found no room, or how its call ended */
static int child_result(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		;
	if (!WIFEXITED(status))
		return ECHILD;
	return WEXITSTATUS(status) == 127 ? EMFILE : WEXITSTATUS(status);
}

static char *inherited[] = { "short", "inherited", NULL, NULL };

#define VARIABLES 256

/* What is to fail in a new program is said by a variable of its own */
static char **inherited_environment(void)
{
	static char *list[VARIABLES], wish[64];
	const char *value = getenv("SHORT_EXEC_FAIL");
	size_t n = 0;

	snprintf(wish, sizeof(wish), "WARPSOCK_TEST_FAIL=%s", value ? value : "");
	list[n++] = wish;
	for (char **p = environ; *p && n < VARIABLES - 1; p++)
		if (strncmp(*p, wish, sizeof("WARPSOCK_TEST_FAIL=") - 1) != 0)
			list[n++] = *p;
	return list;
}

static void inherited_set(int fd)
{
	static char number[16];

	snprintf(number, sizeof(number), "%d", fd);
	inherited[2] = number;
}

static int step_exec(void)
{
	int pid = client < 0 ? 0 : fork();

	if (client < 0)
		return 0;
	if (pid < 0)
		return errno;
	if (pid)
		return child_result(pid);
	inherited_set(client);
	execve("/proc/self/exe", inherited, inherited_environment());
	_exit(errno);
}

/* To a program that has it by another number, too */
static int step_spawn(void)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int err;

	if (client < 0)
		return 0;
	inherited_set(STDIN_FILENO);
	posix_spawn_file_actions_init(&actions);
	err = posix_spawn_file_actions_adddup2(&actions, client, STDIN_FILENO);
	if (!err)
		err = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, inherited,
				  inherited_environment());
	posix_spawn_file_actions_destroy(&actions);
	return err ? err : child_result(pid);
}

static int region_add(int fd)
{
	static char region[WORD];
	uint32_t stag;
	struct ddp_reg_mr mr = { .addr = (uintptr_t)region,
				 .length = sizeof(region),
				 .stag = (uintptr_t)&stag,
				 .access = DDP_ACCESS_REMOTE_WRITE };
	int err = result(setsockopt(fd, SOL_DDP, DDP_REG_MR, &mr, sizeof(mr)));

	/* TCP's have none */
	return err == ENOPROTOOPT || err == EOPNOTSUPP ? 0 : err;
}

#define REGIONS 9 /* more than there is room for at first */

static int regions_add(int fd)
{
	int err = 0;

	for (int i = 0; !err && i < REGIONS; i++)
		err = region_add(fd);
	return err;
}

/* Where there was no memory for it there may be later, and octets pass as ever */
static int step_region(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), err = result(fd);
	struct sockaddr_in a = loopback(helper_port);

	if (err)
		return err;
	err = result(connect(fd, (struct sockaddr *)&a, sizeof(a)));
	if (!err) {
		err = talk(fd) ? EPIPE : regions_add(fd);
		if (talk(fd) || (err == ENOMEM && regions_add(fd)))
			err = EPIPE;
	}
	close(fd);
	return err;
}

static int step_close(void)
{
	char c;
	int r = 0;

	if (client >= 0) {
		shutdown(client, SHUT_WR);
		r = (int)recv(client, &c, 1, 0);
	}
	for (int *fd = &client; fd; fd = fd == &client ? &other : fd == &other ? &set : NULL) {
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
	}
	return r ? EPIPE : 0;
}

struct step {
	const char *name;
	int (*run)(void);
	int errnos[ASKED]; /* that it may have where something is short */
};

static const struct step steps[] = {
	{ "socket of the listener", step_listen_socket, { EMFILE, ENFILE, ENOMEM, ENOBUFS } },
	{ "bind and listen", step_listen, { 0 } },
	{ "accept", step_accept, { EMFILE, ENFILE, ENOMEM, ENOBUFS, ECONNABORTED } },
	{ "the accepted one", step_called, { 0 } },
	{ "socket", step_socket, { EMFILE, ENFILE, ENOMEM, ENOBUFS } },
	{ "connect", step_connect, { ENOMEM, ENOBUFS } },
	{ "send and recv", step_talk, { 0 } },
	{ "dup", step_dup, { EMFILE, ENOMEM } },
	{ "send and recv by another number", step_talk_dup, { 0 } },
	{ "poll", step_poll, { ENOMEM } },
	{ "poll again", step_poll, { 0 } },
	{ "epoll_create1", step_epoll, { EMFILE, ENFILE, ENOMEM } },
	{ "epoll_ctl", step_epoll_add, { ENOMEM, ENOSPC } },
	{ "epoll_wait", step_epoll_wait, { 0 } },
	{ "threads", step_threads, { EAGAIN, ENOMEM } },
	{ "fork", step_fork, { EAGAIN, ENOMEM } },
	{ "send and recv after it", step_talk, { 0 } },
	{ "exec", step_exec, { EAGAIN, ENOMEM, EMFILE, ENFILE, EPIPE } },
	{ "send and recv after exec", step_talk, { 0 } },
	{ "posix_spawn", step_spawn, { EAGAIN, ENOMEM, EMFILE, ENFILE, EPIPE } },
	{ "send and recv after posix_spawn", step_talk, { 0 } },
	{ "close", step_close, { 0 } },
	{ "connect and DDP_REG_MR", step_region, { EMFILE, ENFILE, ENOMEM, ENOBUFS } },
	{ "accept, now", step_accept_late, { EMFILE, ENFILE, ENOMEM, ENOBUFS } },
};

/* Without limits, once more: all of it has to work */
static int bad;

static bool is_allowed(const struct step *s, int err)
{
	for (int i = 0; i < ASKED && s->errnos[i]; i++)
		if (s->errnos[i] == err)
			return true;
	return !err;
}

static void play(bool is_short)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int err = steps[i].run();

		if (err)
			printf("%s: %s\n", steps[i].name, strerrorname_np(err));
		if (is_short ? is_allowed(&steps[i], err) : !err)
			err = 0;
		else
			printf("BAD %s%s: %s\n", steps[i].name, is_short ? "" : ", with room again",
			       strerrorname_np(err));
		bad += err != 0;
		err = echo(beside, "beside..", WORD);
		if (err) {
			printf("BAD %s: the connection beside it suffers: %s\n", steps[i].name,
			       strerrorname_np(err));
			bad++;
		}
	}
	close(mine);
	close(listener);
	mine = listener = -1;
}

static void room_set(rlim_t room, struct rlimit *before)
{
	struct rlimit now;
	int free_fd = dup(0);

	close(free_fd);
	getrlimit(RLIMIT_NOFILE, before);
	now = *before;
	now.rlim_cur = (rlim_t)free_fd + room;
	if (setrlimit(RLIMIT_NOFILE, &now))
		abort();
}

static int helper_connect(void)
{
	struct sockaddr_in a = loopback(helper_port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof(a)))
		return fd;
	printf("beside: %s\n", strerrorname_np(errno));
	exit(errno == ENOMEM || errno == ENOBUFS ? 0 : 1);
}

static int calls(char **argv)
{
	struct rlimit before;

	helper_port = atoi(argv[0]);
	beside = helper_connect();
	if (argv[1])
		room_set((rlim_t)atoi(argv[1]), &before);
	play(true);
	if (argv[1])
		setrlimit(RLIMIT_NOFILE, &before);
	play(!argv[1]);
	printf("end\n");
	return bad != 0;
}

/* --- a folder that is full --- */

#define OPEN 3

static void folder_fill(const char *path)
{
	static char octets[4096];
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	memset(octets, 'f', sizeof(octets));
	while (write(fd, octets, sizeof(octets)) > 0)
		;
	if (errno != ENOSPC)
		abort();
	close(fd);
}

/* More than is read at once, so that it has to be kept somewhere. It works, or it is reset */
static bool talk_late(int fd)
{
	static char octets[MANY], back[MANY];
	size_t got = 0;
	ssize_t n = 0;

	memset(octets, 'l', sizeof(octets));
	errno = 0;
	if (send(fd, octets, sizeof(octets), MSG_NOSIGNAL) != sizeof(octets))
		return errno == ECONNRESET || errno == EPIPE;
	for (int i = 0; i < 20; i++) {
		poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 100);
		usleep(5000);
	}
	while (got < sizeof(back) && (n = recv(fd, back + got, sizeof(back) - got, 0)) > 0)
		got += (size_t)n;
	if (n < 0)
		printf("an open one: %s\n", strerrorname_np(errno));
	return n < 0 ? errno == ECONNRESET : got == MANY && !memcmp(back, octets, MANY);
}

static int full(char **argv)
{
	char path[512];
	int fd[OPEN];

	helper_port = atoi(argv[0]);
	snprintf(path, sizeof(path), "%s/filler", argv[1]);
	beside = helper_connect();
	for (int i = 0; i < OPEN; i++) {
		fd[i] = helper_connect();
		bad += talk(fd[i]) != 0;
	}
	if (echo(beside, "beside..", WORD))
		abort();
	folder_fill(path);
	for (int i = 0; i < OPEN; i++) {
		if (talk_late(fd[i]))
			continue;
		printf("BAD an open connection: %s\n", strerrorname_np(errno));
		bad++;
	}
	play(true);
	unlink(path);
	play(false);
	printf("end\n");
	return bad != 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2)
		serve();
	alarm(60);
	if (argc == 3 && !strcmp(argv[1], "inherited"))
		return talk(atoi(argv[2]));
	if (argc > 3 && !strcmp(argv[1], "full"))
		return full(argv + 2);
	return argc > 2 ? calls(argv + 2) : 2;
}
