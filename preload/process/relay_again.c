/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A relay as a program of its own: what it is told, by its maker's copy and in the program.
 *
 *	warpsock-relay FD,LOCAL,GRACE ...
 *
 * The numbers of a stream's socket and of the local socket, and for how many nanoseconds the peer
 * may be one whose program waits for the first words. The streams themselves are found by their
 * sockets, as in any program that inherits some.
 */
#include "preload/process/relay_again.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "base/log.h"
#include "base/map.h"
#include "preload/process/helper_program.h"
#include "preload/process/linger_handoff.h"
#include "preload/sock/exec_record.h"

/* Two numbers of 10 digits, one of 20 */
#define WORD 48

int warpsock_helper(int argc, char **argv) __attribute__((visibility("default")));

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

int warpsock_helper(int argc, char **argv)
{
	unsigned int n = argc > 1 ? (unsigned int)argc - 1 : 0;
	struct relay_given *given;
	unsigned long long grace;
	int err;

	__atomic_store_n(&base_log_fd, -1, __ATOMIC_RELAXED);
	if (n && !strcmp(argv[0], LINGER_HANDOFF_NAME))
		return linger_handoff_continue(argv + 1);
	prctl(PR_SET_NAME, RELAY_NAME);
	err = base_map_create((n + 1) * sizeof(*given), (void **)&given);
	for (unsigned int i = 0; !err && i < n; i++) {
		if (sscanf(argv[i + 1], "%d,%d,%llu", &given[i].fd, &given[i].local, &grace) != 3)
			err = -EINVAL;
		given[i].grace = grace;
	}
	if (!err)
		err = relay_go_on(given, n);
	syscall(SYS_exit_group, -err);
	return 1;
}
