/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The folder of the states. Its name goes by the user alone, so that a program that is executed,
 * or that receives a descriptor, comes to the same one whatever its environment.
 *
 * A process that is killed leaves files behind. Others look for them when they make their first
 * stream, now and then later, and where the folder has no room: for those whose maker is dead, or
 * that are old, and that no living process has. A look is bounded; what is left is the next one's.
 */
#include "stream/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
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
#include "stream/rsock.h"

#define SHM "/dev/shm"
#define PREFIX "warpsock-"
#define PLACE SHM "/" PREFIX "%u"
#define NAME "%016llx"
#define NAME_LEN 16
#define SLAB "s" NAME
#define SLAB_LEN (1 + NAME_LEN)
/* Names that one sweep reads, and files of them that it opens */
#define SWEEP_NAMES 2048
#define SWEEP_FILES 128
#define SWEEP_AGE (60 * BASE_NS_PER_S)
/* Between two looks at the room that is left */
#define ROOM_PAUSE (10 * BASE_NS_PER_MS)
/* Between two counts of the users, and so many times as long as the last one took */
#define USERS_PAUSE (100 * BASE_NS_PER_MS)
#define USERS_PART 100
/*
 * The size of a folder with two names, as a tmpfs says: 20 bytes for each. It may have the pages of
 * promises and of leases, and no state; or, without leases, one file of a few connections
 */
#define FOLDER_EMPTY 80

struct stream_place stream_place_of(const char *dir)
{
	return (struct stream_place){ dir, (uid_t)syscall(SYS_geteuid) };
}

static int folder(char path[BASE_RUNFILE_PATH], struct stream_place place)
{
	int n = *place.dir ? snprintf(path, BASE_RUNFILE_PATH, "%s", place.dir)
			   : snprintf(path, BASE_RUNFILE_PATH, PLACE, (unsigned int)place.user);

	return n < BASE_RUNFILE_PATH - SLAB_LEN - 1 ? n : -ENAMETOOLONG;
}

int stream_place_path(char path[BASE_RUNFILE_PATH], struct stream_place place, uint64_t cookie)
{
	int n = folder(path, place);

	if (n < 0)
		return n;
	snprintf(path + n, (size_t)(BASE_RUNFILE_PATH - n), "/" NAME, (unsigned long long)cookie);
	return 0;
}

int stream_place_slab(char path[BASE_RUNFILE_PATH], struct stream_place place, uint64_t number)
{
	char name[SLAB_LEN + 1];

	snprintf(name, sizeof(name), SLAB, (unsigned long long)number);
	return stream_place_file(path, place, name);
}

