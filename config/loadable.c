/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Can a program be interposed?
 *
 * It needs glibc's dynamic linker, for our processor, and one that heeds LD_PRELOAD: the linker
 * ignores it in a program that gets, or already runs with, privileges which its real user does not
 * have. A Go program may have that linker and makes its system calls itself all the same. In doubt
 * the answer is no: a program that loads the interposer after all finds nothing in what it was
 * given, while one that does not would write among the frames of a connection.
 *
 * Children of vfork() call it too, so nothing is kept and no memory is taken.
 */
#include "config/loadable.h"

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

#include "base/bits.h"
#include "base/fdutil.h"

/* As deep as the kernel follows #!, and as much as it reads of a file for it */
#define SCRIPTS_MAX 5
#define HEAD 256
/* Names of sections that are looked through */
#define NAMES 4096

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
 * The kernel tells the linker so when the effective user is not the real one, or was given more;
 * root is given nothing by capabilities. A process that becomes its real user by executing a
 * program may load the interposer in it, but that one may not read what this one has
 */
static enum config_loads privileges_judge(int fd, const struct stat *st)
{
	uid_t uid = st->st_mode & S_ISUID ? st->st_uid : geteuid();
	bool group = (st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
	gid_t gid = group ? st->st_gid : getegid();

	if (uid != getuid() || geteuid() != getuid() || gid != getgid())
		return CONFIG_LOADS_PRIVILEGED;
	if (getuid() && syscall(SYS_fgetxattr, fd, "security.capability", NULL, 0) > 0)
		return CONFIG_LOADS_CAPABLE;
	return CONFIG_LOADS_YES;
}

/* A Go program has a section of this name, stripped or not. The table of names is short there */
static bool is_go(int fd, const ElfW(Ehdr) * e)
{
	static const char name[] = "\0.go.buildinfo";
	char names[NAMES];
	ElfW(Shdr) sh;
	off_t at = (off_t)(e->e_shoff + e->e_shstrndx * sizeof(sh));
	ssize_t n;

	if (!e->e_shoff || e->e_shentsize != sizeof(sh) ||
	    syscall(SYS_pread64, fd, &sh, sizeof(sh), at) != sizeof(sh))
		return false;
	n = syscall(SYS_pread64, fd, names, base_min((size_t)sh.sh_size, sizeof(names)),
		    sh.sh_offset);
	return n > 0 && memmem(names, (size_t)n, name, sizeof(name));
}

static enum config_loads linker_judge(int fd, const ElfW(Phdr) * ph)
{
	char path[PATH_MAX];
	ssize_t n;

	if (!ph->p_filesz || ph->p_filesz > sizeof(path))
		return CONFIG_LOADS_MACHINE;
	n = syscall(SYS_pread64, fd, path, ph->p_filesz, ph->p_offset);
	if (n != (ssize_t)ph->p_filesz || path[n - 1])
		return CONFIG_LOADS_MACHINE;
	if (!strncmp(base_name(path), "ld-musl-", 8))
		return CONFIG_LOADS_MUSL;
	return strcmp(base_name(path), LINKER) ? CONFIG_LOADS_MACHINE : CONFIG_LOADS_YES;
}

/* glibc's dynamic linker itself needs no other, and loads what LD_PRELOAD names */
static bool is_linker(const char *path)
{
	return !strcmp(base_name(path), LINKER) || !strcmp(base_name(path), "ld.so");
}

static enum config_loads elf_judge(int fd, const char *path, const ElfW(Ehdr) * e)
{
	ElfW(Phdr) ph;

