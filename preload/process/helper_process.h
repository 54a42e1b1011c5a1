/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Helper processes, beside the program's: no wait() sees them, no signal tells of them.
 */
#ifndef PRELOAD_HELPER_PROCESS_H
#define PRELOAD_HELPER_PROCESS_H

/* One that begins in @run, which does not return, with a copy of this one's memory; -errno */
int helper_process_create(void (*run)(void *ctx), void *ctx);
/* In it, before all else: it has no handlers, no wakeup fd, and this name */
void helper_process_init(const char *name);
/* And no descriptors but those that @next gives: the least that is to stay from a number on; -1 */
void helper_process_close_others(int (*next)(void *ctx, int from), void *ctx);

#endif
