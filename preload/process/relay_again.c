/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A relay as a program of its own: what it is told (preload/process/helper_entry.c reads it).
 *
 *	warpsock-relay FD,LOCAL,GRACE ...
 *
 * The numbers of a stream's socket and of the local socket, and for how many nanoseconds the peer
 * may be one whose program waits for the first words. The streams themselves are found by their
 * sockets, as in any program that inherits some.
 */
#include "preload/process/relay_again.h"

#include <stdio.h>
#include <string.h>

#include "base/fdutil.h"
#include "preload/process/helper_program.h"
#include "preload/sock/exec_record.h"

/* Two numbers of 10 digits, one of 20 */
#define WORD 48

/* argv, with its name and NULL, then the words, then the environment */
size_t relay_again_room(unsigned int n)
{
	size_t room = (n + 2) * sizeof(char *) + n * (size_t)WORD + helper_program_room();

	return (room + sizeof(void *) - 1) & ~(sizeof(void *) - 1);
}

static bool all_found(const struct relay_line *lines, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (stream_hand_over(lines[i].stream))
			return false;
	return true;
}

void relay_again(void *room, const struct relay_line *lines, struct sock *const *socks,
		 unsigned int n)
{
	char **argv = room, *word = (char *)(argv + n + 2);

	if (!all_found(lines, n))
		return;
	argv[0] = (char *)RELAY_NAME;
	for (unsigned int i = 0; i < n; i++, word += WORD) {
		int fd = stream_fd(lines[i].stream);

		exec_record_write(socks[i]);
		base_fd_set_cloexec(fd, false);
		base_fd_set_cloexec(lines[i].local, false);
		snprintf(word, WORD, "%d,%d,%llu", fd, lines[i].local,
			 (unsigned long long)lines[i].grace);
		argv[i + 1] = word;
	}
	argv[n + 1] = NULL;
	helper_program_execute(word, argv);
}
