/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A message kept until its answer: the head in wire form, and the data.
 *
 * Data of a few bytes stay inside, so that a small message costs no allocation. The head of a
 * fragmented message is patched for each fragment; everything else in it is constant but the
 * copy number.
 */
#include "am/message.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "include/warp/amudp.h"

static const uint8_t opcodes[2][amudp_NumCategories] = {
	{ AM_REQUEST_M, AM_REQUEST_IM, AM_REQUEST_XFER_M },
	{ AM_REPLY_M, AM_REPLY_IM, AM_REPLY_XFER_M },
};

static int keep(struct am_message *m, const uint8_t *data)
{
	uint8_t *to = m->small;

	if (m->length > sizeof(m->small)) {
		m->owned = malloc(m->length);
		if (!m->owned)
			return -ENOMEM;
		to = m->owned;
	}
	if (m->length)
		memcpy(to, data, m->length);
	m->data = to;
	return 0;
}

/* Leaves room for the longest head, so that the data of a fragment stay aligned to 8. */
static uint32_t fragment_size(uint32_t length, uint32_t frame_max)
{
	if (length + AM_HEAD_MAX <= frame_max)
		return 0;
	return (uint32_t)base_align_down(frame_max - AM_HEAD_MAX, 8);
}

int am_message_init(struct am_message *m, struct am_frame *f, const int32_t *args,
		    const uint8_t *data, uint32_t frame_max, bool copy)
{
	m->category = (uint8_t)am_frame_category(f);
	m->opcode = (f->flags & AM_MESSAGE_GET) ? AM_GET_XFER_M
						: opcodes[f->type == AM_FRAME_REPLY][m->category];
	m->nbytes = f->nbytes;
	m->length = (f->flags & AM_MESSAGE_GET) ? 0 : f->nbytes;
	m->data = data;
	m->owned = NULL;
	if (copy && keep(m, data) < 0)
		return -ENOMEM;
	m->fragment_size = fragment_size(m->length, frame_max);
	f->length = m->length;
	if (m->fragment_size) {
		f->flags |= AM_MESSAGE_FRAGMENT;
		f->fragment_size = m->fragment_size;
		f->length = 0;
	}
	m->head_len = (uint8_t)am_frame_put_message(m->head, f, args);
	return 0;
}

void am_message_uninit(struct am_message *m)
{
	free(m->owned);
	m->owned = NULL;
	m->head_len = 0;
}
