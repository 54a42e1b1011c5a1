/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Can the interposer be loaded into a command? Not into one that is linked statically, nor into
 * one that gets privileges by being run, for which the dynamic linker ignores LD_PRELOAD; such a
 * command would run on plain TCP without a word. Of a script the interpreter counts.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "apps/warpsock/launcher.h"

#define CANNOT_RUN 126
/* As deep as the kernel follows #! */
#define SCRIPTS_MAX 5

__attribute__((noreturn)) static void refuse(const char *path, const char *why)
{
	fprintf(stderr,
		"warpsock: %s %s: the interposer cannot be loaded into it, and its sockets would "
		"stay on TCP\n",
		path, why);
	exit(CANNOT_RUN);
}

/* As execvp() finds it; false: that is to say so */
static bool command_find(const char *command, char *path, size_t room)
{
	const char *dirs = getenv("PATH"), *end;

	if (strchr(command, '/')) {
		snprintf(path, room, "%s", command);
		return true;
	}
	for (dirs = dirs ? dirs : "/bin:/usr/bin"; dirs; dirs = *end ? end + 1 : NULL) {
		int n;

		end = dirs + strcspn(dirs, ":");
		n = (int)(end - dirs);
		snprintf(path, room, "%.*s%s%s", n, dirs, n ? "/" : "", command);
		if (!access(path, X_OK))
			return true;
	}
	return false;
}

static bool gains_privileges(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	if (st.st_mode & S_ISUID && st.st_uid != getuid())
		return true;
	if (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getgid())
		return true;
	return getuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

/* The dynamic linker itself needs none, and loads what it is given */
static bool is_linker(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	return !strncmp(name, "ld-", 3) || !strncmp(name, "ld.", 3);
}

static bool is_static(int fd, const Elf64_Ehdr *e)
{
	for (unsigned int i = 0; i < e->e_phnum; i++) {
		off_t at = (off_t)(e->e_phoff + i * sizeof(Elf64_Phdr));
		Elf64_Phdr ph;

		if (pread(fd, &ph, sizeof(ph), at) != sizeof(ph) || ph.p_type == PT_INTERP)
			return false;
	}
	return true;
}

static void binary_check(const char *path, int fd, const Elf64_Ehdr *e)
{
	Elf64_Ehdr own;
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t n = self < 0 ? -1 : read(self, &own, sizeof(own));

	if (self >= 0)
		close(self);
	if (n == sizeof(own) &&
	    (e->e_ident[EI_CLASS] != own.e_ident[EI_CLASS] || e->e_machine != own.e_machine))
		refuse(path, "is for another kind of processor");
	if (e->e_ident[EI_CLASS] == ELFCLASS64 && !is_linker(path) && is_static(fd, e))
		refuse(path, "is linked statically");
}

/* The interpreter of "#! INTERPRETER ..." into @path; false: it is no script */
static bool script_follow(const char *text, char *path)
{
	size_t n;

	if (strncmp(text, "#!", 2))
		return false;
	text += 2 + strspn(text + 2, " \t");
	n = strcspn(text, " \t\r\n");
	memcpy(path, text, n);
	path[n] = '\0';
	return true;
}

/* True: @path is now the interpreter of what it was */
static bool file_check(char *path)
{
	union {
		Elf64_Ehdr elf;
		char text[256];
	} head = { .text = "" };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	/* What may be run but not read is left to fate */
	if (fd < 0)
		return false;
	n = read(fd, head.text, sizeof(head.text) - 1);
	if (n > 0 && script_follow(head.text, path)) {
		close(fd);
		return true;
	}
	if (gains_privileges(fd))
		refuse(path, "gets other privileges when it is run (setuid, setgid or "
			     "capabilities)");
	if (n >= (ssize_t)sizeof(head.elf) && !memcmp(head.elf.e_ident, ELFMAG, SELFMAG))
		binary_check(path, fd, &head.elf);
	close(fd);
	return false;
}

void target_check(const char *command)
{
	char path[PATH_MAX];

	if (!command_find(command, path, sizeof(path)))
		return;
	for (int i = 0; i < SCRIPTS_MAX && file_check(path); i++)
		;
}
