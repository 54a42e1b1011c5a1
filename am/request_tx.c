/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests going out, from the program's call to the first packet: docs/amudp-wire.md, section 5.
 *
 * A request takes a free slot of its peer, and the room it may need at the peer, before
 * anything is sent; when there is none, the call polls until an answer frees one.
 */
#include "am/bulk.h"
#include "am/bundle.h"
#include "am/progress.h"
#include "am/queue.h"
#include "am/self.h"
#include "am/slot.h"
#include "am/timer.h"
#include "am/window.h"
#include "base/bits.h"
#include "base/clock.h"

#define COPY_MAX (256u * 1024)		   /* beyond, the call waits rather than copies */
#define POLL_EVERY_NS (5 * BASE_NS_PER_US) /* a request polls first, but not before that again */

static void total_bytes_count(uint64_t *total, uint64_t *data, const struct am_message *m)
{
	total[m->category] += m->head_len + (uint64_t)m->length;
	data[m->category] += m->length;
}

static bool has_room(const struct amudp_ep *ep, const struct am_peer *peer, uint32_t cost)
{
	if (base_list_empty(&peer->free))
		return false;
	if (ep->options.send_depth > 0 && ep->outstanding >= ep->options.send_depth)
		return false;
	return !peer->inflight || peer->inflight + cost <= peer->window;
}

static void tx_slot_begin(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot,
			  uint32_t cost, uint64_t now)
{
	slot->seq++;
	slot->state = AM_TX_WAITING;
	slot->copy = 0;
	slot->asked = 0;
	slot->drawn = 0;
	slot->spent = 0;
	slot->received = false;
	slot->first_sent = now;
	slot->last_sent = 0;
	slot->cost = cost;
	peer->inflight += cost;
	ep->outstanding++;
	base_list_remove(&peer->active);
	base_list_push_back(&ep->active, &peer->active);
}

static int slot_acquire(struct amudp_ep *ep, struct am_peer *peer, uint32_t cost, bool async,
			struct am_tx_slot **out)
{
	uint64_t spin = 0;

	if (am_peer_tx_ready(peer) < 0)
		return AM_ERR_RESOURCE;
	while (!has_room(ep, peer, cost)) {
		if (async && am_endpoint_poll(ep) == 0)
			return AM_ERR_IN_USE;
		if (!async)
			am_bundle_wait(ep->bundle, &spin);
	}
	*out = base_list_entry(base_list_pop_front(&peer->free), struct am_tx_slot, node);
	return AM_OK;
}

/* The data are the caller's own: they must be out of use when the call returns. */
static void wait_until_answered(struct amudp_ep *ep, const struct am_tx_slot *slot)
{
	uint16_t seq = slot->seq;
	uint64_t spin = 0;

	while (slot->state == AM_TX_WAITING && slot->seq == seq)
		am_bundle_wait(ep->bundle, &spin);
}

static void flush_unless_held(struct amudp_ep *ep)
{
	if (++ep->held >= ep->options.batch)
		am_queue_flush(ep);
}

static int request_remote(struct amudp_ep *ep, amudp_node_t dest, struct am_frame *f,
			  const int32_t *args, const void *data, bool async)
{
	struct am_translation *t = &ep->translations[dest];
	struct am_peer *peer = t->peer;
	uint32_t length = (f->flags & AM_MESSAGE_GET) ? 0 : f->nbytes;
	/* fragments take their room one by one */
	uint32_t cost = length + AM_HEAD_MAX <= peer->frame_max ? am_window_cost(length) : 0;
	bool copy = length <= COPY_MAX;
	uint64_t now = base_now();
	struct am_tx_slot *slot;
	int ret;

	/* a poll would send what is held */
	if (!ep->held && now - ep->last_poll > POLL_EVERY_NS)
		am_bundle_poll(ep->bundle);
	ret = slot_acquire(ep, peer, cost, async, &slot);
	if (ret != AM_OK)
		return ret;
	f->slot = slot->index;
	f->seq = (uint16_t)(slot->seq + 1);
	f->tag = t->tag;
	if (am_message_init(&slot->message, f, args, data, peer->frame_max, copy) < 0) {
		base_list_push_front(&peer->free, &slot->node);
		return AM_ERR_RESOURCE;
	}
	slot->dest = dest;
	tx_slot_begin(ep, peer, slot, cost, now);
	am_slot_send(ep, peer, slot, now);
	ep->stats.RequestsSent[slot->message.category]++;
	total_bytes_count(ep->stats.RequestTotalBytesSent, ep->stats.RequestDataBytesSent,
			  &slot->message);
	am_retransmit_earn(&ep->retransmit);
	am_timer_set(ep, peer, slot, now);
	if (slot->bulk)
		am_bulk_pump(ep, now);
	flush_unless_held(ep);
	if (!copy && !async)
		wait_until_answered(ep, slot);
	return AM_OK;
}

