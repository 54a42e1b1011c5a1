/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests coming in: docs/amudp-wire.md, section 5.
 *
 * Per peer and slot there is one sequence number: a request with a later one is new and runs, the
 * same one is a duplicate and draws the saved answer, an earlier one is a late copy and is
 * dropped. A refusal is an answer like a reply and is saved like one, so that a duplicate cannot
 * run after its message was returned.
 */
#include <stdlib.h>

#include "am/bulk.h"
#include "am/gather.h"
#include "am/queue.h"
#include "am/request.h"
#include "base/bits.h"
#include "base/clock.h"

static void refusal_send_to(struct amudp_ep *ep, const struct am_frame *f,
			    const struct sockaddr_in *to, uint32_t incarnation, int reason)
{
	struct am_frame refuse = {
		.type = AM_FRAME_REFUSE, .slot = f->slot, .seq = f->seq, .reason = (uint8_t)reason
	};
	uint8_t p[16];

	am_queue_frame_to(ep, to, incarnation, p, (uint32_t)am_frame_put_refuse(p, &refuse));
}

static void refusal_send(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f,
			 int reason)
{
	refusal_send_to(ep, f, &peer->path, peer->incarnation, reason);
}

static void request_refuse(struct amudp_ep *ep, struct am_peer *peer, struct am_rx_slot *rx,
			   const struct am_frame *f, int reason)
{
	am_gather_destroy(rx->gather);
	rx->gather = NULL;
	rx->state = AM_RX_REFUSED;
	rx->reason = (uint8_t)reason;
	refusal_send(ep, peer, f, reason);
}

/*
 * The saved answer again, drawn by this copy; once per poll is enough, however many copies one
 * poll brings.
 */
static void answer_again(struct amudp_ep *ep, struct am_peer *peer, struct am_rx_slot *rx,
			 const struct am_frame *f, uint8_t copy)
{
	if (rx->epoch == ep->epoch) {
		ep->stats.RepliesSquashed[rx->reply.category]++;
		return;
	}
	rx->epoch = ep->epoch;
	switch (rx->state) {
	case AM_RX_REPLIED:
		/* the reply may wait for room that the request's fragments take until then */
		if (rx->bulk)
			am_gather_sack_all(ep, peer, f, false);
		am_reply_send(ep, peer, rx, f->slot, copy, true);
		break;
	case AM_RX_REFUSED:
		refusal_send(ep, peer, f, rx->reason);
		break;
	case AM_RX_RUNNING:
		am_gather_sack_all(ep, peer, f, false);
		break;
	default:
		break;
	}
}

static void rx_slot_begin(struct amudp_ep *ep, struct am_rx_slot *rx, const struct am_frame *f)
{
	am_bulk_destroy(rx->bulk);
	am_gather_destroy(rx->gather);
	rx->bulk = NULL;
	rx->gather = NULL;
	am_queue_retire(ep, &rx->reply);
	rx->seq = f->seq;
	rx->copy = f->copy;
	rx->reply_refused = false;
	rx->epoch = ep->epoch;
}

static void token_init(struct am_token *token, struct amudp_ep *ep, struct am_peer *peer,
		       struct am_rx_slot *rx, const struct am_frame *f)
{
	*token = (struct am_token){ .ep = ep,
				    .peer = peer,
				    .rx = rx,
				    .is_request = true,
				    .may_reply = true,
				    .copy = f->copy,
				    .slot = f->slot,
				    .seq = f->seq,
				    .tag = f->tag,
				    .source = peer->name,
				    .source_index = peer->index };
}

/* The library's own handler: our segment's bytes are the reply. */
static void get_serve(struct am_token *token, const struct am_frame *f, const struct am_args *args)
{
	struct am_frame reply = { .flags = amudp_Long | AM_MESSAGE_OFFSET,
				  .handler = f->handler,
				  .numargs = f->numargs,
				  .nbytes = f->nbytes,
				  .offset = f->offset };

	am_reply_make(token, &reply, args->v, am_segment_at(token->ep, f->source_offset));
}

static void slot_run(struct amudp_ep *ep, struct am_peer *peer, struct am_rx_slot *rx,
		     const struct am_frame *f, uint8_t *buffer)
{
	struct am_token token;
	struct am_args args;

	token_init(&token, ep, peer, rx, f);
	am_args_get(&args, f);
	rx->state = AM_RX_RUNNING;
	ep->messages++;
	if (f->flags & AM_MESSAGE_GET)
		get_serve(&token, f, &args);
	else
		am_handler_run(&token, f, &args, buffer);
	if (rx->orphan) {
		am_queue_retire(ep, &rx->reply);
		memset(rx, 0, sizeof(*rx));
		return;
	}
	if (!token.replied)
		am_reply_auto(&token);
}

static void run_whole(struct amudp_ep *ep, struct am_peer *peer, struct am_rx_slot *rx,
		      const struct am_frame *f)
{
	uint8_t *buffer = (uint8_t *)f->data;

	if (am_frame_category(f) == amudp_Long && !(f->flags & AM_MESSAGE_GET)) {
		buffer = am_segment_at(ep, f->offset);
		if (f->nbytes)
			memcpy(buffer, f->data, f->nbytes);
	}
	slot_run(ep, peer, rx, f, buffer);
}

