/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_RUNFILE_H
#define BASE_RUNFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Memory that processes of one user share by a name: files of a folder that is the user's alone,
 * on a tmpfs. No descriptor stays open. By raw system calls, without memory of malloc's; errno
 * stays as it was.
 */

/* The longest path of a file */
#define BASE_RUNFILE_PATH 1088

/*
 * Is the folder fit for @user's files? @make: makes it if there is none (-ENOENT). -EACCES: it is
 * another user's, or others may use it; -ENOTDIR: it is none, or a symbolic link to one;
 * -EMEDIUMTYPE: it is on no tmpfs; -errno. What was found to be good is not looked at again until
 * @user is another one.
 */
int base_rundir_prepare(const char *dir, uid_t user, bool make);
/* Was it found to be so? */
bool base_rundir_is_prepared(uid_t user);
/* Nothing is known of it any more */
void base_rundir_forget(void);
/* Half of its memory, in bytes; @room: or nothing where that is used, for the rest is for others */
int base_rundir_room(const char *dir, uint64_t *room, uint64_t *half);

/*
 * A new file, mapped: zeros, of which the first page has memory. -EEXIST, -EFBIG (RLIMIT_FSIZE),
 * -ENOSPC: there is no room for @room bytes of it; -errno.
 */
int base_runfile_create(const char *path, size_t size, size_t room, void **out);
/* One name more for the file at @path: 0, -EEXIST, -ENOENT, -errno */
int base_runfile_link(const char *path, const char *name);
/* Are these two names of one file? */
bool base_runfile_same(const char *path, const char *name);
/*
 * An old one, mapped. -ENOENT, -EACCES: not this user's alone; -EPROTO: no plain file, or
 * smaller than @min; -errno.
 */
int base_runfile_open(const char *path, size_t min, void **out, size_t *size);
/*
 * One of just this size, which whoever comes first makes; all of it has memory. -EPROTO: another
 * one is there
 */
int base_runfile_page(const char *path, size_t size, void **out);
int base_runfile_remove(const char *path);
/*
 * The same in a folder of @user's, whom the process may be by another of its user numbers. -EPERM:
 * the folder is another user's
 */
int base_runfile_remove_of(const char *path, uid_t user);
/*
 * Takes memory for these octets of a mapping of such a file, whole pages; -ENOSPC, where to touch
 * them would be SIGBUS
 */
int base_runfile_reserve(void *p, size_t len);
/* These pages of a shared mapping are zeroes again, and take no memory */
void base_runfile_release(void *p, size_t len);

#endif
