/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an endpoint does when it is polled: takes in what has come, answers it, and does what is
 * due. It sends at its end, so that the answers of one poll share packets and system calls.
 */
#include "am/progress.h"

#include "am/bulk.h"
#include "am/gather.h"
#include "am/live.h"
#include "am/move.h"
#include "am/path.h"
#include "am/queue.h"
#include "am/rx.h"
#include "am/timer.h"
#include "base/bits.h"
#include "base/clock.h"

#define BATCH_BYTES (256u << 10) /* of a receive, to be read again while the cache has them */
#define CLOCK_EVERY 2		 /* empty polls */
#define SLEEP_MEMORY 1000	 /* polls after which a sleep no longer counts */

static struct am_batch *batch_get(struct am_nic *nic)
{
	struct am_batch *batch = nic->free;

	if (batch)
		nic->free = batch->next;
	else if (nic->ops->batch_create(nic, &batch) < 0)
		return NULL;
	return batch;
}

static void batch_put(struct am_nic *nic, struct am_batch *batch)
{
	batch->next = nic->free;
	nic->free = batch;
}

static void packet_take(struct amudp_ep *ep, uint8_t *p, uint32_t n, const struct sockaddr_in *from)
{
	if (ep->fault.on)
		am_fault_receive(ep, p, n, from, ep->last_poll);
	else
		am_rx_datagram(ep, p, n, from);
}

static void arrival_take(struct amudp_ep *ep, const struct am_arrival *a)
{
	uint8_t *p = a->data;
	uint32_t n, left = a->length;

	for (; left; p += n, left -= n) {
		n = (uint32_t)am_packet_length(p, left);
		packet_take(ep, p, n, &a->from);
	}
}

/* Asking for many datagrams costs when one comes at a time: ask for more only in a flood. */
static void receive_adapt(struct amudp_ep *ep, int got, uint64_t bytes)
{
	if (bytes > BATCH_BYTES)
		ep->receive_max = base_max(ep->receive_max / 2, 1);
	if (got < ep->receive_max) {
		ep->receive_full = 0;
		if (got <= 1)
			ep->receive_max = 1;
		return;
	}
	if (++ep->receive_full >= 2 && bytes <= BATCH_BYTES / 2)
		ep->receive_max = base_min(ep->receive_max * 2, AM_NIC_BATCH);
}

static int nic_receive(struct amudp_ep *ep, struct am_nic *nic)
{
	struct am_batch *batch = batch_get(nic);
	uint64_t bytes = 0;
	int i, n;

	if (!batch)
		return 0;
	n = nic->ops->receive(nic, batch, ep->receive_max);
	if (n > 0)
		ep->last_poll = base_now();
	for (i = 0; i < n; i++) {
		bytes += batch->arrivals[i].length;
		arrival_take(ep, &batch->arrivals[i]);
	}
	receive_adapt(ep, n, bytes);
	batch_put(nic, batch);
	return n;
}

static int receive_all(struct amudp_ep *ep)
{
	int i, n = 0;

	ep->epoch++;
	for (i = 0; i < ep->num_nics; i++)
		n += nic_receive(ep, ep->nics[i]);
	return n;
}

/* All that has its time, and what the arrivals of this poll left to be said. */
static void due_do(struct amudp_ep *ep, uint64_t now)
{
	if (ep->sleeps && ep->epoch - ep->slept > SLEEP_MEMORY)
		ep->sleeps = false;
	if (ep->fault.held_count)
		am_fault_release(ep, now);
	if (!base_list_empty(&ep->gathers))
		am_gather_run(ep, now);
	if (!base_list_empty(&ep->bulks)) {
		am_timer_run_bulks(ep, now);
		am_bulk_pump(ep, now);
	}
	if (now >= ep->next_deadline)
		am_timer_run(ep, now);
	if (now >= ep->path_due)
		am_path_check(ep, now);
	if (now >= ep->move_due && am_move_run(ep, now))
		am_path_left(ep);
	if (ep->queue.count)
		am_queue_flush(ep);
	am_live_update(ep, now);
}

int am_endpoint_poll(struct amudp_ep *ep)
{
	uint64_t before = ep->messages, began = ep->last_poll;

	if (ep->held)
		am_queue_flush(ep);
	/* reading the clock costs as much as an empty poll can: the last reading will do */
	if (receive_all(ep) == 0) {
		ep->drained = began;
		if (ep->epoch % CLOCK_EVERY && !ep->queue.count)
			return 0;
		ep->last_poll = base_now();
	}
	due_do(ep, ep->last_poll);
	return (int)(ep->messages - before);
}

uint64_t am_endpoint_deadline(struct amudp_ep *ep)
{
	uint64_t due = base_min(ep->next_deadline, am_fault_deadline(&ep->fault));
	struct base_list *node, *next;

	base_list_foreach(node, next, &ep->bulks)
		due = base_min(due, am_bulk_deadline(base_list_entry(node, struct am_bulk, node)));
	due = base_min(due, ep->move_due);
	return base_min(due, ep->path_due);
}
