/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * FILEs over descriptors of ours, by fopencookie(). What they read and write goes by the
 * program's read() and write(), which are our wrappers: so with signals, cancellation and
 * errors as for any caller.
 *
 * The three standard FILEs are libc's own objects and cannot be changed. For each we keep one
 * that stands in: as long as its descriptor is ours, the variable points to it. What the one had
 * not written yet, the other takes over.
 */
#include "preload/calls/files.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio_ext.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"
#include "preload/table/fdtab.h"
#include "preload/table/fork_gen.h"
#include "preload/table/pool.h"

#define STANDARD 3

struct cookie {
	struct base_list node;
	FILE *file;
	int fd;
	bool flushed; /* at exit */
};

static struct pool cookies = POOL_INIT(struct cookie, file, 32);
static struct {
	pthread_mutex_t lock;
	struct base_list list;
} open_files = { PTHREAD_MUTEX_INITIALIZER, BASE_LIST_INIT(open_files.list) };

static struct {
	FILE **variable;
	FILE *libc, *ours;
} standard[STANDARD];

unsigned int files_standing_in;

/* --- one --- */

static ssize_t cookie_read(void *p, char *buf, size_t len)
{
	return read(((struct cookie *)p)->fd, buf, len);
}

/* All of it, or libc takes it for an error */
static ssize_t cookie_write(void *p, const char *buf, size_t len)
{
	size_t sum = 0;

	while (sum < len) {
		ssize_t n = write(((struct cookie *)p)->fd, buf + sum, len - sum);

		if (n < 0)
			break;
		sum += (size_t)n;
	}
	return (ssize_t)sum;
}

static int cookie_seek(void *p, off64_t *offset, int whence)
{
	errno = ESPIPE;
	return -1;
}

static void cookie_free(struct cookie *c)
{
	for (int i = 0; i < STANDARD; i++)
		if (standard[i].ours == c->file)
			standard[i].ours = NULL;
	pthread_mutex_lock(&open_files.lock);
	base_list_remove(&c->node);
	pthread_mutex_unlock(&open_files.lock);
	pool_put(&cookies, c);
}

static int cookie_close(void *p)
{
	struct cookie *c = p;
	int err = close(c->fd);

	cookie_free(c);
	return err;
}

int files_open(int fd, const char *mode, FILE **out)
{
	static const cookie_io_functions_t functions = { cookie_read, cookie_write, cookie_seek,
							 cookie_close };
	struct cookie *c = pool_get(&cookies);

	if (!c)
		return -ENOMEM;
	*c = (struct cookie){ .fd = fd };
	c->file = fopencookie(c, mode, functions);
	if (!c->file) {
		pool_put(&cookies, c);
		return -errno;
	}
	c->file->_fileno = fd;
	c->file->_wide_data = NULL; /* libc marks it invalid; its freopen() knows only NULL */
	pthread_mutex_lock(&open_files.lock);
	base_list_push_back(&open_files.list, &c->node);
	pthread_mutex_unlock(&open_files.lock);
	*out = c->file;
	return 0;
}

static struct cookie *cookie_find(const FILE *file)
{
	struct base_list *node, *next;
	struct cookie *found = NULL;

	pthread_mutex_lock(&open_files.lock);
	base_list_foreach(node, next, &open_files.list) {
		struct cookie *c = base_list_entry(node, struct cookie, node);

		if (c->file == file)
			found = c;
	}
	pthread_mutex_unlock(&open_files.lock);
	return found;
}

void files_forget(FILE *file)
{
	struct cookie *c = cookie_find(file);

	if (c)
		cookie_free(c);
}

/*
 * One that is to be flushed, locked, so that it is not closed; NULL: none. One that another thread
 * is at has nothing to flush, or will not be finished by us.
 */
static FILE *flush_next(void)
{
	struct base_list *node, *next;
	FILE *file = NULL;

	pthread_mutex_lock(&open_files.lock);
	base_list_foreach(node, next, &open_files.list) {
		struct cookie *c = base_list_entry(node, struct cookie, node);

		if (file || c->flushed)
			continue;
		c->flushed = true;
		if (__fpending(c->file) && !ftrylockfile(c->file))
			file = c->file;
	}
	pthread_mutex_unlock(&open_files.lock);
	return file;
}

/* Without our lock, for a handler that runs meanwhile may use FILEs */
void files_flush(void)
{
	FILE *file;

	while ((file = flush_next())) {
		fflush_unlocked(file);
		funlockfile(file);
	}
}

/* --- fork() --- */

void files_before_fork(void)
{
	pthread_mutex_lock(&open_files.lock);
}

/*
 * fflush(NULL) holds the lock of libc's list of FILEs while it writes, by our calls, and fork()
 * takes it when there are threads: so it goes before our locks.
 */
extern void _IO_list_lock(void), _IO_list_unlock(void);
static bool list_locked; /* under that lock */

void files_after_fork(bool child)
{
	fork_gen_lock_drop(&open_files.lock, child);
	if (child)
		list_locked = false;
}

void files_list_lock(void)
{
	if (__libc_single_threaded)
		return;
	_IO_list_lock();
	list_locked = true;
}

void files_list_unlock(void)
{
	if (!list_locked)
		return;
	list_locked = false;
	_IO_list_unlock();
}

/* --- the standard ones --- */

FILE *files_stand_in(FILE *file)
{
	for (int i = 0; i < STANDARD; i++)
		if (file == standard[i].libc && files_standing_in & 1u << i)
			return standard[i].ours;
	return file;
}

static void pending_move(FILE *from, FILE *to)
{
	if (ftrylockfile(from))
		return;
	if (__fpending(from)) {
		fwrite_unlocked(from->_IO_write_base, 1, __fpending(from), to);
		__fpurge(from);
	}
	funlockfile(from);
}

/* As the program has set it, or as it came about */
static void buffering_copy(FILE *from, FILE *to)
{
	if (__flbf(from))
		setvbuf(to, NULL, _IOLBF, 0);
	else if (__fbufsize(from) == 1)
		setvbuf(to, NULL, _IONBF, 0);
}

static void swap(int fd, bool in)
{
	FILE *from = in ? standard[fd].libc : standard[fd].ours;
	FILE *to = in ? standard[fd].ours : standard[fd].libc;

	if (in)
		buffering_copy(from, to);
	if (*standard[fd].variable == from)
		*standard[fd].variable = to;
	__atomic_fetch_xor(&files_standing_in, 1u << fd, __ATOMIC_RELAXED);
	pending_move(from, to);
}

/* What stands in the table at one of their numbers has changed */
static void standard_look(int fd)
{
	bool in = fdtab_is_carried(fd);

	/* Raw octets would be no part of a stream */
	if (fd == STDERR_FILENO)
		__atomic_store_n(&base_log_fd, in ? -1 : STDERR_FILENO, __ATOMIC_RELAXED);
	if (standard[fd].ours && in == !(files_standing_in & 1u << fd))
		swap(fd, in);
}

void files_init(void)
{
	static FILE **const variable[STANDARD] = { &stdin, &stdout, &stderr };

	for (int i = 0; i < STANDARD; i++) {
		standard[i].variable = variable[i];
		standard[i].libc = *variable[i];
		if (files_open(i, i ? "w" : "r", &standard[i].ours))
			return;
	}
	setvbuf(standard[STDERR_FILENO].ours, NULL, _IONBF, 0);
	fdtab_standard = standard_look;
}
