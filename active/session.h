/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_SESSION_H
#define ACTIVE_SESSION_H

/* Clients of a server, and what is sent to them. active/inside.h has the struct. */

#include "active/inside.h"

/* wr_id of a Send that has no memory of an answer */
#define ACTIVE_NO_MEMORY UINT64_MAX

/* --- active/answer.c: no lock is held ----------------------------------------------------- */

/* Gives the task's receive back; then it is IDLE and no more the caller's */
void active_answer_receive(struct active_session *s, struct active_task *task);
/* An answer without output, up to ACTIVE_INLINE octets: the rest of the text is cut off */
void active_answer_send(struct active_session *s, const struct active_message *m);
/* @memory: number of the answer's memory, which has the output. True: it is free again */
bool active_answer_send_output(struct active_session *s, const struct active_message *m,
			       unsigned int memory);
void active_answer_welcome(struct active_session *s, uint64_t id, unsigned int memory);
uint8_t *active_answer_output(const struct active_session *s, unsigned int memory);
/* Ends the connection because of the client; the session goes when the lane sees that */
void active_session_break(struct active_session *s, const char *why);

/* --- active/session.c --------------------------------------------------------------------- */

/* Takes @conn over, also when it fails */
int active_session_create(struct warp_active_server *server, struct warp_conn *conn);
/* Nothing of it is under way, and it is in no list */
void active_session_destroy(struct active_session *s);

#endif