int stream_place_file(char path[BASE_RUNFILE_PATH], struct stream_place place, const char *name)
{
	int n = folder(path, place);

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

int stream_place_prepare(struct stream_place place, bool make)
{
	char path[BASE_RUNFILE_PATH];
	int err;

	if (base_rundir_is_prepared(place.user))
		return 0;
	err = folder(path, place);
	if (err >= 0)
		err = base_rundir_prepare(path, place.user, make);
	if (err)
		unfit_say(path, err);
	return err;
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

/* --- users of the same file system --- */

/* A folder of another user's that has states. A name counts only for the user of that number */
static bool is_others(int dir, const char *name, uid_t own)
{
	size_t len = strlen(PREFIX);
	struct stat st;
	char *end;
	unsigned long user;

	if (strncmp(name, PREFIX, len) || name[len] < '0' || name[len] > '9')
		return false;
	user = strtoul(name + len, &end, 10);
	return !*end && user != own &&
	       !syscall(SYS_newfstatat, dir, name, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISDIR(st.st_mode) && st.st_uid == user && st.st_size > FOLDER_EMPTY;
}

static unsigned int others_of_part(int dir, const char *part, long len, uid_t own)
{
	unsigned int n = 0;

	for (const char *p = part; p < part + len;) {
		const struct dirent64 *e = (const struct dirent64 *)(const void *)p;

		n += is_others(dir, e->d_name, own);
		p += e->d_reclen;
	}
	return n;
}

/* Of a folder that the environment names, nobody knows who else has one there */
static unsigned int others_count(struct stream_place place)
{
	_Alignas(struct dirent64) char part[4096];
	unsigned int n = 0;
	long dir, got;

	if (*place.dir)
		return 0;
	dir = syscall(SYS_openat, AT_FDCWD, SHM, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return 0;
	while ((got = syscall(SYS_getdents64, dir, part, sizeof(part))) > 0)
		n += others_of_part((int)dir, part, got, place.user);
	base_fd_close((int)dir);
	return n;
}

static struct {
	uint64_t next;	     /* atomic: not to be counted before */
	unsigned int others; /* atomic */
} users;

/*
 * Users among whom the half is shared. What the first ones were promised when they were fewer stays
 * theirs: of three users, each has all that it was promised, in whatever order they come
 */
static void users_look(struct stream_place place, uint64_t now)
{
	uint64_t was = __atomic_load_n(&users.next, __ATOMIC_RELAXED), end;
	int saved = errno;

	if (now < was || !__atomic_compare_exchange_n(&users.next, &was, now + USERS_PAUSE, false,
						      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&users.others, others_count(place), __ATOMIC_RELAXED);
	end = base_now();
	__atomic_store_n(&users.next, end + base_max(USERS_PAUSE, USERS_PART * (end - now)),
			 __ATOMIC_RELAXED);
	errno = saved;
}

/* --- room --- */

/* What was found last. All atomic; a look costs as much as a tenth of a connection */
static struct {
	const char *dir;
	uint64_t looked; /* when */
	uint64_t room;
	uint64_t share; /* of this user, in the half of the file system */
} latest;

static int room_look(struct stream_place place, uint64_t now)
{
	unsigned int n = 1 + __atomic_load_n(&users.others, __ATOMIC_RELAXED);
	char path[BASE_RUNFILE_PATH];
	uint64_t room, half;
	int err = folder(path, place);

	if (err >= 0)
		err = base_rundir_room(path, &room, &half);
	if (err)
		return err;
	__atomic_store_n(&latest.room, room / n, __ATOMIC_RELAXED);
	__atomic_store_n(&latest.share, half / n, __ATOMIC_RELAXED);
	__atomic_store_n(&latest.dir, place.dir, __ATOMIC_RELAXED);
	__atomic_store_n(&latest.looked, now, __ATOMIC_RELEASE);
	return 0;
}

/* Was that just now? */
static bool is_known(const char *dir, uint64_t now)
{
	return now - __atomic_load_n(&latest.looked, __ATOMIC_ACQUIRE) < ROOM_PAUSE &&
	       __atomic_load_n(&latest.dir, __ATOMIC_RELAXED) == dir;
}

/* For bytes of a connection that is there nobody needs to know how many users there are */
int stream_place_room(struct stream_place place, size_t room)
{
	uint64_t now = base_now(), had;
	int err;

	if (room)
		users_look(place, now);
	err = is_known(place.dir, now) ? 0 : room_look(place, now);
	had = __atomic_load_n(&latest.room, __ATOMIC_RELAXED);
	if (err)
		return err;
	return had && room <= had ? 0 : -ENOSPC;
}

int stream_place_share(struct stream_place place, size_t room)
{
	uint64_t share = __atomic_load_n(&latest.share, __ATOMIC_RELAXED);

	return !share || room <= share ||
			       __atomic_load_n(&latest.dir, __ATOMIC_RELAXED) != place.dir
		       ? 0
		       : -ENOSPC;
}

bool stream_place_is_scarce(void)
{
	const char *dir = __atomic_load_n(&latest.dir, __ATOMIC_ACQUIRE);

	if (!dir || is_known(dir, base_now()))
		return dir && !__atomic_load_n(&latest.room, __ATOMIC_RELAXED);
	return stream_place_room(stream_place_of(dir), 0) == -ENOSPC;
}

void stream_place_lost(struct stream_place place)
{
	base_rundir_forget();
	stream_place_prepare(place, true);
}

static bool inode_get(long fd, const char *path, struct stat *st)
{
	return !syscall(SYS_newfstatat, fd, path, st, 0);
}

bool stream_place_is_under(struct stream_place place, const char *root)
{
	char path[BASE_RUNFILE_PATH];
	struct stat here, there;
	int saved = errno;
	bool same;
	long fd;

	if (folder(path, place) < 0 || *path != '/')
		return false;
	fd = syscall(SYS_openat, AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		same = errno != EMFILE && errno != ENFILE; /* then chroot() fails, too */
	else
		same = inode_get(AT_FDCWD, path, &here) && inode_get(fd, path + 1, &there) &&
		       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
	base_fd_close((int)fd);
	errno = saved;
	return same;
}

/* --- names --- */

static bool is_name(const char *name)
{
	return strlen(name) == NAME_LEN && strspn(name, "0123456789abcdef") == NAME_LEN;
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
		char name[SLAB_LEN + 1];
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
	int err = folder(path, place);
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
	int saved = errno, n = folder(sw.path, place);

	if (n < 0)
		return 0;
	sw.len = (size_t)n;
	sweep(&sw, place);
	errno = saved;
	if (!sw.removed)
		return 0;
	__atomic_store_n(&latest.looked, 0, __ATOMIC_RELEASE);
	base_debug("stream: %u states of dead processes removed", sw.removed);
	return sw.removed;
}
