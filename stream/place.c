/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The folder of the states. Its name goes by the user alone, so that a program that is executed,
 * or that receives a descriptor, comes to the same one whatever its environment.
 *
 * Whoever is killed leaves files behind. A process looks for them when it makes its first stream:
 * those that are no longer new and that no living process has. It looks at so many and no more;
 * what is left is the next one's.
 */
#include "stream/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/map.h"
#include "stream/rsock.h"

#define PLACE "/dev/shm/warpsock-%u"
#define NAME "%016llx"
#define NAME_LEN 16
/* Names that one sweep reads, and files of them that it opens */
#define SWEEP_NAMES 2048
#define SWEEP_FILES 128
#define SWEEP_AGE (60 * BASE_NS_PER_S)

/* @dir as its user gave it: a folder's name, or empty */
static int folder(char path[BASE_RUNFILE_PATH], const char *dir)
{
	int n = *dir ? snprintf(path, BASE_RUNFILE_PATH, "%s", dir)
		     : snprintf(path, BASE_RUNFILE_PATH, PLACE, (unsigned int)syscall(SYS_geteuid));

	return n < BASE_RUNFILE_PATH - NAME_LEN - 1 ? n : -ENAMETOOLONG;
}

int stream_place_path(char path[BASE_RUNFILE_PATH], const char *dir, uint64_t cookie)
{
	int n = folder(path, dir);

	if (n < 0)
		return n;
	snprintf(path + n, (size_t)(BASE_RUNFILE_PATH - n), "/" NAME, (unsigned long long)cookie);
	return 0;
}

int stream_place_file(char path[BASE_RUNFILE_PATH], const char *dir, const char *name)
{
	int n = folder(path, dir);

	if (n < 0)
		return n;
	snprintf(path + n, (size_t)(BASE_RUNFILE_PATH - n), "/%s", name);
	return 0;
}

static void unfit_say(const char *path, int err)
{
	static bool said; /* atomic */

	if (err != -ENOENT && !__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		base_info("stream: %s is not fit for the state of connections: %s", path,
			  strerror(-err));
}

int stream_place_prepare(const char *dir, bool make)
{
	static bool swept; /* atomic */
	char path[BASE_RUNFILE_PATH];
	int err = folder(path, dir);

	if (err >= 0)
		err = base_rundir_prepare(path, make);
	if (err)
		unfit_say(path, err);
	else if (make && !__atomic_exchange_n(&swept, true, __ATOMIC_RELAXED))
		stream_place_sweep(dir, SWEEP_AGE);
	return err;
}

int stream_place_room(const char *dir, size_t room)
{
	char path[BASE_RUNFILE_PATH];
	int n = folder(path, dir);

	return n < 0 ? n : base_rundir_room(path, room);
}

void stream_place_lost(const char *dir)
{
	base_rundir_forget();
	stream_place_prepare(dir, true);
}

/* --- what is left behind --- */

struct sweep {
	char path[BASE_RUNFILE_PATH];
	size_t len; /* of the folder's */
	uint64_t age;
	unsigned int names, files, removed;
};

static bool is_name(const char *name)
{
	return strlen(name) == NAME_LEN && strspn(name, "0123456789abcdef") == NAME_LEN;
}

static bool is_old(const char *path, uint64_t age)
{
	struct stat st;
	int64_t changed;

	if (syscall(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	changed = st.st_ctim.tv_sec * (int64_t)BASE_NS_PER_S + st.st_ctim.tv_nsec;
	return (int64_t)base_clock(CLOCK_REALTIME) - changed >= (int64_t)age;
}

/* Of the connections of this name, has anybody one who lives? */
static bool is_held(const struct rsock_slab_cells *c, uint64_t cookie)
{
	struct stream_state *st = NULL;

	while ((st = rsock_slab_find(c, cookie, st)))
		if (rsock_load(&st->magic) &&
		    (base_once(st->version) != STREAM_VERSION || rsock_holder_any(st)))
			return true;
	return false;
}

/*
 * Whose maker died over it is none yet. What is of another layout may be one of another version:
 * then nobody can say who lives
 */
static bool is_left(const char *path, uint64_t cookie)
{
	struct rsock_slab_cells c;
	uint32_t *magic;
	size_t size;
	bool left;
	int err = rsock_slab_map(path, &c);

	if (!err) {
		left = !is_held(&c, cookie);
		base_map_destroy(c.at, c.size);
		return left;
	}
	err = base_runfile_open(path, sizeof(struct stream_slab), (void **)&magic, &size);
	if (err)
		return err == -EPROTO;
	left = !rsock_load(magic);
	base_map_destroy(magic, size);
	return left;
}

static void sweep_one(struct sweep *sw, const char *name)
{
	if (!is_name(name) || sw->files >= SWEEP_FILES)
		return;
	sw->path[sw->len] = '/';
	memcpy(sw->path + sw->len + 1, name, NAME_LEN + 1);
	if (!is_old(sw->path, sw->age))
		return;
	sw->files++;
	if (is_left(sw->path, strtoull(name, NULL, 16)) && !base_runfile_remove(sw->path))
		sw->removed++;
}

static void sweep_names(struct sweep *sw, const char *at, const char *end)
{
	for (; at < end; sw->names++) {
		const struct dirent64 *entry = (const struct dirent64 *)(const void *)at;

		sweep_one(sw, entry->d_name);
		at += entry->d_reclen;
	}
}

unsigned int stream_place_sweep(const char *dir, uint64_t age)
{
	_Alignas(struct dirent64) char names[4096];
	struct sweep sw = { .age = age };
	int saved = errno, n = folder(sw.path, dir);
	long fd, got;

	if (n < 0)
		return 0;
	sw.len = (size_t)n;
	fd = syscall(SYS_openat, AT_FDCWD, sw.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (fd >= 0 && sw.names < SWEEP_NAMES && sw.files < SWEEP_FILES &&
	       (got = syscall(SYS_getdents64, fd, names, sizeof(names))) > 0)
		sweep_names(&sw, names, names + got);
	base_fd_close((int)fd);
	if (sw.removed)
		base_debug("stream: %u states of dead processes removed", sw.removed);
	errno = saved;
	return sw.removed;
}