	if (e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_machine != MACHINE ||
	    e->e_phentsize != sizeof(ph))
		return CONFIG_LOADS_MACHINE;
	if (is_go(fd, e))
		return CONFIG_LOADS_GO;
	for (unsigned int i = 0; i < e->e_phnum; i++) {
		off_t at = (off_t)(e->e_phoff + i * sizeof(ph));

		if (syscall(SYS_pread64, fd, &ph, sizeof(ph), at) != sizeof(ph))
			return CONFIG_LOADS_MACHINE;
		if (ph.p_type == PT_INTERP)
			return linker_judge(fd, &ph);
	}
	return is_linker(path) ? CONFIG_LOADS_YES : CONFIG_LOADS_STATIC;
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

/* @script: the interpreter that it names */
static enum config_loads file_judge(int fd, const char *path, const struct stat *st,
				    char script[HEAD])
{
	union head head = { .text = "" };
	ssize_t n = syscall(SYS_pread64, fd, head.text, sizeof(head.text) - 1, 0);
	enum config_loads l;

	if (n > 2 && !memcmp(head.text, "#!", 2))
		return script_follow(head.text, script) ? CONFIG_LOADS_YES : CONFIG_LOADS_NOTHING;
	if (n < (ssize_t)sizeof(head.elf) || memcmp(head.elf.e_ident, ELFMAG, SELFMAG))
		return CONFIG_LOADS_TEXT;
	l = elf_judge(fd, path, &head.elf);
	return l == CONFIG_LOADS_YES ? privileges_judge(fd, st) : l;
}

static enum config_loads file_look(int dir, const char *path, int flags, char script[HEAD])
{
	enum config_loads l;
	struct stat st;
	int fd;

	script[0] = '\0';
	if (!can_run(dir, path, flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW), &st))
		return CONFIG_LOADS_NOTHING;
	fd = file_open(dir, path, flags);
	if (fd < 0)
		return CONFIG_LOADS_UNREADABLE;
	l = file_judge(fd, path, &st, script);
	base_fd_close(fd);
	return l;
}

static enum config_loads follow(enum config_loads l, char script[HEAD])
{
	char path[HEAD];

	for (int i = 0; l == CONFIG_LOADS_YES && script[0]; i++) {
		if (i == SCRIPTS_MAX)
			return CONFIG_LOADS_NOTHING;
		memcpy(path, script, sizeof(path));
		l = file_look(AT_FDCWD, path, 0, script);
	}
	return l;
}

enum config_loads config_loads_at(int dir, const char *path, int flags)
{
	char script[HEAD];
	int saved = errno;
	enum config_loads l;

	if (!path || (!*path && !(flags & AT_EMPTY_PATH)))
		return CONFIG_LOADS_NOTHING;
	l = follow(file_look(dir, path, flags, script), script);
	errno = saved;
	return l;
}

/* The shell runs a file that the kernel does not know */
static enum config_loads by_shell(const char *path)
{
	enum config_loads l = config_loads_at(AT_FDCWD, path, 0);

	return l == CONFIG_LOADS_TEXT ? config_loads_at(AT_FDCWD, "/bin/sh", 0) : l;
}

enum config_loads config_loads_find(const char *file)
{
	const char *dirs = getenv("PATH"), *end;
	char path[PATH_MAX];
	enum config_loads l;

	if (!file || strchr(file, '/'))
		return by_shell(file);
	for (dirs = dirs ? dirs : "/bin:/usr/bin";; dirs = end + 1) {
		end = strchrnul(dirs, ':');
		snprintf(path, sizeof(path), "%.*s%s%s", (int)(end - dirs), dirs,
			 end > dirs ? "/" : "", file);
		l = *file ? by_shell(path) : CONFIG_LOADS_NOTHING;
		if (l != CONFIG_LOADS_NOTHING || !*end)
			return l;
	}
}

const char *config_loads_text(enum config_loads loads)
{
	static const char *const texts[] = {
		[CONFIG_LOADS_YES] = "",
		[CONFIG_LOADS_STATIC] = "is linked statically",
		[CONFIG_LOADS_GO] = "is a Go program, which makes system calls without libc",
		[CONFIG_LOADS_MUSL] = "is linked to musl, and not to glibc",
		[CONFIG_LOADS_MACHINE] = "is for another kind of processor, or a 32-bit program",
		[CONFIG_LOADS_PRIVILEGED] = "gets other privileges when it is run (setuid or "
					    "setgid)",
		[CONFIG_LOADS_CAPABLE] = "gets other privileges when it is run (file "
					 "capabilities)",
		[CONFIG_LOADS_UNREADABLE] = "cannot be read by this user",
		[CONFIG_LOADS_TEXT] = "is neither a program nor a script that begins with #!",
		[CONFIG_LOADS_NOTHING] = "",
	};

	return texts[loads];
}
