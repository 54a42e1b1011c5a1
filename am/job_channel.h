/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_JOB_CHANNEL_H
#define AM_JOB_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "am/job_wire.h"

#define AM_CHANNEL_WAITING 3 /* a rank is sent one boot and two ends, or one answer at a time */

/* A whole frame on its way to one rank or to many; it goes with the last reference. */
struct am_job_block {
	int refs;
	size_t size;
	uint8_t bytes[];
};

/* With one reference, and the data behind the head still to be written; NULL: no memory. */
struct am_job_block *am_job_block_create(uint32_t kind, uint32_t value, uint32_t length);
/* Where the data begin */
uint8_t *am_job_block_data(struct am_job_block *b);
void am_job_block_put(struct am_job_block *b);

/* The console's end of a connection for frames. */
struct am_channel {
	int fd;			    /* negative: not open */
	bool paused;		    /* nothing more is read */
	size_t got;		    /* bytes of the frame that is coming, its head's among them */
	struct am_job_message head; /* in our order of bytes once it is whole */
	struct am_job_block *out[AM_CHANNEL_WAITING];
	int waiting; /* of out */
	size_t sent; /* bytes of the first of these */
};

void am_channel_init(struct am_channel *c, int fd);
void am_channel_close(struct am_channel *c);

/* What to poll for; 0: nothing. */
short am_channel_events(const struct am_channel *c);

/* Takes a reference of its own, and sends what can be sent at once. */
void am_channel_send(struct am_channel *c, struct am_job_block *b);
/* Sends more, if anything waits; where that fails, reading finds the end of the connection. */
void am_channel_flush(struct am_channel *c);

/*
 * 0: it is whole, -EAGAIN: the rest has not come; or what ends the channel. A head stays until its
 * data have been read, and there may be none.
 */
int am_channel_read_head(struct am_channel *c);
/* All data of this frame belong to to; called again after -EAGAIN. */
int am_channel_read_data(struct am_channel *c, uint8_t *to);

#endif
