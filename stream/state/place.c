/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The folder of the states. Its name goes by the user alone, so that a program that is executed,
 * or that receives a descriptor, comes to the same one whatever its environment.
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

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "stream/state/place_name.h"

#define SHM "/dev/shm"
#define PREFIX "warpsock-"
#define PLACE SHM "/" PREFIX "%u"
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

int stream_place_folder(char path[BASE_RUNFILE_PATH], struct stream_place place)
{
	int n = *place.dir ? snprintf(path, BASE_RUNFILE_PATH, "%s", place.dir)
			   : snprintf(path, BASE_RUNFILE_PATH, PLACE, (unsigned int)place.user);

	return n < BASE_RUNFILE_PATH - STREAM_SLAB_NAME_LEN - 1 ? n : -ENAMETOOLONG;
}

int stream_place_path(char path[BASE_RUNFILE_PATH], struct stream_place place, uint64_t cookie)
{
	int n = stream_place_folder(path, place);

	if (n < 0)
		return n;
	snprintf(path + n, (size_t)(BASE_RUNFILE_PATH - n), "/" STREAM_NAME,
		 (unsigned long long)cookie);
	return 0;
}

int stream_place_slab(char path[BASE_RUNFILE_PATH], struct stream_place place, uint64_t number)
{
	char name[STREAM_SLAB_NAME_LEN + 1];

	snprintf(name, sizeof(name), STREAM_SLAB_NAME, (unsigned long long)number);
	return stream_place_file(path, place, name);
}

int stream_place_file(char path[BASE_RUNFILE_PATH], struct stream_place place, const char *name)
{
	int n = stream_place_folder(path, place);

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
	err = stream_place_folder(path, place);
	if (err >= 0)
		err = base_rundir_prepare(path, place.user, make);
	if (err)
		unfit_say(path, err);
	return err;
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
	int err = stream_place_folder(path, place);

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

/* What was found is not to be believed any more */
void stream_place_look_again(void)
{
	__atomic_store_n(&latest.looked, 0, __ATOMIC_RELEASE);
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

	if (stream_place_folder(path, place) < 0 || *path != '/')
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