static int request_check(const struct amudp_ep *ep, amudp_node_t dest, handler_t handler,
			 const struct am_frame *f, const void *data, int numargs)
{
	if (!am_init_count)
		am_return_error(AM_ERR_NOT_INIT, "AM_Init comes first");
	if (!am_endpoint_valid(ep))
		am_return_error(AM_ERR_BAD_ARG, "no endpoint");
	if (!ep->depth)
		am_return_error(AM_ERR_NOT_INIT, "AM_SetExpectedResources comes first");
	if (numargs < 0 || numargs > AMUDP_MAX_SHORT)
		am_return_error(AM_ERR_BAD_ARG, "0 to 16 arguments");
	if (dest >= (amudp_node_t)ep->num_translations || !ep->translations[dest].peer)
		am_return_error(AM_ERR_BAD_ARG, "the translation is not in use");
	if (f->nbytes && !data && !(f->flags & AM_MESSAGE_GET))
		am_return_error(AM_ERR_BAD_ARG, "no data");
	return AM_OK;
}

static int request(struct amudp_ep *ep, amudp_node_t dest, struct am_frame *f, const void *data,
		   bool async, int numargs, va_list argptr)
{
	int32_t args[AMUDP_MAX_SHORT] = { 0 };
	int i, ret = request_check(ep, dest, f->handler, f, data, numargs);

	if (ret != AM_OK)
		return ret;
	for (i = 0; i < numargs; i++)
		args[i] = va_arg(argptr, int32_t);
	f->type = AM_FRAME_REQUEST;
	f->numargs = (uint8_t)numargs;
	am_lock_take(ep->lock);
	if (am_self_is(ep, ep->translations[dest].peer))
		am_self_request(ep, dest, f, args, data);
	else
		ret = request_remote(ep, dest, f, args, data, async);
	am_lock_drop(ep->lock);
	return ret;
}

int AMUDP_RequestVA(ep_t ep, amudp_node_t dest, handler_t handler, int numargs, va_list argptr)
{
	struct am_frame f = { .flags = amudp_Short, .handler = handler };

	return request(ep, dest, &f, NULL, false, numargs, argptr);
}

int AMUDP_RequestIVA(ep_t ep, amudp_node_t dest, handler_t handler, void *src, int nbytes,
		     int numargs, va_list argptr)
{
	struct am_frame f = { .flags = amudp_Medium,
			      .handler = handler,
			      .nbytes = (uint32_t)nbytes };

	if (nbytes < 0 || nbytes > AM_MaxMedium())
		am_return_error(AM_ERR_BAD_ARG, "0 to AM_MaxMedium() bytes");
	return request(ep, dest, &f, src, false, numargs, argptr);
}

int AMUDP_RequestXferVA(ep_t ep, amudp_node_t dest, handler_t handler, void *src, int nbytes,
			uintptr_t dest_offset, int async, int numargs, va_list argptr)
{
	struct am_frame f = { .flags = amudp_Long | AM_MESSAGE_OFFSET,
			      .handler = handler,
			      .nbytes = (uint32_t)nbytes,
			      .offset = dest_offset };

	if (nbytes < 0 || nbytes > AMUDP_MAX_XFER)
		am_return_error(AM_ERR_BAD_ARG, "0 to AMUDP_MaxXfer() bytes");
	return request(ep, dest, &f, src, async, numargs, argptr);
}

int AMUDP_GetXferVA(ep_t ep, amudp_node_t dest, uintptr_t source_offset, handler_t handler,
		    uintptr_t dest_offset, int nbytes, int async, int numargs, va_list argptr)
{
	struct am_frame f = { .flags = amudp_Long | AM_MESSAGE_OFFSET | AM_MESSAGE_GET,
			      .handler = handler,
			      .nbytes = (uint32_t)nbytes,
			      .offset = dest_offset,
			      .source_offset = source_offset };

	if (nbytes < 0 || nbytes > AMUDP_MAX_XFER)
		am_return_error(AM_ERR_BAD_ARG, "0 to AMUDP_MaxXfer() bytes");
	if (am_endpoint_valid(ep) &&
	    (dest_offset > ep->segment_len || (uintptr_t)nbytes > ep->segment_len - dest_offset))
		am_return_error(AM_ERR_BAD_ARG, "the destination is not in the segment");
	return request(ep, dest, &f, NULL, async, numargs, argptr);
}
