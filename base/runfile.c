/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files of the runtime folder, as mappings.
 *
 * The folder is what keeps others away: who could write to a file could shorten it, and the next
 * touch of the mapping would be SIGBUS; on a tmpfs nothing forbids that. It is judged once, by its
 * owner and mode, and not by a descriptor that would have to stay open: its parent is the
 * administrator's, or has the sticky bit, and nobody else can put another in its place.
 *
 * A tmpfs that is full tells by SIGBUS too, so memory is asked for before it is touched.
 */
#include "base/runfile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/map.h"
#include "base/point.h"
#include "base/process.h"
#include "base/result.h"

#define PAGE 4096u
/* <linux/mman.h> of older kernels has it not */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static uint64_t good; /* atomic: whose folder was found to be good, plus one */

/* errno is kept first: arguments are evaluated in any order */
#define call(...)                                               \
	__extension__({                                         \
		int call_saved_ = errno;                        \
                                                                \
		base_result(syscall(__VA_ARGS__), call_saved_); \
	})

static int dir_judge(int fd, uid_t user)
{
	struct stat st;
	struct statfs fs;
	int err = (int)call(SYS_fstat, fd, &st);

	if (!err)
		err = (int)call(SYS_fstatfs, fd, &fs);
	if (err)
		return err;
	if (st.st_uid != user || st.st_mode & (S_IRWXG | S_IRWXO))
		return -EACCES;
	return fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC ? 0 : -EMEDIUMTYPE;
}

/* Made just now: a umask may have taken away what we need ourselves */
static int dir_make(const char *dir)
{
	int err = (int)call(SYS_mkdirat, AT_FDCWD, dir, 0700);

	if (!err)
		return (int)call(SYS_fchmodat, AT_FDCWD, dir, 0700);
	return err == -EEXIST ? 0 : err;
}

static int dir_prepare(const char *dir, uid_t user, bool make)
{
	int err = make ? dir_make(dir) : 0, fd;

	if (err)
		return err;
	fd = (int)call(SYS_openat, AT_FDCWD, dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fd == -ELOOP ? -ENOTDIR : fd;
	err = dir_judge(fd, user);
	call(SYS_close, fd);
	return err;
}

bool base_rundir_is_prepared(uid_t user)
{
	return __atomic_load_n(&good, __ATOMIC_ACQUIRE) == (uint64_t)user + 1;
}

int base_rundir_prepare(const char *dir, uid_t user, bool make)
{
	int err;

	if (base_rundir_is_prepared(user))
		return 0;
	err = dir_prepare(dir, user, make);
	if (!err)
		__atomic_store_n(&good, (uint64_t)user + 1, __ATOMIC_RELEASE);
	return err;
}

void base_rundir_forget(void)
{
	__atomic_store_n(&good, 0, __ATOMIC_RELEASE);
}

/* To go beyond the limit is SIGXFSZ, so it is asked for */
static bool is_too_long(size_t size)
{
	struct rlimit limit;

	return !call(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) && size > limit.rlim_cur;
}

/* A folder without a limit says that it has no blocks */
static int room_judge(const struct statfs *fs, size_t room)
{
	return fs->f_blocks && (uint64_t)fs->f_bavail * (uint64_t)fs->f_bsize < room ? -ENOSPC : 0;
}

int base_rundir_room(const char *dir, uint64_t *room, uint64_t *half)
{
	struct statfs fs;
	int err = (int)call(SYS_statfs, dir, &fs);
	uint64_t blocks = (uint64_t)fs.f_blocks / 2;

	if (err)
		return err;
	*half = fs.f_blocks ? blocks * (uint64_t)fs.f_bsize : UINT64_MAX;
	*room = !fs.f_blocks || (uint64_t)fs.f_bavail > blocks ? *half : 0;
	return 0;
}

static int file_fill(int fd, size_t size, size_t room, void **out)
{
	struct statfs fs;
	int err = (int)call(SYS_fstatfs, fd, &fs);

	if (!err)
		err = room_judge(&fs, room);
	if (!err)
		err = (int)call(SYS_fallocate, fd, 0, 0, PAGE);
	if (!err)
		err = (int)call(SYS_ftruncate, fd, size);
	return err ? err : base_map_create_file(fd, size, out);
}

int base_runfile_create(const char *path, size_t size, size_t room, void **out)
{
	int fd, err;

	if (is_too_long(size))
		return -EFBIG;
	if (BASE_FAILS(runfile))
		return -ENOSPC;
	fd = (int)call(SYS_openat, AT_FDCWD, path,
		       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fd;
	err = file_fill(fd, size, room, out);
	call(SYS_close, fd);
	if (err)
		base_runfile_remove(path);
	return err;
}

static int file_judge(int fd, size_t min, size_t *size)
{
	struct stat st;
	int err = (int)call(SYS_fstat, fd, &st);

	if (err)
		return err;
	if (st.st_uid != (uid_t)syscall(SYS_geteuid))
		return -EACCES;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || (uint64_t)st.st_size < min)
		return -EPROTO;
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return -EACCES;
	*size = (size_t)st.st_size;
	return 0;
}

/* One that was made under a umask which took away our own rights gets them back */
static int file_open(const char *path, int more)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | more;
	int fd = (int)call(SYS_openat, AT_FDCWD, path, flags, 0600);

	if (fd == -EACCES && !call(SYS_fchmodat, AT_FDCWD, path, 0600))
		fd = (int)call(SYS_openat, AT_FDCWD, path, flags, 0600);
	return fd == -ELOOP || fd == -ENXIO || fd == -EISDIR ? -EPROTO : fd;
}

