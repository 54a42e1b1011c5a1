/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints that change their path: docs/amudp-wire.md, section 8.
 *
 * An endpoint's name never changes; where its packets come from may, when it goes over to
 * another interface or is migrated. It then tells each peer from the new place, again and again
 * until the peer acknowledges, less and less often, and gives up when a request would be given
 * up; from then on only a message that goes to such a peer again takes the news along. Slots are
 * bound to names, so what was under way goes on: requests are sent again to the new place and
 * duplicates are known as such.
 */
#include "am/move.h"

#include "am/queue.h"
#include "base/bits.h"
#include "base/clock.h"

#define AGAIN_NS (5 * BASE_NS_PER_MS)
#define SILENT 4 /* resends without a packet of the peer: another may have taken its place */

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
		am_peer_path_set(peer, from);
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
static void announce_to(struct amudp_ep *ep, struct am_peer *peer)
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

static bool knows(const struct amudp_ep *ep, const struct am_peer *peer)
{
	return peer->move_acked == ep->move_serial || peer->local;
}

/* Returns how many did not know. */
static int announce_all(struct amudp_ep *ep)
{
	struct base_list *node, *next;
	int n = 0;

	base_list_foreach(node, next, &ep->peers) {
		struct am_peer *peer = base_list_entry(node, struct am_peer, node);

		if (knows(ep, peer))
			continue;
		announce_to(ep, peer);
		n++;
	}
	return n;
}

static void announce_begin(struct amudp_ep *ep, uint64_t now)
{
	ep->move_began = now;
	ep->move_due = now + AGAIN_NS;
	ep->move_copy = 0;
}

void am_move_announce(struct amudp_ep *ep)
{
	ep->move_serial++;
	announce_begin(ep, base_now());
	announce_all(ep);
	am_queue_flush(ep);
}

bool am_move_run(struct amudp_ep *ep, uint64_t now)
{
	uint64_t max = ep->options.timeout_max;

	ep->move_due = BASE_NEVER;
	if ((max != BASE_NEVER && now >= ep->move_began + max) || !announce_all(ep))
		return true;
	ep->move_copy = base_min(ep->move_copy + 1, (uint32_t)UINT8_MAX);
	ep->move_due = now + am_rtt_backoff(AGAIN_NS, ep->move_copy, ep->options.backoff);
	return false;
}

void am_move_repeat(struct amudp_ep *ep, struct am_peer *peer)
{
	peer->resends++;
	if (!knows(ep, peer) || (ep->move_serial && peer->resends >= SILENT))
		announce_to(ep, peer);
}

void am_move_renewed(struct amudp_ep *ep, struct am_peer *peer)
{
	if (!ep->move_serial)
		return;
	peer->move_acked = 0;
	announce_begin(ep, base_now());
	announce_to(ep, peer);
}
