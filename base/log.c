/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The log.
 *
 * A line is made in a buffer on the stack and leaves by one raw write: no lock, no malloc, no
 * stdio, so that it may be called with any lock held, in a signal handler and after fork. The
 * file is opened for each line, because a descriptor kept open would occupy a number in a
 * program that may close or count them all; O_APPEND keeps lines of several processes whole.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/quiet.h"

static const char *const level_names[] = {
	[BASE_LOG_ERR] = "err",
	[BASE_LOG_WARN] = "warn",
	[BASE_LOG_INFO] = "info",
	[BASE_LOG_DEBUG] = "debug",
};

int base_log_level = BASE_LOG_WARN;
int base_log_fd = STDERR_FILENO;
static char log_path[PATH_MAX];

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
	const char *path = getenv("WARPSOCK_LOG_FILE");

	snprintf(log_path, sizeof(log_path), "%s", path ? path : "");
	__atomic_store_n(&base_log_level, level_parse(getenv("WARPSOCK_LOG")), __ATOMIC_RELAXED);
}

static void line_emit(const char *line, size_t n)
{
	long fd = __atomic_load_n(&base_log_fd, __ATOMIC_RELAXED);
	struct base_quiet q;
	bool quiet;
	int err;

	if (log_path[0])
		fd = syscall(SYS_openat, AT_FDCWD, log_path,
			     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	/*
	 * A log line that cannot be written has nowhere to be reported, and must not end the
	 * program, whose standard error may be a broken pipe, or which may write no more to files
	 */
	quiet = base_quiet_begin(&q);
	err = syscall(SYS_write, fd, line, n) < 0 ? errno : 0;
	if (quiet)
		base_quiet_end(&q, err == EPIPE || err == EFBIG);
	if (log_path[0])
		syscall(SYS_close, fd);
}

void base_log_write(enum base_log_level level, const char *fmt, ...)
{
	char line[BASE_LOG_LINE_MAX];
	int saved = errno;
	size_t n;
	va_list ap;

	n = (size_t)snprintf(line, sizeof(line), "warpsock[%ld] %s: ", syscall(SYS_getpid),
			     level_names[level]);
	va_start(ap, fmt);
	n += (size_t)vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	va_end(ap);
	if (n >= sizeof(line)) {
		n = sizeof(line) - 1;
		memcpy(line + n - 3, "...", 3);
	}
	line[n] = '\n';
	line_emit(line, n + 1);
	errno = saved;
}
