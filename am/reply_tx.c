/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Replies going out: docs/amudp-wire.md, section 5.
 *
 * A reply is saved in the request's slot until the requester uses that slot again, which tells
 * that it has it. A bulk reply's data are freed as soon as the requester has all of them.
 */
#include "am/bulk.h"
#include "am/lock.h"
#include "am/queue.h"
#include "am/request.h"
#include "am/self.h"
#include "base/bits.h"

static void bytes_count(struct amudp_ep *ep, const struct am_message *m)
{
	ep->stats.RepliesSent[m->category]++;
	ep->stats.ReplyDataBytesSent[m->category] += m->length;
	ep->stats.ReplyTotalBytesSent[m->category] += m->head_len + (uint64_t)m->length;
}

void am_reply_send(struct amudp_ep *ep, struct am_peer *peer, struct am_rx_slot *rx, uint16_t slot,
		   uint8_t copy, bool again)
{
	struct am_message *m = &rx->reply;

	/* a bulk reply that is under way looks after itself, and one that is done is freed */
	if (!m->head_len || rx->bulk)
		return;
	am_frame_patch_copy(m->head, copy);
	if (again)
		ep->stats.RepliesRetransmitted[m->category]++;
	if (copy == AM_COPY_ASKED)
		ep->xstats.QuestionsAnswered++;
	if (!m->fragment_size)
		am_queue_message(ep, peer, m->head, m->head_len, m->data, m->length);
	else
		am_bulk_create(&rx->bulk, peer, m, true, slot, rx->seq);
}

int am_reply_make(struct am_token *token, struct am_frame *f, const int32_t *args, const void *data)
{
	struct amudp_ep *ep = token->ep;
	struct am_rx_slot *rx = token->rx;

	f->type = AM_FRAME_REPLY;
	f->slot = token->slot;
	f->seq = token->seq;
	f->tag = token->peer->index >= 0 ? ep->translations[token->peer->index].tag : AM_NONE;
	token->replied = true;
	if (rx->orphan)
		return AM_OK; /* its requester is gone */
	if (am_message_init(&rx->reply, f, args, data, token->peer->frame_max, true) < 0) {
		token->replied = false;
		return AM_ERR_RESOURCE;
	}
	rx->state = AM_RX_REPLIED;
	rx->epoch = ep->epoch;
	am_reply_send(ep, token->peer, rx, token->slot, token->copy, false);
	bytes_count(ep, &rx->reply);
	return AM_OK;
}

void am_reply_auto(struct am_token *token)
{
	struct am_frame f = { .flags = amudp_Short | AM_MESSAGE_AUTO };

	am_reply_make(token, &f, NULL, NULL);
}

static int reply(void *handle, struct am_frame *f, const void *data, int numargs, va_list argptr)
{
	struct am_token *token = am_token_check(handle);
	int32_t args[AMUDP_MAX_SHORT] = { 0 };
	int i, ret = AM_OK;

	if (!handle || numargs < 0 || numargs > AMUDP_MAX_SHORT || (f->nbytes && !data))
		am_return_error(AM_ERR_BAD_ARG, "no token, no data, or more than 16 arguments");
	if (!token)
		am_return_error(AM_ERR_RESOURCE, "not the token of a running handler");
	if (!token->may_reply || token->replied)
		am_return_error(AM_ERR_RESOURCE, "one reply, from a request handler");
	for (i = 0; i < numargs; i++)
		args[i] = va_arg(argptr, int32_t);
	f->numargs = (uint8_t)numargs;
	am_lock_take(token->ep->lock);
	if (token->peer) {
		ret = am_reply_make(token, f, args, data);
	} else {
		token->replied = true;
		am_self_reply(token, f, args, data);
	}
	am_lock_drop(token->ep->lock);
	return ret;
}

int AMUDP_ReplyVA(void *token, handler_t handler, int numargs, va_list argptr)
{
	struct am_frame f = { .flags = amudp_Short, .handler = handler };

	return reply(token, &f, NULL, numargs, argptr);
}

int AMUDP_ReplyIVA(void *token, handler_t handler, void *src, int nbytes, int numargs,
		   va_list argptr)
{
	struct am_frame f = { .flags = amudp_Medium,
			      .handler = handler,
			      .nbytes = (uint32_t)nbytes };

	if (nbytes < 0 || nbytes > AM_MaxMedium())
		am_return_error(AM_ERR_BAD_ARG, "0 to AM_MaxMedium() bytes");
	return reply(token, &f, src, numargs, argptr);
}

int AMUDP_ReplyXferVA(void *token, handler_t handler, void *src, int nbytes, uintptr_t dest_offset,
		      int numargs, va_list argptr)
{
	struct am_frame f = { .flags = amudp_Long | AM_MESSAGE_OFFSET,
			      .handler = handler,
			      .nbytes = (uint32_t)nbytes,
			      .offset = dest_offset };

	if (nbytes < 0 || nbytes > AMUDP_MAX_XFER)
		am_return_error(AM_ERR_BAD_ARG, "0 to AMUDP_MaxXfer() bytes");
	return reply(token, &f, src, numargs, argptr);
}
