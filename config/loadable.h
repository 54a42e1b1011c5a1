/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CONFIG_LOADABLE_H
#define CONFIG_LOADABLE_H

/*
 * Can a program be interposed: does it load the interposer when this process executes it, and do
 * its socket calls go through libc then? The launcher asks before it starts a command, the
 * interposer before a program of its own executes another one.
 */
enum config_loads {
	CONFIG_LOADS_YES,
	CONFIG_LOADS_STATIC,	 /* it is linked statically */
	CONFIG_LOADS_GO,	 /* a Go program makes system calls without libc */
	CONFIG_LOADS_MUSL,	 /* its libc is not glibc, and cannot load a library for glibc */
	CONFIG_LOADS_MACHINE,	 /* it is for another processor, or a 32-bit program */
	CONFIG_LOADS_PRIVILEGED, /* setuid or setgid: the dynamic linker ignores LD_PRELOAD */
	CONFIG_LOADS_CAPABLE,	 /* file capabilities: the same */
	CONFIG_LOADS_UNREADABLE, /* it may be executed, but not read: nothing is known of it */
	CONFIG_LOADS_TEXT,    /* neither a program nor a script with #!: the kernel may know it */
	CONFIG_LOADS_NOTHING, /* there is no such program: the kernel says why */
};

/*
 * Arguments as execveat() has them. Of a script the last interpreter counts. Callable by a child
 * of vfork(): no memory is taken but the stack's, and errno stays as it was.
 */
enum config_loads config_loads_at(int dir, const char *path, int flags);
/* As execvp() finds @file; the shell runs a file that the kernel does not know */
enum config_loads config_loads_find(const char *file);
/* Why a program cannot be interposed: "is linked statically"; empty for _YES and _NOTHING */
const char *config_loads_text(enum config_loads loads);

#endif
