/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_ANSWERER_H
#define PRELOAD_ANSWERER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The thread that answers for this host (answer.h), or waits for its turn to. It is there while the
 * process has listeners that other processes are told of.
 */

/* When the process starts: the port of UDP, 0: nobody answers */
void answerer_init(uint16_t port);
/* There is one listener more, or less; errno stays as it was */
void answerer_listener(int more);
/* Where there should be a thread and is none: a process that was forked, or had no memory then */
void answerer_look(void);

/* Before the program is replaced, or filtered, or over; and if it goes on after all */
void answerer_stop(void);
void answerer_resume(void);
/* Threads of ours: 0 or 1 */
unsigned int answerer_threads(void);

/* Around fork(): a child has neither the thread nor the port, and begins anew */
void answerer_before_fork(void);
void answerer_after_fork(bool child);
/* In a child by libc's fork(), with no lock held. Another child has no thread until it executes */
void answerer_forked(void);

#endif
