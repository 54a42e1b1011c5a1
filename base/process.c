/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who is this process, and does that one live?
 *
 * A number alone may have been given to another process since. But whoever noted it down also
 * noted when: a process of that number which was started later is another one. So nobody needs
 * to know its own start.
 */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"

#define PAGE 4096

/* What a process knows of itself. All atomic; @self.pid: 0 as long as nothing is known */
struct own {
	struct base_process self;
	uint32_t proc; /* numbers in /proc are those of this PID namespace */
};

/* A page that the kernel wipes in a child; NULL: not made yet, or not to be had */
static struct own *own; /* atomic */
static bool confined;	/* atomic */

void base_process_confine(void)
{
	__atomic_store_n(&confined, true, __ATOMIC_RELEASE);
}

bool base_process_confined(void)
{
	return __atomic_load_n(&confined, __ATOMIC_ACQUIRE);
}

static struct own *own_page(void)
{
	struct own *page = __atomic_load_n(&own, __ATOMIC_ACQUIRE), *none = NULL;

	if (page || base_map_create(PAGE, (void **)&page))
		return page;
	if (madvise(page, PAGE, MADV_WIPEONFORK)) {
		base_map_destroy(page, PAGE);
		return NULL;
	}
	if (!__atomic_compare_exchange_n(&own, &none, page, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE)) {
		base_map_destroy(page, PAGE);
		page = none;
	}
	return page;
}

/* By its file in /proc; 0: nobody knows */
static uint32_t space_of(const char *path)
{
	struct stat st;

	return base_process_confined() || syscall(SYS_newfstatat, AT_FDCWD, path, &st, 0)
		       ? 0
		       : (uint32_t)st.st_ino;
}

/* Who is in a new namespace has its parent's /proc, until somebody mounts another one */
static bool is_proc_of(uint32_t pid)
{
	char text[12] = "";

	return !base_process_confined() &&
	       syscall(SYS_readlinkat, AT_FDCWD, "/proc/self", text, sizeof(text) - 1) > 0 &&
	       strtoul(text, NULL, 10) == pid;
}

static struct own own_get(void)
{
	struct own *page = own_page(), o;
	int saved = errno;

	if (page) {
		o.self.pid = __atomic_load_n(&page->self.pid, __ATOMIC_ACQUIRE);
		o.self.space = __atomic_load_n(&page->self.space, __ATOMIC_RELAXED);
		o.proc = __atomic_load_n(&page->proc, __ATOMIC_RELAXED);
		if (o.self.pid)
			return o;
	}
	o.self.pid = (uint32_t)syscall(SYS_getpid);
	o.self.space = space_of("/proc/self/ns/pid");
	o.proc = is_proc_of(o.self.pid);
	if (page) {
		__atomic_store_n(&page->self.space, o.self.space, __ATOMIC_RELAXED);
		__atomic_store_n(&page->proc, o.proc, __ATOMIC_RELAXED);
		__atomic_store_n(&page->self.pid, o.self.pid, __ATOMIC_RELEASE);
	}
	errno = saved;
	return o;
}

struct base_process base_process_self(void)
{
	const struct own *page = __atomic_load_n(&own, __ATOMIC_ACQUIRE);
	struct base_process self = { page ? __atomic_load_n(&page->self.pid, __ATOMIC_ACQUIRE) : 0,
				     0 };

	if (!self.pid)
		return own_get().self;
	self.space = __atomic_load_n(&page->self.space, __ATOMIC_RELAXED);
	return self;
}

uint64_t base_process_clock(void)
{
	return base_clock(CLOCK_BOOTTIME);
}

#define PROC_MAX (sizeof("/proc//ns/pid") + 10)

/* "/proc/PID" and a file there, which is short */
static void proc_path(char *path, uint32_t pid, const char *file)
{
	char digits[10];
	int n = 0;

	do {
		digits[n++] = (char)('0' + pid % 10);
		pid /= 10;
	} while (pid);
	path = stpcpy(path, "/proc/");
	while (n)
		*path++ = digits[--n];
	strcpy(path, file);
}

/* Octets of the file; 0: there is none to be read */
static size_t stat_read(uint32_t pid, char *text, size_t size)
{
	char path[PROC_MAX];
	long fd, n;

	proc_path(path, pid, "/stat");
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = syscall(SYS_read, fd, text, size - 1);
	syscall(SYS_close, fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

/* Which fields of stat(5) tell, counted from the state as the first */
enum { FIELD_THREADS = 17, FIELD_START = 19, FIELD_CODE = 49, FIELDS };
#define CODE_SIGNAL 0x7f

/* @n numbers of the file from the state on, which is the first and its letter; fewer: false */
static bool stat_parse(const char *text, uint64_t *field, int n)
{
	const char *at = strrchr(text, ')');

	for (int i = 0; i < n; i++) {
		at = at ? strchr(at, ' ') : NULL;
		if (!at)
			return false;
		at++;
		field[i] = i ? strtoull(at, NULL, 10) : (unsigned char)*at;
	}
	return true;
}

/*
 * One that is stopped has the number of that signal there, too, until its parent has waited for it,
 * and one that a debugger holds any number. Nobody is killed by a signal that stops.
 */
static bool was_killed(const uint64_t *field)
{
	switch (field[FIELD_CODE] & CODE_SIGNAL) {
	case 0:
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		return false;
	default:
		return *field != 't';
	}
}

/*
 * Has it ended? A first thread that has is a zombie too, while others go on: they are counted. One
 * that was killed does nothing any more, though it may take its time to give its memory back.
 */
static bool stat_is_dead(const char *text, uint64_t since)
{
	uint64_t tick = BASE_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK), field[FIELDS];

	if (!stat_parse(text, field, FIELDS))
		return false;
	if (*field == 'X' || (*field == 'Z' && field[FIELD_THREADS] <= 1))
		return true;
	if (was_killed(field))
		return true;
	return since && field[FIELD_START] * tick > since + tick;
}

static bool is_there(uint32_t pid)
{
	return !syscall(SYS_kill, pid, 0) || errno != ESRCH;
}

static bool lives(uint32_t pid, uint64_t since, bool proc)
{
	char text[1024];

	if (!pid || pid > INT32_MAX || !is_there(pid))
		return false;
	if (!proc)
		return true;
	if (stat_read(pid, text, sizeof(text)))
		return !stat_is_dead(text, since);
	/* It may have been a zombie, for which somebody waited just now */
	return is_there(pid);
}

bool base_process_lives(struct base_process p, uint64_t since)
{
	struct own o = own_get();
	int saved = errno;
	bool yes;

	if (p.pid == o.self.pid && p.space == o.self.space)
		return true;
	if (base_process_confined() || p.space != o.self.space)
		return true;
	yes = lives(p.pid, since, o.proc);
	errno = saved;
	return yes;
}

bool base_process_is_stopped(struct base_process p)
{
	struct own o = own_get();
	int saved = errno;
	uint64_t state = 0;
	char text[1024];

	if (p.space == o.self.space && o.proc && stat_read(p.pid, text, sizeof(text)))
		stat_parse(text, &state, 1);
	errno = saved;
	return state == 'T' || state == 't';
}

bool base_process_is_elsewhere(uint32_t pid)
{
	struct own o = own_get();
	char path[PROC_MAX];
	int saved = errno;
	uint32_t space;

	proc_path(path, pid, "/ns/pid");
	space = o.proc ? space_of(path) : 0;
	errno = saved;
	return space && o.self.space && space != o.self.space;
}
