/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_ENVIRONMENT_H
#define PRELOAD_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What an executed program needs in its environment to load the interposer and to go by the same
 * rules: LD_PRELOAD with our name in it, and WARPSOCK_*.
 */

/* At the start: from the environment as it was given, of which programs make what they like */
void environment_init(void);
/* Where our library stands; empty: we are part of the program */
const char *environment_library(void);
/* Can a program of this process's user read our library where it stands? */
bool environment_library_readable(void);
/* Room that environment_make() needs for what @envp (may be NULL) lacks; 0: nothing */
size_t environment_room(char *const *envp);
/* @envp with what it lacks, in @room */
char **environment_make(void *room, char *const *envp);

/* The same for a program that cannot load the interposer and fails with it: @envp without it */
size_t environment_bare_room(char *const *envp);
char **environment_bare(void *room, char *const *envp);

/* The program's own has what it lacks again, for good; false: there is no memory */
bool environment_restore(void);

#endif
