/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_SIGNALS_H
#define PRELOAD_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct call;

/* No handler runs in this thread in between */
void signals_block(sigset_t *before);
void signals_restore(const sigset_t *before);

/* Runs the handlers of what was noted, outside. May the call be restarted, as far as they go? */
bool signals_deliver(struct call *e);
/* Notes whose signals nobody blocks any more, as after a jump out of a handler, count again */
void signals_unmute(struct call *e);
/* In a child, whose parent will run them; @e: the thread's, or NULL */
void signals_after_fork(struct call *e);
/* Handlers that were installed before we were there */
void signals_init(void);

#endif
