/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls of stdio that have to do with descriptors. fclose(), fileno() and all that reads and
 * writes need no word of ours: a FILE over a descriptor of ours knows what to do.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "base/map.h"
#include "preload/calls/files.h"
#include "preload/table/fdtab.h"
#include "preload/table/libc.h"

long call_fdopen(int fd, const char *mode)
{
	FILE *file;
	int err = files_open(fd, mode, &file);

	return err ? err : (long)file;
}

/* --- another file in its place --- */

/*
 * The socket is closed as close() does it; its number stays taken, for libc to put the file
 * there
 */
static void number_keep(int fd)
{
	int saved = errno;
	int null = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0)
		dup2(null, fd);
	else
		close(fd);
	base_fd_close(null);
	errno = saved;
}

/* Is the FILE over one of ours? Then its socket goes */
static bool file_leave(FILE *file)
{
	int fd = fileno(file);

	if (fd < 0 || !fdtab_is_carried(fd))
		return false;
	fflush(file);
	number_keep(fd);
	return true;
}

/* The name of a socket cannot be opened again: as libc, it fails and the FILE is closed */
static FILE *reopen(const char *path, const char *mode, FILE *file,
		    FILE *(*real)(const char *path, const char *mode, FILE *file))
{
	FILE *stands = files_of(file);
	bool ours = file_leave(stands);

	if (ours && path && stands == file)
		files_forget(file);
	if (!ours || path)
		return real(path, mode, file);
	fclose(stands);
	errno = ENXIO;
	return NULL;
}

long call_freopen(const char *path, const char *mode, FILE *file)
{
	FILE *got = reopen(path, mode, file, libc.freopen);

	return got ? (long)got : -errno;
}

long call_freopen64(const char *path, const char *mode, FILE *file)
{
	FILE *got = reopen(path, mode, file, libc.freopen64);

	return got ? (long)got : -errno;
}

/* --- dprintf --- */

#define TEXT 1024

static long text_write(int fd, const char *text, size_t len)
{
	size_t sum = 0;

	while (sum < len) {
		long n = call_write(fd, text + sum, len - sum);

		if (n < 0)
			return sum && n == CALL_RESTART ? -EINTR : n;
		sum += (size_t)n;
	}
	return (long)len;
}

extern int __vsnprintf_chk(char *text, size_t room, int flag, size_t size, const char *format,
			   va_list args);

static int text_format(char *text, size_t room, int flag, const char *format, va_list args)
{
	va_list again;
	int n;

	va_copy(again, args);
	n = __vsnprintf_chk(text, room, flag, room, format, again);
	va_end(again);
	return n;
}

long call___vdprintf_chk(int fd, int flag, const char *format, va_list args)
{
	char text[TEXT], *p;
	int n = text_format(text, sizeof(text), flag, format, args);
	long r;

	if (n < 0)
		return -errno;
	if (n < TEXT)
		return text_write(fd, text, (size_t)n);
	r = base_map_create((size_t)n + 1, (void **)&p);
	if (r)
		return r;
	text_format(p, (size_t)n + 1, flag, format, args);
	r = text_write(fd, p, (size_t)n);
	base_map_destroy(p, (size_t)n + 1);
	return r;
}

long call_vdprintf(int fd, const char *format, va_list args)
{
	return call___vdprintf_chk(fd, 0, format, args);
}