static void run_gathered(struct amudp_ep *ep, struct am_peer *peer, struct am_rx_slot *rx,
			 const struct am_frame *f)
{
	struct am_gather *g = rx->gather;
	uint8_t *buffer = g->buffer ? g->buffer : am_segment_at(ep, f->offset);

	/* it stays ours through the handler, which must not find it gone */
	rx->gather = NULL;
	base_list_remove(&g->node);
	am_gather_sack_all(ep, peer, f, false);
	slot_run(ep, peer, rx, f, buffer);
	am_gather_destroy(g);
}

static void gather(struct amudp_ep *ep, struct am_peer *peer, struct am_rx_slot *rx,
		   const struct am_frame *f)
{
	int ret;

	if (!rx->gather && am_gather_create(&rx->gather, peer, f, false) < 0)
		return; /* without memory now: as if it had been lost */
	rx->state = AM_RX_GATHERING;
	ret = am_gather_add(rx->gather, f);
	if (ret < 0)
		request_refuse(ep, peer, rx, f, EBADARGS);
	else if (ret > 0)
		run_gathered(ep, peer, rx, f);
}

static void slot_receive(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f)
{
	struct am_rx_slot *rx = &peer->rx[f->slot];
	int16_t ahead = (int16_t)(f->seq - rx->seq);
	int reason;

	if (rx->state != AM_RX_FRESH && ahead < 0) {
		ep->stats.OutOfOrderRequests++;
		return;
	}
	if (rx->state != AM_RX_FRESH && ahead == 0) {
		if (rx->state != AM_RX_GATHERING) {
			answer_again(ep, peer, rx, f, f->copy);
			return;
		}
	} else if (rx->state == AM_RX_RUNNING) {
		return; /* its handler runs yet, so the requester cannot have moved on */
	} else {
		rx_slot_begin(ep, rx, f);
	}
	reason = am_frame_refusal(ep, f);
	if (reason)
		request_refuse(ep, peer, rx, f, reason);
	else if (f->fragment_size)
		gather(ep, peer, rx, f);
	else
		run_whole(ep, peer, rx, f);
}

void am_request_receive(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f,
			const struct am_packet *packet, const struct sockaddr_in *from)
{
	ep->stats.RequestsReceived[am_frame_category(f)]++;
	if (!peer)
		refusal_send_to(ep, f, from, packet->source_inc, EBADENDPOINT);
	else if (!ep->depth || f->slot >= ep->depth)
		refusal_send(ep, peer, f, EUNREACHABLE);
	else if (am_peer_rx_ready(peer) == 0)
		slot_receive(ep, peer, f);
}

static void absent_tell(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *ask)
{
	struct am_frame f = {
		.type = AM_FRAME_ABSENT, .flags = ask->flags, .slot = ask->slot, .seq = ask->seq
	};
	uint8_t p[8];

	am_queue_frame(ep, peer, p, (uint32_t)am_frame_put_bare(p, &f));
}

void am_request_receive_ask(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f)
{
	struct am_rx_slot *rx = peer->rx && f->slot < ep->depth ? &peer->rx[f->slot] : NULL;
	int16_t ahead = rx && rx->state != AM_RX_FRESH ? (int16_t)(f->seq - rx->seq) : 1;

	if (ahead > 0) {
		absent_tell(ep, peer, f);
		return;
	}
	if (ahead < 0 || rx->state == AM_RX_GATHERING || rx->state == AM_RX_RUNNING)
		return;
	/* it may have been asked before the answer was there, and so may those behind it */
	if (ep->epoch - rx->epoch > 1)
		answer_again(ep, peer, rx, f, AM_COPY_ASKED);
	else
		rx->epoch = ep->epoch;
}

/* The slot whose reply a frame of the requester's speaks of, or NULL. */
static struct am_rx_slot *replied_slot(struct amudp_ep *ep, struct am_peer *peer,
				       const struct am_frame *f)
{
	struct am_rx_slot *rx;

	if (!peer->rx || f->slot >= ep->depth)
		return NULL;
	rx = &peer->rx[f->slot];
	return rx->state == AM_RX_REPLIED && rx->seq == f->seq ? rx : NULL;
}

void am_request_receive_sack(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f)
{
	struct am_rx_slot *rx = replied_slot(ep, peer, f);

	if (!rx || !rx->bulk || !am_bulk_sack(rx->bulk, f, ep->last_poll))
		return;
	am_bulk_destroy(rx->bulk);
	rx->bulk = NULL;
	am_queue_retire(ep, &rx->reply);
}

static void refuse_ack(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f)
{
	struct am_frame ack = { .type = AM_FRAME_REFUSE_ACK,
				.flags = AM_FRAME_OF_REPLY,
				.slot = f->slot,
				.seq = f->seq,
				.reason = f->reason };
	uint8_t p[16];

	am_queue_frame(ep, peer, p, (uint32_t)am_frame_put_refuse(p, &ack));
}

void am_request_receive_refusal(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f)
{
	struct am_rx_slot *rx = replied_slot(ep, peer, f);
	struct am_token token;
	int opcode;

	refuse_ack(ep, peer, f);
	if (!rx || rx->reply_refused)
		return;
	rx->reply_refused = true;
	opcode = rx->reply.opcode;
	am_bulk_destroy(rx->bulk);
	rx->bulk = NULL;
	token_init(&token, ep, peer, NULL, f);
	token.may_reply = false;
	token.tag = peer->index >= 0 ? ep->translations[peer->index].tag : AM_NONE;
	am_handler_return(&token, f->reason, opcode);
}
