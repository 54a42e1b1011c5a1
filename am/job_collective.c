/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A collective call of a job: it begins with the first rank's head, all others must call the same,
 * and its answer is made when the last rank's data have come.
 */
#include "am/job_collective.h"

#include <errno.h>

int am_collective_enter(struct am_collective *c, const struct am_job_message *head)
{
	if (head->length > AM_JOB_LENGTH_MAX / (uint32_t)c->size)
		return -EMSGSIZE;
	if (!c->begun) {
		c->kind = head->kind;
		c->length = head->length;
		c->answer = am_job_block_create(head->kind, 0, head->length * (uint32_t)c->size);
		if (!c->answer)
			return -ENOMEM;
	}
	if (head->kind != c->kind || head->length != c->length)
		return -EPROTO;
	c->begun++;
	return 0;
}

uint8_t *am_collective_place(struct am_collective *c, int rank)
{
	return am_job_block_data(c->answer) + (size_t)rank * c->length;
}

struct am_job_block *am_collective_leave(struct am_collective *c)
{
	struct am_job_block *answer = c->answer;

	if (++c->done < c->size)
		return NULL;
	c->begun = c->done = 0;
	c->answer = NULL;
	return answer;
}
