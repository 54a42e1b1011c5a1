/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The log.
 *
 * A line is made in a buffer on the stack and leaves by one raw write: no lock, no malloc, no
 * stdio, so that it may be called with any lock held, in a signal handler and after fork. The
 * file is opened for each line, because a descriptor kept open would occupy a number in a
 * program that may close or count them all; O_APPEND keeps lines of several processes whole.
 *
 * No write waits: callers hold locks, and a peer decides how many lines there are. A file takes
 * what it is given. A pipe, a socket or a terminal is asked first whether it has room, and written
 * to without waiting where the kernel can, for another writer may take the room meanwhile.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/quiet.h"
#include "base/sockutil.h"

static const char *const level_names[] = {
	[BASE_LOG_ERR] = "err",
	[BASE_LOG_WARN] = "warn",
	[BASE_LOG_INFO] = "info",
	[BASE_LOG_DEBUG] = "debug",
};

int base_log_level = BASE_LOG_WARN;
int base_log_fd = STDERR_FILENO;
static char log_path[PATH_MAX];
static struct stat at_start; /* standard error; st_nlink 0: there was none */
static unsigned int lost;    /* atomic: lines that found no room */

static int level_parse(const char *name)
{
	if (!name)
		return BASE_LOG_WARN;
	for (size_t i = 0; i < base_array_size(level_names); i++)
		if (!strcmp(name, level_names[i]))
			return (int)i;
	return strcmp(name, "off") ? BASE_LOG_WARN : BASE_LOG_OFF;
}

__attribute__((constructor)) void base_log_init(void)
{
	const char *path = secure_getenv("WARPSOCK_LOG_FILE"); /* not in a setuid program */

	snprintf(log_path, sizeof(log_path), "%s", path ? path : "");
	if (syscall(SYS_fstat, STDERR_FILENO, &at_start) < 0)
		at_start.st_nlink = 0;
	__atomic_store_n(&base_log_level, level_parse(getenv("WARPSOCK_LOG")), __ATOMIC_RELAXED);
}

/* --- where a line goes --- */

/* Standard error, if the program has not put another file there */
static bool is_as_at_start(const struct stat *now)
{
	return at_start.st_nlink && now->st_dev == at_start.st_dev &&
	       now->st_ino == at_start.st_ino && now->st_rdev == at_start.st_rdev;
}

/* False: it is closed. Behind a filter that forbids the question it is what it was */
static bool file_ask(int fd, struct stat *out)
{
	*out = at_start;
	return !syscall(SYS_fstat, fd, out) || errno != EBADF;
}

/* True: a write to it may wait */
static bool may_wait(const struct stat *file)
{
	return !S_ISREG(file->st_mode);
}

/* -1: nowhere */
static int line_fd(struct stat *file)
{
	int fd = __atomic_load_n(&base_log_fd, __ATOMIC_RELAXED);

	if (log_path[0])
		fd = (int)syscall(SYS_openat, AT_FDCWD, log_path,
				  O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0 || !file_ask(fd, file))
		return -1;
	return log_path[0] || fd != STDERR_FILENO || is_as_at_start(file) ? fd : -1;
}

/* 0 or an errno; EAGAIN: there is no room */
static int line_write(int fd, const struct stat *file, const char *line, size_t n)
{
	struct iovec iov = { (void *)line, n };
	long r = -1;

	if (may_wait(file)) {
		if (!(base_sock_ready(fd, POLLOUT) & (POLLOUT | POLLERR)))
			return EAGAIN;
		r = syscall(SYS_pwritev2, fd, &iov, 1, -1L, -1L, RWF_NOWAIT);
		if (r >= 0 || errno == EAGAIN || errno == EPIPE)
			return r < 0 ? errno : 0;
	}
	return syscall(SYS_write, fd, line, n) < 0 ? errno : 0;
}

static int line_emit(const char *line, size_t n)
{
	struct stat file;
	struct base_quiet q;
	int fd = line_fd(&file), err;
	bool quiet;

	if (fd < 0)
		return 0;
	/*
	 * A log line that cannot be written has nowhere to be reported, and must not end the
	 * program, whose standard error may be a broken pipe, or which may write no more to files
	 */
	quiet = base_quiet_begin(&q);
	err = line_write(fd, &file, line, n);
	if (quiet)
		base_quiet_end(&q, err == EPIPE || err == EFBIG);
	if (log_path[0])
		syscall(SYS_close, fd);
	return err;
}

/* --- lines --- */

static size_t line_begin(char line[BASE_LOG_LINE_MAX], enum base_log_level level)
{
	return (size_t)snprintf(line, BASE_LOG_LINE_MAX, "warpsock[%ld] %s: ", syscall(SYS_getpid),
				level_names[level]);
}

/* How many lines there are not, before the next one */
static void missing_tell(enum base_log_level level, const char *why, unsigned int *count)
{
	unsigned int n = __atomic_exchange_n(count, 0, __ATOMIC_RELAXED);
	char line[BASE_LOG_LINE_MAX];
	size_t len;

	if (!n)
		return;
	len = line_begin(line, level);
	len += (size_t)snprintf(line + len, sizeof(line) - len, "%u lines %s\n", n, why);
	if (line_emit(line, len) == EAGAIN)
		__atomic_add_fetch(count, n, __ATOMIC_RELAXED);
}

/* False: this second's lines are written. Two threads may begin a second at once; no harm */
static bool site_may(struct base_log_site *site, enum base_log_level level)
{
	uint64_t now = base_now(), since = __atomic_load_n(&site->since, __ATOMIC_RELAXED);

	if (!since || now - since >= BASE_NS_PER_S) {
		__atomic_store_n(&site->since, now, __ATOMIC_RELAXED);
		__atomic_store_n(&site->written, 0, __ATOMIC_RELAXED);
		missing_tell(level, "like the next one were left out", &site->left_out);
	}
	if (__atomic_add_fetch(&site->written, 1, __ATOMIC_RELAXED) <= BASE_LOG_BURST)
		return true;
	__atomic_add_fetch(&site->left_out, 1, __ATOMIC_RELAXED);
	return false;
}

static void line_make(enum base_log_level level, const char *fmt, va_list ap)
{
	char line[BASE_LOG_LINE_MAX];
	size_t n = line_begin(line, level);

	n += (size_t)vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	if (n >= sizeof(line)) {
		n = sizeof(line) - 1;
		memcpy(line + n - 3, "...", 3);
	}
	line[n] = '\n';
	missing_tell(BASE_LOG_WARN, "were lost: there was no room for them", &lost);
	if (line_emit(line, n + 1) == EAGAIN)
		__atomic_add_fetch(&lost, 1, __ATOMIC_RELAXED);
}

void base_log_write(struct base_log_site *site, enum base_log_level level, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	if (!site || site_may(site, level))
		line_make(level, fmt, ap);
	va_end(ap);
	errno = saved;
}
