/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs that check Linux's promises of new programs share: which programs there are,
 * and what one with a connection for its standard input and output has to do.
 */
#ifndef TESTS_E2E_PROGRAMS_CALLS_NEW_H
#define TESTS_E2E_PROGRAMS_CALLS_NEW_H

#include <libgen.h>

#include "tests/e2e/programs/calls.h"

extern char **environ;

static char self[4096], copier[4200]; /* this program; one that is linked statically */

static inline bool programs_find(void)
{
	char dir[sizeof(self)];

	need(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	strcpy(dir, self);
	snprintf(copier, sizeof(copier), "%s/copy", dirname(dir));
	return true;
}

static inline bool gets(int fd, const char *want)
{
	char buf[64] = "";

	need(recv(fd, buf, strlen(want), MSG_WAITALL) == (ssize_t)strlen(want));
	if (memcmp(buf, want, strlen(want)))
		printf("# got \"%s\", not \"%s\"\n", buf, want);
	return !memcmp(buf, want, strlen(want));
}

/* Who reads @fd gives it back as it is, and ends when it does */
static inline bool echoes(int fd, pid_t pid)
{
	need(write(fd, "one", 3) == 3 && gets(fd, "one"));
	usleep(20000);
	need(write(fd, "two", 3) == 3 && !shutdown(fd, SHUT_WR) && gets(fd, "two") && at_end(fd));
	close(fd);
	return in_child(pid);
}

#endif
