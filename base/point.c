/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Points for tests; part of a build with -Dpoints=true only.
 *
 * The values are looked for once, and from then on read where they stand, so that a program can
 * arm and disarm itself after a fork. Nothing here allocates or changes errno.
 */
#include "base/point.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct wish {
	const char *variable;
	const char *value; /* atomic; "" where it is not set, NULL: not looked for yet */
	unsigned int seen; /* atomic */
};

static struct wish kill_wish = { .variable = "WARPSOCK_TEST_POINT" };
static struct wish fail_wish = { .variable = "WARPSOCK_TEST_FAIL" };
static struct wish note_wish = { .variable = "WARPSOCK_TEST_NOTES" };
static __thread int locks __attribute__((tls_model("initial-exec")));

static const char *wish_value(struct wish *w)
{
	const char *value = __atomic_load_n(&w->value, __ATOMIC_ACQUIRE);

	if (!value) {
		value = getenv(w->variable);
		value = value ? value : "";
		__atomic_store_n(&w->value, value, __ATOMIC_RELEASE);
	}
	return value;
}

/* Is this the one of @name that is wished for? */
static bool is_wished(struct wish *w, const char *name)
{
	const char *value = wish_value(w);
	size_t len = strlen(name);

	if (*value != *name || strncmp(value, name, len) || value[len] != ':')
		return false;
	return __atomic_add_fetch(&w->seen, 1, __ATOMIC_ACQ_REL) ==
	       strtoul(value + len + 1, NULL, 10);
}

static const char *name_of(const char *mark)
{
	return strchr(mark, ':') + 1;
}

static void say(const char *what, const char *name)
{
	char line[128];
	struct stat st = { .st_nlink = 0 };
	int n;

	fstatat(-1, "/proc/self/task", &st, 0);
	n = snprintf(line, sizeof(line), "%s %s pid %d locks %d threads %d\n", what, name,
		     (int)syscall(SYS_getpid), locks, (int)st.st_nlink - 2);
	syscall(SYS_write, STDERR_FILENO, line, (size_t)n);
}

void base_point_reach(const char *mark)
{
	int saved = errno;

	if (*wish_value(&kill_wish) == '?')
		say("point", name_of(mark));
	if (is_wished(&kill_wish, name_of(mark))) {
		say("killed at", name_of(mark));
		syscall(SYS_kill, (int)syscall(SYS_getpid), SIGKILL);
	}
	errno = saved;
}

bool base_point_fails(const char *mark)
{
	int saved = errno;
	bool fails = is_wished(&fail_wish, name_of(mark));

	if (*wish_value(&fail_wish) == '?')
		say("could fail", name_of(mark));
	if (fails)
		say("failed at", name_of(mark));
	errno = saved;
	return fails;
}

void base_point_note(uint64_t number)
{
	const char *path = wish_value(&note_wish);
	int saved = errno, fd, n;
	char line[24];

	if (!*path)
		return;
	/* Not kept open: a number of the program's may come to be what it was */
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CLOEXEC);
	n = snprintf(line, sizeof(line), "%" PRIu64 "\n", number);
	if (fd >= 0) {
		syscall(SYS_write, fd, line, (size_t)n);
		syscall(SYS_close, fd);
	}
	errno = saved;
}

void base_point_locked(int more)
{
	locks += more;
}
