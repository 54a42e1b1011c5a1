/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_POOL_H
#define ACTIVE_POOL_H

/* Tasks and their turns. active/inside.h has the structs. */

#include "active/inside.h"

/* active/run.c: a task's program or object */
/* Makes ready what has memory for its answer: 0, or it has failed and *m is the answer */
int active_run_begin(struct active_task *task, struct active_message *m, char *text);
/* True when it is over; *m is the answer then, its text in @text of ACTIVE_WIRE_TEXT_MAX + 1 */
bool active_run_turn(struct active_task *task, uint64_t fuel, struct active_message *m, char *text);
void active_run_end(struct active_task *task);

/* active/pool.c */
int active_pool_init(struct active_pool *pool);
int active_pool_start(struct active_pool *pool, unsigned int workers);
/* Ends the workers; no session is left */
void active_pool_uninit(struct active_pool *pool);
/* A task that has just come; runs it at once if that delays nobody */
void active_pool_submit(struct active_task *task, bool alone, uint64_t now);
void active_pool_cancel(struct active_session *s, uint64_t id);
/* The memory of an answer is free again */
void active_pool_answer_free(struct active_session *s, unsigned int memory);
/* Nothing of the session begins any more. True: nothing of it is under way */
bool active_pool_leave(struct active_session *s);

#endif
