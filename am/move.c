/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints that change their path: docs/amudp-wire.md, section 8.
 *
 * An endpoint's name never changes; where its packets come from may, when it goes over to
 * another interface or is migrated. It then tells each peer from the new place, again and again
 * until the peer acknowledges. Slots are bound to names, so what was under way goes on: requests
 * are sent again to the new place and duplicates are known as such.
 */
#include "am/move.h"

#include "am/queue.h"
#include "base/clock.h"

#define AGAIN_NS (5 * BASE_NS_PER_MS)

static void places_take(struct am_peer *peer, const struct am_frame *f)
{
	const struct am_wire_place *w = (const void *)f->data;
	uint32_t i, n = f->length / (uint32_t)sizeof(*w);

	for (i = 0; i < n; i++) {
		peer->places[i] =
			(struct sockaddr_in){ .sin_family = AF_INET, .sin_port = w[i].port };
		peer->places[i].sin_addr.s_addr = w[i].addr;
	}
	peer->num_places = (int)n;
}

void am_move_receive(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f,
		     const struct sockaddr_in *from)
{
	struct am_frame ack = { .type = AM_FRAME_MOVE_ACK, .serial = f->serial };
	int32_t ahead = (int32_t)(f->serial - peer->move_serial);
	uint8_t p[16];

	if (ahead < 0)
		return;
	if (ahead > 0) {
		places_take(peer, f);
		peer->move_serial = f->serial;
		peer->path = *from;
		peer->path.sin_family = AF_INET;
		ep->next_deadline = 0; /* what went to the old place may be lost */
	}
	am_queue_frame(ep, peer, p, (uint32_t)am_frame_put_number(p, &ack));
}

void am_move_receive_ack(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f)
{
	if (f->serial == ep->move_serial)
		peer->move_acked = f->serial;
}

/* To where the peer is, and to wherever it may have gone at the same moment. */
static void tell(struct amudp_ep *ep, struct am_peer *peer)
{
	struct am_frame f = { .type = AM_FRAME_MOVE, .serial = ep->move_serial };
	struct sockaddr_in own[AM_MAX_PATHS];
	uint8_t p[16 + sizeof(struct am_wire_place) * AM_MAX_PATHS];
	uint32_t n;
	int i;

	for (i = 0; i < ep->num_nics; i++)
		own[i] = ep->nics[i]->name;
	n = (uint32_t)am_frame_put_move(p, &f, own, ep->num_nics);
	am_queue_frame_to(ep, &peer->path, peer->incarnation, p, n);
	for (i = 0; i < peer->num_places; i++)
		am_queue_frame_to(ep, &peer->places[i], peer->incarnation, p, n);
}

static void tell_all(struct amudp_ep *ep)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &ep->peers) {
		struct am_peer *peer = base_list_entry(node, struct am_peer, node);

		if (peer->move_acked != ep->move_serial && !peer->local)
			tell(ep, peer);
	}
}

static bool all_know(const struct amudp_ep *ep)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &ep->peers) {
		const struct am_peer *peer = base_list_entry(node, struct am_peer, node);

		if (peer->move_acked != ep->move_serial && !peer->local)
			return false;
	}
	return true;
}

void am_move_announce(struct amudp_ep *ep)
{
	ep->move_serial++;
	ep->move_due = base_now() + AGAIN_NS;
	tell_all(ep);
	am_queue_flush(ep);
}

bool am_move_run(struct amudp_ep *ep, uint64_t now)
{
	if (all_know(ep)) {
		ep->move_due = BASE_NEVER;
		return true;
	}
	ep->move_due = now + AGAIN_NS;
	tell_all(ep);
	return false;
}
