/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_JOB_RANK_H
#define AM_JOB_RANK_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "am/console.h"
#include "am/job_channel.h"
#include "am/job_wire.h"

/* A rank as its console has it: four connections, of which the last two are output. */
struct am_rank {
	struct am_channel channel[AM_JOB_STDOUT];
	struct am_console console[AM_CONSOLE_TARGETS];
	uint32_t pid;
	pid_t child; /* the same, where it is a child of ours, of whose end we are told; else 0 */
	uint32_t wanted;   /* rank */
	unsigned int came; /* connections that have been made: a bit for each channel */
	bool gone;
	bool entered; /* the collective call that is under way */
};

/* It has said hello on its first connection, here in our order of bytes. */
void am_rank_init(struct am_rank *r, int fd, const struct am_job_hello *hello);
/* Each connection is made once: what it has left is not for another one to go on with. */
bool am_rank_may_join(const struct am_rank *r, uint32_t channel);
void am_rank_join(struct am_rank *r, uint32_t channel, int fd, bool parts);
/* Of output: also while some of it is still to be written. */
bool am_rank_is_open(const struct am_rank *r, uint32_t channel);
/* What to poll for; a connection that waits for nothing is not polled for its end, either. */
struct pollfd am_rank_poll(const struct am_rank *r, uint32_t channel);

/* Puts them, who stand in the order in which they came, in the order of their ranks. */
void am_ranks_assign(struct am_rank **ranks, int size);

#endif
