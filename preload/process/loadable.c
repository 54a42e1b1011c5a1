/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Can a file, executed by this process as it is now, load the interposer?
 *
 * It takes a dynamic linker like our own, and one that heeds LD_PRELOAD: not one of a program that
 * gets, or already runs with, privileges which its real user does not have. Of a script the last
 * interpreter counts. Who is in doubt says no: a program that loads us after all finds
 * nothing of ours in what it was given, while one that does not would write among the frames.
 *
 * Called by children of vfork() too, so nothing is kept and no memory is taken.
 */
#include "preload/process/loadable.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fdutil.h"

/* As deep as the kernel follows #!, and as much as it reads of a file for it */
#define SCRIPTS_MAX 5
#define HEAD 256

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define LINKER "ld-linux-x86-64.so.2"
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#define LINKER "ld-linux-aarch64.so.1"
#endif

union head {
	ElfW(Ehdr) elf;
	char text[HEAD];
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * The kernel tells the linker so when the effective user is not the real one, or was given more.
 * Who becomes the real user by being executed may load us, but not read what ours has
 */
static bool is_privileged(int fd, const struct stat *st)
{
	uid_t uid = st->st_mode & S_ISUID ? st->st_uid : geteuid();
	bool group = (st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
	gid_t gid = group ? st->st_gid : getegid();

	return uid != getuid() || geteuid() != getuid() || gid != getgid() ||
	       syscall(SYS_fgetxattr, fd, "security.capability", NULL, 0) > 0;
}

static bool linker_is_ours(int fd, const ElfW(Phdr) * ph)
{
	char path[PATH_MAX];
	ssize_t n;

	if (!ph->p_filesz || ph->p_filesz > sizeof(path))
		return false;
	n = syscall(SYS_pread64, fd, path, ph->p_filesz, ph->p_offset);
	return n == (ssize_t)ph->p_filesz && !path[n - 1] && !strcmp(base_name(path), LINKER);
}

static bool has_linker(int fd, const ElfW(Ehdr) * e)
{
	ElfW(Phdr) ph;

	if (e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_machine != MACHINE ||
	    e->e_phentsize != sizeof(ph))
		return false;
	for (unsigned int i = 0; i < e->e_phnum; i++) {
		off_t at = (off_t)(e->e_phoff + i * sizeof(ph));

		if (syscall(SYS_pread64, fd, &ph, sizeof(ph), at) != sizeof(ph))
			return false;
		if (ph.p_type == PT_INTERP)
			return linker_is_ours(fd, &ph);
	}
	return false;
}

/* The interpreter of "#! INTERPRETER ..." into @path; false: there is none */
static bool script_follow(const char *text, char path[HEAD])
{
	size_t n;

	text += 2 + strspn(text + 2, " \t");
	n = strcspn(text, " \t\n");
	memcpy(path, text, n);
	path[n] = '\0';
	return n;
}

static bool can_run(int dir, const char *path, int flags, struct stat *st)
{
	return !fstatat(dir, path, st, flags) && S_ISREG(st->st_mode) &&
	       !faccessat(dir, path, X_OK, AT_EACCESS | flags);
}

static int file_open(int dir, const char *path, int flags)
{
	int follow = flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0;
	char self[32];

	if (!*path) {
		/* What was opened to be executed only cannot be read by its descriptor */
		snprintf(self, sizeof(self), "/proc/self/fd/%d", dir);
		path = self;
	}
	return (int)syscall(SYS_openat, dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | follow);
}

/* @script: the interpreter that it names. @TEXT: the kernel may know it or not */
enum { TEXT = LOADABLE_NOTHING + 1 };

static int file_judge(int fd, const struct stat *st, char script[HEAD])
{
	union head head = { .text = "" };
	ssize_t n = syscall(SYS_pread64, fd, head.text, sizeof(head.text) - 1, 0);

	if (n > 2 && !memcmp(head.text, "#!", 2))
		return script_follow(head.text, script) ? LOADABLE_YES : LOADABLE_NOTHING;
	if (n < (ssize_t)sizeof(head.elf) || memcmp(head.elf.e_ident, ELFMAG, SELFMAG))
		return TEXT;
	return has_linker(fd, &head.elf) && !is_privileged(fd, st) ? LOADABLE_YES : LOADABLE_NO;
}

/* One that may be run but not read is not looked into */
static int file_look(int dir, const char *path, int flags, char script[HEAD])
{
	struct stat st;
	int fd, l;

	script[0] = '\0';
	if (!can_run(dir, path, flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW), &st))
		return LOADABLE_NOTHING;
	fd = file_open(dir, path, flags);
	if (fd < 0)
		return LOADABLE_NO;
	l = file_judge(fd, &st, script);
	base_fd_close(fd);
	return l;
}

static int follow(int l, char script[HEAD])
{
	char path[HEAD];

	for (int i = 0; l == LOADABLE_YES && script[0]; i++) {
		if (i == SCRIPTS_MAX)
			return LOADABLE_NOTHING;
		memcpy(path, script, sizeof(path));
		l = file_look(AT_FDCWD, path, 0, script);
	}
	return l;
}

/* What runs a file that the kernel does not know, if not the kernel */
static enum loadable text_judge(bool shell)
{
	return shell ? loadable_at(AT_FDCWD, "/bin/sh", 0) : LOADABLE_NO;
}

static enum loadable look(int dir, const char *path, int flags, bool shell)
{
	char script[HEAD];
	int saved = errno, l;

	if (!path || (!*path && !(flags & AT_EMPTY_PATH)))
		return LOADABLE_NOTHING;
	l = follow(file_look(dir, path, flags, script), script);
	errno = saved;
	return l == TEXT ? text_judge(shell) : (enum loadable)l;
}

enum loadable loadable_at(int dir, const char *path, int flags)
{
	return look(dir, path, flags, false);
}

enum loadable loadable_find(const char *file)
{
	const char *dirs = getenv("PATH"), *end;
	char path[PATH_MAX];
	enum loadable l;

	if (!file || strchr(file, '/'))
		return look(AT_FDCWD, file, 0, true);
	for (dirs = dirs ? dirs : "/bin:/usr/bin";; dirs = end + 1) {
		end = strchrnul(dirs, ':');
		snprintf(path, sizeof(path), "%.*s%s%s", (int)(end - dirs), dirs,
			 end > dirs ? "/" : "", file);
		l = *file ? look(AT_FDCWD, path, 0, true) : LOADABLE_NOTHING;
		if (l != LOADABLE_NOTHING || !*end)
			return l;
	}
}
