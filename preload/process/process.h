/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_PROCESS_H
#define PRELOAD_PROCESS_H

#include <stdbool.h>

/*
 * The process ends: open streams are closed as the program would have, lingering ones finished,
 * the report written. Once.
 */
void process_finish(void);
/* The same, but that a program follows, which does not wait for what lingers */
void process_replace(void);
/* It does not, after all: what was finished is over, and what comes will be */
void process_resume(void);

#endif
