/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_PROCESS_H
#define PRELOAD_PROCESS_H

/* Changes with each fork(), in the child: what has another one is its parent's as well */
extern unsigned int process_age;

/*
 * The process ends: open streams are closed as the program would have, lingering ones finished,
 * the report written. Once.
 */
void process_finish(void);

#endif