int base_runfile_open(const char *path, size_t min, void **out, size_t *size)
{
	int fd = file_open(path, 0), err;

	if (fd < 0)
		return fd;
	err = file_judge(fd, min, size);
	if (!err)
		err = base_map_create_file(fd, *size, out);
	call(SYS_close, fd);
	return err;
}

/* In one step, which a process that is killed has done or not, and others may do at once */
static int page_fill(int fd, size_t size)
{
	struct statfs fs;
	int err = BASE_FAILS(runfile) ? -ENOSPC : (int)call(SYS_fstatfs, fd, &fs);

	if (!err)
		err = room_judge(&fs, size);
	return err ? err : (int)call(SYS_fallocate, fd, 0, 0, size);
}

int base_runfile_page(const char *path, size_t size, void **out)
{
	int fd = file_open(path, O_CREAT), err;
	size_t found = 0;

	if (fd < 0)
		return fd;
	err = file_judge(fd, 0, &found);
	if (!err && !found)
		err = page_fill(fd, size);
	else if (!err && found != size)
		err = -EPROTO;
	if (!err)
		err = base_map_create_file(fd, size, out);
	call(SYS_close, fd);
	if (!err && base_runfile_reserve(*out, size)) {
		base_map_destroy(*out, size);
		err = -EPROTO;
	}
	return err;
}

int base_runfile_link(const char *path, const char *name)
{
	if (BASE_FAILS(runfile))
		return -ENOSPC;
	return (int)call(SYS_linkat, AT_FDCWD, path, AT_FDCWD, name, 0);
}

static bool inode_get(const char *path, struct stat *st)
{
	return !call(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

bool base_runfile_same(const char *path, const char *name)
{
	struct stat a, b;

	return inode_get(path, &a) && inode_get(name, &b) && a.st_ino == b.st_ino;
}

int base_runfile_remove(const char *path)
{
	return (int)call(SYS_unlinkat, AT_FDCWD, path, 0);
}

/*
 * Of a folder that is @user's itself: its owner can put a symbolic link in its place, and that
 * would lead a process with more rights to a file of somebody else's
 */
static int remove_within(const char *path, uid_t user)
{
	const char *name = strrchr(path, '/');
	char dir[BASE_RUNFILE_PATH];
	struct stat st;
	int fd, err;

	snprintf(dir, sizeof(dir), "%.*s", (int)(name - path), path);
	fd = (int)call(SYS_openat, AT_FDCWD, dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fd;
	err = (int)call(SYS_fstat, fd, &st);
	if (!err)
		err = st.st_uid == user ? (int)call(SYS_unlinkat, fd, name + 1, 0) : -EPERM;
	call(SYS_close, fd);
	return err;
}

/* For this thread alone, and to files alone */
static int remove_as(const char *path, uid_t user, uid_t as)
{
	long was = call(SYS_setfsuid, as);
	int err = remove_within(path, user);

	call(SYS_setfsuid, was);
	return err;
}

int base_runfile_remove_of(const char *path, uid_t user)
{
	int err;

	if (base_process_confined() || (uid_t)syscall(SYS_geteuid) == user)
		return base_runfile_remove(path);
	err = remove_within(path, user);
	if (err == -EACCES)
		err = remove_as(path, user, user);
	return err == -EACCES ? remove_as(path, user, 0) : err;
}

/* A kernel that cannot be asked (before 5.14) is believed to have room */
int base_runfile_reserve(void *p, size_t len)
{
	uintptr_t from = (uintptr_t)p & ~(uintptr_t)(PAGE - 1),
		  to = ((uintptr_t)p + len + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	int err = (int)call(SYS_madvise, from, to - from, MADV_POPULATE_WRITE);

	return err == -EFAULT || err == -ENOMEM ? -ENOSPC : 0;
}

void base_runfile_release(void *p, size_t len)
{
	call(SYS_madvise, p, len, MADV_REMOVE);
}
