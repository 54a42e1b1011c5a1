/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_JOB_COLLECTIVE_H
#define AM_JOB_COLLECTIVE_H

#include "am/job_channel.h"

/* The collective call that some ranks are in; no data of it are kept between two of them. */
struct am_collective {
	int size;	 /* ranks */
	int begun, done; /* ranks whose head, whose data too, have come */
	uint32_t kind;
	uint32_t length;
	struct am_job_block *answer;
};

/* A rank's head has come; 0, -EPROTO: the others call another one, -EMSGSIZE: data of too many. */
int am_collective_enter(struct am_collective *c, const struct am_job_message *head);
/* Where the rank's data belong */
uint8_t *am_collective_place(struct am_collective *c, int rank);
/* A rank's data have come; the answer to all, whose reference is the caller's, once all have. */
struct am_job_block *am_collective_leave(struct am_collective *c);

#endif
