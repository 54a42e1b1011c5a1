/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Processes, as those see each other that share memory. By raw system calls; errno stays as it
 * was.
 */
struct base_process {
	uint32_t pid;
	uint32_t space; /* where the number means something: the PID namespace */
};

/* The caller's. Cheap, and right also in the child of a fork that nobody announced. */
struct base_process base_process_self(void);
/* Nanoseconds since the machine was started, asleep or not: the clock of base_process_lives() */
uint64_t base_process_clock(void);

/*
 * Does the process of this number still run that did at @since (0: at any time)? A later one of
 * the same number is another, and one that has ended and was not waited for is none. When it
 * cannot be known, yes.
 */
bool base_process_lives(struct base_process p, uint64_t since);

/*
 * Does it stand still, by a signal or a debugger, with whatever it holds? When it cannot be known,
 * no
 */
bool base_process_is_stopped(struct base_process p);

/* Has a process that the caller sees another PID namespace? When it cannot be known, no */
bool base_process_is_elsewhere(uint32_t pid);

/*
 * From now on this process may not open files or ask for others, on pain of death: nobody is
 * known to be dead any more
 */
void base_process_confine(void);
bool base_process_confined(void);

#endif
