/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What killed processes leave in the folder of the states.
 *
 * Others look for it when they make their first stream, now and then later, and where the folder
 * has no room: for files whose maker is dead, or that are old, and that no living process has. A
 * look is bounded; what is left is the next one's.
 */
#include "stream/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/map.h"
#include "stream/state/place_name.h"
#include "stream/state/slab.h"

/* Names that one sweep reads, and files of them that it opens */
#define SWEEP_NAMES 2048
#define SWEEP_FILES 128
#define SWEEP_AGE (60 * BASE_NS_PER_S)

/* --- names --- */

static bool is_name(const char *name)
{
	return strlen(name) == STREAM_NAME_LEN &&
	       strspn(name, "0123456789abcdef") == STREAM_NAME_LEN;
}

static bool is_slab(const char *name)
{
	return *name == 's' && is_name(name + 1);
}

/*
 * The names of a folder, as they were at one time: read through one descriptor, since where others
 * remove names meanwhile a place in the folder means nothing to a second one (before Linux 6.6). It
 * is closed again before anything is done with them: the process may have room for one only
 */
struct names {
	struct entry {
		long next; /* where the folder goes on behind it */
		char name[STREAM_SLAB_NAME_LEN + 1];
	} * entry, few[32];
	unsigned int n, room;
	long end; /* where it goes on behind all of them; 0: nowhere */
};

static int names_grow(struct names *names)
{
	unsigned int room = 4 * names->room;
	struct entry *more;
	int err = base_map_create(room * sizeof(*more), (void **)&more);

	if (err)
		return err;
	memcpy(more, names->entry, names->n * sizeof(*more));
	if (names->room > base_array_size(names->few))
		base_map_destroy(names->entry, names->room * sizeof(*more));
	names->entry = more;
	names->room = room;
	return 0;
}

static void names_uninit(struct names *names)
{
	if (names->room > base_array_size(names->few))
		base_map_destroy(names->entry, names->room * sizeof(*names->entry));
}

static int names_add(struct names *names, const struct dirent64 *e)
{
	int err = names->n == names->room ? names_grow(names) : 0;

	if (err || !(is_slab(e->d_name) || is_name(e->d_name)))
		return err;
	names->entry[names->n].next = (long)e->d_off;
	strcpy(names->entry[names->n++].name, e->d_name);
	return 0;
}

/* Up to @most of them, and all entries of the last part that is read */
static int names_read(struct names *names, int fd, unsigned int most)
{
	_Alignas(struct dirent64) char part[4096];
	unsigned int seen = 0;
	long got;

	while ((got = syscall(SYS_getdents64, fd, part, sizeof(part))) > 0) {
		for (const char *p = part; p < part + got; seen++) {
			const struct dirent64 *e = (const struct dirent64 *)(const void *)p;
			int err = names_add(names, e);

			if (err)
				return err;
			p += e->d_reclen;
			names->end = (long)e->d_off;
		}
		if (seen >= most)
			return 0;
	}
	names->end = 0;
	return 0;
}

/* From the place @at on, which names_read() has told of, or 0. -ENOMEM: there may be more */
static int names_init(struct names *names, struct stream_place place, long at, unsigned int most)
{
	char path[BASE_RUNFILE_PATH];
	int err = stream_place_folder(path, place);
	long fd = err < 0 ? err
			  : syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	names->entry = names->few;
	names->room = base_array_size(names->few);
	names->n = 0;
	names->end = 0;
	if (fd < 0)
		return 0;
	syscall(SYS_lseek, fd, at, SEEK_SET);
	err = names_read(names, (int)fd, most);
	base_fd_close((int)fd);
	return err;
}

int stream_place_slabs(struct stream_place place, bool (*fn)(const char *path, void *ctx),
		       void *ctx)
{
	char path[BASE_RUNFILE_PATH];
	struct names names;
	int saved = errno, done = names_init(&names, place, 0, UINT_MAX);

	for (unsigned int i = 0; i < names.n && done <= 0; i++)
		if (is_slab(names.entry[i].name) &&
		    !stream_place_file(path, place, names.entry[i].name) && fn(path, ctx))
			done = 1;
	names_uninit(&names);
	errno = saved;
	return done;
}

