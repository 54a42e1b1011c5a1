/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The small program that helper processes (preload/process/helper_process.c) go on as, so that they
 * keep nothing of the program's memory.
 */
#ifndef PRELOAD_HELPER_PROGRAM_H
#define PRELOAD_HELPER_PROGRAM_H

#include <stddef.h>

/* At the start: which file it is, beside the library; behind environment_init() */
void helper_program_init(void);
/* Room that helper_program_execute() needs */
size_t helper_program_room(void);
/*
 * Goes on as that program with @argv, in a process that has nothing but the descriptors that it is
 * for. It comes back, with no change to them but that 0 to 2 are open, where the program is
 * missing, is another file than at the start, or could not begin for certain.
 */
void helper_program_execute(void *room, char *const *argv);

#endif
