/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_MESSAGE_H
#define AM_MESSAGE_H

#include <stdint.h>

#include "am/frame.h"

#define AM_MESSAGE_INLINE 128 /* data up to this many bytes stay in the slot */

/* A message kept for as long as it may have to be sent again: a request or a saved reply. */
struct am_message {
	uint8_t head[AM_HEAD_MAX];
	uint8_t head_len; /* 0: there is none */
	uint8_t category;
	uint8_t opcode; /* AM_REQUEST_M ... */
	uint32_t nbytes;
	uint32_t length;	/* bytes of data it carries: nbytes, or 0 for a get */
	uint32_t fragment_size; /* 0: one frame */
	const uint8_t *data;
	uint8_t *owned; /* what data points at, if it is ours to free */
	uint8_t small[AM_MESSAGE_INLINE];
};

/*
 * Builds the message f with these data; f->length and the fragment fields are set here. A
 * message of more than frame_max bytes is cut in fragments. copy: the data are kept, not only
 * pointed at. 0 or -ENOMEM.
 */
int am_message_init(struct am_message *m, struct am_frame *f, const int32_t *args,
		    const uint8_t *data, uint32_t frame_max, bool copy);
void am_message_uninit(struct am_message *m);

#endif