/* --- what is left behind --- */

struct sweep {
	char path[BASE_RUNFILE_PATH];
	size_t len; /* of the folder's */
	uint64_t age;
	ino_t made; /* a file whose maker lives */
	unsigned int names, files, removed;
};

static bool is_old(const struct stat *st, uint64_t age)
{
	int64_t changed = st->st_ctim.tv_sec * (int64_t)BASE_NS_PER_S + st->st_ctim.tv_nsec;

	return (int64_t)base_clock(CLOCK_REALTIME) - changed >= (int64_t)age;
}

/* Of the connections of this name, has anybody one who lives? */
static bool is_held(const struct stream_slab_cells *c, uint64_t cookie)
{
	struct stream_state *st = NULL;

	while ((st = stream_slab_find(c, cookie, st)))
		if (stream_cell_is_held(st))
			return true;
	return false;
}

/* A file that is new may be of a connection that its maker is about to make */
static bool is_left(struct sweep *sw, const char *name, ino_t file, bool old)
{
	struct stream_slab_cells c;
	bool left;

	if (stream_slab_map(sw->path, &c))
		return old && stream_slab_sweep_strange(sw->path);
	left = old || !stream_slab_has_maker(&c);
	if (!left)
		sw->made = file;
	else if (is_slab(name))
		left = !stream_slab_is_held(&c) && stream_slab_sweep(&c);
	else
		left = !is_held(&c, strtoull(name, NULL, 16));
	base_map_destroy(c.at, c.size);
	return left;
}

static void sweep_one(struct sweep *sw, const char *name)
{
	struct stat st;
	bool old;

	sw->path[sw->len] = '/';
	strcpy(sw->path + sw->len + 1, name);
	if (syscall(SYS_newfstatat, AT_FDCWD, sw->path, &st, AT_SYMLINK_NOFOLLOW))
		return;
	old = is_old(&st, sw->age);
	if (!old && st.st_ino == sw->made)
		return;
	sw->files++;
	if (is_left(sw, name, st.st_ino, old) && !base_runfile_remove(sw->path))
		sw->removed++;
}

/* From the place @at on; where it stopped, 0: at the end */
static long sweep_from(struct sweep *sw, struct stream_place place, long at)
{
	struct names names;
	unsigned int i;

	names_init(&names, place, at, SWEEP_NAMES - sw->names);
	for (i = 0; i < names.n && sw->files < SWEEP_FILES && sw->names < SWEEP_NAMES; i++) {
		sweep_one(sw, names.entry[i].name);
		sw->names++;
	}
	if (i == names.n)
		at = names.end;
	else if (i)
		at = names.entry[i - 1].next;
	names_uninit(&names);
	return at;
}

/* Where others have many names, each is looked at by some sweep */
static void sweep(struct sweep *sw, struct stream_place place)
{
	static long next; /* atomic: where the last sweep stopped */
	long from = __atomic_load_n(&next, __ATOMIC_RELAXED), at = sweep_from(sw, place, from);

	if (from && !at)
		at = sweep_from(sw, place, 0);
	__atomic_store_n(&next, at, __ATOMIC_RELAXED);
}

unsigned int stream_place_sweep(struct stream_place place, uint64_t age)
{
	struct sweep sw = { .age = age };
	int saved = errno, n = stream_place_folder(sw.path, place);

	if (n < 0)
		return 0;
	sw.len = (size_t)n;
	sweep(&sw, place);
	errno = saved;
	if (!sw.removed)
		return 0;
	stream_place_look_again();
	base_debug("stream: %u states of dead processes removed", sw.removed);
	return sw.removed;
}

bool stream_place_clean(struct stream_place place, uint64_t pause)
{
	static uint64_t swept; /* atomic: when */
	uint64_t now = base_now(), last = __atomic_load_n(&swept, __ATOMIC_RELAXED);

	if ((last && now - last < pause) ||
	    !__atomic_compare_exchange_n(&swept, &last, now, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return false;
	return stream_place_sweep(place, SWEEP_AGE) != 0;
}
