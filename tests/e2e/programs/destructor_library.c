/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A library with a connection and a thread that reads from it. Its destructor says good-bye and
 * joins the thread.
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

__attribute__((destructor)) static void library_end(void)
{
	if (fd < 0)
		return;
	if (write(fd, LAST_WORDS, sizeof(LAST_WORDS)) != sizeof(LAST_WORDS))
		_exit(3);
	shutdown(fd, SHUT_RD);
	pthread_join(reader, NULL);
}
