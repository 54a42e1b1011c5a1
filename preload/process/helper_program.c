/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The executed helper: `warpsock-helper`, beside the library that this process has loaded, so it is
 * found from whatever folder the library comes.
 *
 * It loads the same library, which finds the streams among the descriptors as in any program
 * that inherits some (preload/process/inherit.c), and then calls warpsock_helper() there.
 *
 * An exec that succeeds and comes to nothing would lose the connections. So what could keep the
 * dynamic linker from its work is looked at before: privileges, limits, filters. The file is opened
 * and compared with that of the start, because the path is another one's behind chroot().
 */
#include "preload/process/helper_program.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "preload/guard/sandbox.h"
#include "preload/process/environment.h"

#define NAME "warpsock-helper"
/* Address space and descriptors that a program needs to begin */
#define SPACE_MIN (256ul << 20)
#define NUMBERS_MIN 64u

static struct {
	char path[PATH_MAX]; /* empty: there is none */
	dev_t dev;
	ino_t ino;
} helper;

void helper_program_init(void)
{
	const char *library = environment_library(), *slash = strrchr(library, '/');
	struct stat st;
	int n;

	/* LD_PRELOAD takes these for the end of a name */
	if (!slash || strpbrk(library, ": "))
		return;
	n = snprintf(helper.path, sizeof(helper.path), "%.*s/" NAME, (int)(slash - library),
		     library);
	if (n < 0 || (size_t)n >= sizeof(helper.path) || stat(helper.path, &st)) {
		helper.path[0] = '\0';
		return;
	}
	helper.dev = st.st_dev;
	helper.ino = st.st_ino;
}

size_t helper_program_room(void)
{
	return environment_room(NULL);
}

/* The library is not loaded into a program with more privileges than its maker's */
static bool is_plain_user(void)
{
	return syscall(SYS_getuid) == syscall(SYS_geteuid) &&
	       syscall(SYS_getgid) == syscall(SYS_getegid);
}

static bool allows(int resource, rlim_t least)
{
	struct rlimit limit;

	return !syscall(SYS_prlimit64, 0, resource, NULL, &limit) && limit.rlim_cur >= least;
}

static bool may_begin(void)
{
	return !__atomic_load_n(&sandbox_on, __ATOMIC_RELAXED) && is_plain_user() &&
	       allows(RLIMIT_AS, SPACE_MIN) && allows(RLIMIT_DATA, SPACE_MIN) &&
	       allows(RLIMIT_NOFILE, NUMBERS_MIN) && environment_library_readable();
}

/* What is opened later is not to be taken for standard error */
static bool standard_fill(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (!base_fd_is_open(fd) &&
		    syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR) != fd)
			return false;
	return true;
}

static bool is_helper(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && st.st_dev == helper.dev && st.st_ino == helper.ino;
}

void helper_program_execute(void *room, char *const *argv)
{
	int fd;

	if (!helper.path[0] || !may_begin() || !standard_fill())
		return;
	fd = (int)syscall(SYS_openat, AT_FDCWD, helper.path, O_RDONLY | O_CLOEXEC);
	if (is_helper(fd))
		syscall(SYS_execveat, fd, "", argv, environment_make(room, NULL), AT_EMPTY_PATH);
	base_fd_close(fd);
}
