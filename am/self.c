/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of an endpoint to itself: handlers run inside the call, and the statistics do not
 * count them. A handler gets a copy of medium data, for it may write to its buffer.
 */
#include "am/self.h"

#include <stdlib.h>

#include "base/bits.h"

static void deliver(struct am_token *token, const struct am_frame *f, const int32_t *args,
		    const void *data)
{
	struct amudp_ep *ep = token->ep;
	struct am_args a = { { 0 } };
	uint8_t *copy = NULL;

	memcpy(a.v, args, f->numargs * sizeof(int32_t));
	switch (am_frame_category(f)) {
	case amudp_Short:
		am_handler_run(token, f, &a, NULL);
		return;
	case amudp_Long:
		if (f->nbytes)
			memmove(am_segment_at(ep, f->offset), data, f->nbytes);
		am_handler_run(token, f, &a, am_segment_at(ep, f->offset));
		return;
	default:
		copy = malloc(base_max(f->nbytes, 1u));
		if (!copy)
			AMUDP_FatalErr("no memory for %u bytes", f->nbytes);
		if (f->nbytes)
			memcpy(copy, data, f->nbytes);
		am_handler_run(token, f, &a, copy);
		free(copy);
	}
}

static int opcode_of(const struct am_frame *f)
{
	if (f->flags & AM_MESSAGE_GET)
		return AM_GET_XFER_M;
	return (f->type == AM_FRAME_REPLY ? AM_REPLY_M : AM_REQUEST_M) + (int)am_frame_category(f);
}

static void message(struct am_token *token, struct am_frame *f, const int32_t *args,
		    const void *data)
{
	int reason = am_frame_refusal(token->ep, f);

	if (reason) {
		token->may_reply = false;
		am_handler_return(token, reason, opcode_of(f));
		return;
	}
	deliver(token, f, args, data);
}

void am_self_reply(struct am_token *request, struct am_frame *f, const int32_t *args,
		   const void *data)
{
	struct am_token token = { .ep = request->ep,
				  .tag = request->ep->tag,
				  .source = request->source,
				  .source_index = request->source_index };

	f->type = AM_FRAME_REPLY;
	message(&token, f, args, data);
}

/* A get is the reply that the other side would have made. */
static void get(struct am_token *token, struct am_frame *f, const int32_t *args)
{
	int reason = am_frame_refusal(token->ep, f);

	if (reason) {
		am_handler_return(token, reason, AM_GET_XFER_M);
		return;
	}
	f->flags &= (uint8_t)~AM_MESSAGE_GET;
	am_self_reply(token, f, args, am_segment_at(token->ep, f->source_offset));
}

void am_self_request(struct amudp_ep *ep, amudp_node_t dest, struct am_frame *f,
		     const int32_t *args, const void *data)
{
	struct am_token token = { .ep = ep,
				  .is_request = true,
				  .may_reply = true,
				  .tag = ep->translations[dest].tag,
				  .source = ep->name,
				  .source_index = (int)dest };

	f->tag = token.tag;
	if (f->flags & AM_MESSAGE_GET)
		get(&token, f, args);
	else
		message(&token, f, args, data);
}
