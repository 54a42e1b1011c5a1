/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A library with a connection and a thread that reads from it. Its destructor says good-bye and
 * joins the thread. Or one with a thread for each direction, which a function of exit() joins that
 * was registered when the library began, and so comes last.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "destructor_library.h"

static pthread_t reader;
static int fd = -1;

static void *reads(void *arg)
{
	char buf[64];

	while (read(fd, buf, sizeof(buf)) > 0)
		;
	return arg;
}

void library_use(int connection)
{
	fd = connection;
	if (pthread_create(&reader, NULL, reads, NULL))
		abort();
}

static int late_fd = -1;
static pthread_t late[2];

static void *late_reads(void *arg)
{
	char c;

	while (read(late_fd, &c, 1) > 0)
		;
	return arg;
}

static void *late_writes(void *arg)
{
	static char buf[65536];

	while (send(late_fd, buf, sizeof(buf), MSG_NOSIGNAL) > 0)
		;
	return arg;
}

void library_use_late(int connection)
{
	late_fd = connection;
	if (pthread_create(&late[0], NULL, late_reads, NULL) ||
	    pthread_create(&late[1], NULL, late_writes, NULL))
		abort();
}

static void late_end(int status, void *arg)
{
	if (late_fd < 0)
		return;
	shutdown(late_fd, SHUT_RDWR);
	pthread_join(late[0], NULL);
	pthread_join(late[1], NULL);
}

__attribute__((constructor)) static void library_begin(void)
{
	on_exit(late_end, NULL);
}

__attribute__((destructor)) static void library_end(void)
{
	if (fd < 0)
		return;
	if (write(fd, LAST_WORDS, sizeof(LAST_WORDS)) != sizeof(LAST_WORDS))
		_exit(3);
	shutdown(fd, SHUT_RD);
	pthread_join(reader, NULL);
}
