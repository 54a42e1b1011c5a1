/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process ends while a library of its own has a connection: what the library's destructor
 * writes arrives, and the thread that it joins comes to its end; and so do those that are joined
 * behind all destructors. The other end is this process's parent, which gives it ten seconds.
 *
 * And a process whose first thread has left by pthread_exit() ends with its last one.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "destructor_library.h"
#include "tests/tap.h"

enum { SECONDS = 10 };

static struct sockaddr_in address = { .sin_family = AF_INET };

static void ends(bool returns)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	alarm(SECONDS);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) || write(fd, "a", 1) != 1)
		_exit(1);
	library_use(fd);
	if (!returns)
		exit(0);
}

static bool hears_all(int listener)
{
	char buf[64] = { 0 };
	int fd = accept(listener, NULL, NULL);
	size_t have = 0;
	ssize_t n;

	while (have < sizeof(buf) && (n = read(fd, buf + have, sizeof(buf) - have)) > 0)
		have += (size_t)n;
	close(fd);
	return !n && have == 1 + sizeof(LAST_WORDS) && !memcmp(buf + 1, LAST_WORDS, have - 1);
}

static void *accepts(void *listener)
{
	int fd = accept(*(int *)listener, NULL, NULL);
	char c;

	if (read(fd, &c, 1) != 1 || write(fd, &c, 1) != 1)
		_exit(1);
	return NULL;
}

static void first_thread_leaves(int *listener)
{
	pthread_t thread;

	alarm(SECONDS);
	if (pthread_create(&thread, NULL, accepts, listener))
		_exit(2);
	pthread_exit(NULL);
}

static bool ends_with_last_thread(int listener)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), status;
	pid_t child = fork();
	char c = 0;

	if (!child)
		first_thread_leaves(&listener);
	close(listener);
	return !connect(fd, (struct sockaddr *)&address, sizeof(address)) &&
	       write(fd, "x", 1) == 1 && read(fd, &c, 1) == 1 && c == 'x' && !read(fd, &c, 1) &&
	       waitpid(child, &status, 0) == child && !status;
}

/* Full, for nobody reads until it sleeps in send() */
static bool joins_late(int listener)
{
	static char buf[65536];
	pid_t child = fork();
	int fd, status;

	if (!child) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		alarm(SECONDS);
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
			_exit(1);
		library_use_late(fd);
		sleep(1);
		exit(0);
	}
	fd = accept(listener, NULL, NULL);
	if (read(fd, buf, 1) != 1)
		return false;
	usleep(1500000);
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	close(fd);
	return waitpid(child, &status, 0) == child && !status;
}

int main(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), status;
	socklen_t len = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&address, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &len))
		return 1;
	for (int returns = 0; returns < 2; returns++) {
		pid_t child = fork();

		if (!child) {
			ends(returns);
			return 0;
		}
		tap_case(hears_all(listener), returns ? "return from main: the last words arrive"
						      : "exit: the last words arrive");
		tap_case(waitpid(child, &status, 0) == child && !status,
			 returns ? "return from main: the process ends" : "exit: the process ends");
	}
	tap_case(joins_late(listener), "behind all destructors threads that sleep are joined");
	tap_case(ends_with_last_thread(listener), "a process ends with its last thread");
	return tap_finish();
}
