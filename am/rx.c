/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagrams coming in: who sent them, and to which file their frames go.
 *
 * Order of the questions: is it ours (magic, version, checksum, or a sender that may do without),
 * is it of our job (nonce), is it meant for this incarnation, do we know the sender and the path,
 * is the sender's incarnation the latest one. Only then are frames looked at. Of a stranger's only
 * the first: it gets at most one refusal, which is shorter than what it sent.
 */
#include "am/rx.h"

#include <errno.h>

#include "am/move.h"
#include "am/queue.h"
#include "am/request.h"
#include "base/bits.h"

#define PACKET_SIZE sizeof(struct am_wire_packet)

struct arrival {
	struct amudp_ep *ep;
	struct am_peer *peer; /* NULL: not known */
	struct am_packet packet;
	const struct sockaddr_in *from;
};

static void stale_tell(struct amudp_ep *ep, const struct arrival *a)
{
	struct am_frame f = { .type = AM_FRAME_RESET, .serial = a->packet.dest_inc };
	uint8_t p[16];

	ep->xstats.StaleIncarnations++;
	am_queue_frame_to(ep, a->from, a->packet.source_inc, p,
			  (uint32_t)am_frame_put_number(p, &f));
}

static void frame_receive(const struct arrival *a, const struct am_frame *f)
{
	bool of_reply = f->flags & AM_FRAME_OF_REPLY;

	switch (f->type) {
	case AM_FRAME_REQUEST:
		am_request_receive(a->ep, a->peer, f, &a->packet, a->from);
		break;
	case AM_FRAME_REPLY:
		am_reply_receive(a->ep, a->peer, f);
		break;
	case AM_FRAME_SACK:
		(of_reply ? am_request_receive_sack : am_reply_receive_sack)(a->ep, a->peer, f);
		break;
	case AM_FRAME_REFUSE:
		(of_reply ? am_request_receive_refusal : am_reply_receive_refusal)(a->ep, a->peer,
										   f);
		break;
	case AM_FRAME_REFUSE_ACK:
		am_reply_receive_refuse_ack(a->ep, a->peer, f);
		break;
	case AM_FRAME_MOVE:
		am_move_receive(a->ep, a->peer, f, a->from);
		break;
	case AM_FRAME_MOVE_ACK:
		am_move_receive_ack(a->ep, a->peer, f);
		break;
	case AM_FRAME_ASK:
		am_request_receive_ask(a->ep, a->peer, f);
		break;
	case AM_FRAME_ABSENT:
		am_reply_receive_absent(a->ep, a->peer, f);
		break;
	default: /* all that a RESET says stands in its packet's header, and has been acted on */
		break;
	}
}

static bool path_holds(const struct am_peer *peer, const struct sockaddr_in *from)
{
	return peer->path.sin_port == from->sin_port &&
	       peer->path.sin_addr.s_addr == from->sin_addr.s_addr;
}

/* From where we do not expect the peer: it may say that it has moved, and nothing else. */
static bool source_allows(const struct arrival *a, unsigned int type)
{
	if (!a->peer)
		return type == AM_FRAME_REQUEST;
	return type == AM_FRAME_MOVE || path_holds(a->peer, a->from);
}

/* True when the packet is of the latest incarnation that we know of, which it may tell us. */
static bool incarnation_holds(struct arrival *a, const uint8_t *p, uint32_t n)
{
	struct am_peer *peer = a->peer;
	struct am_frame f;
	int32_t ahead = (int32_t)(a->packet.source_inc - peer->incarnation);

	if (!ahead)
		return true;
	/* an older one that answers for itself: the clocks of two machines differ */
	if (peer->incarnation && ahead < 0 &&
	    (am_frame_parse(p, n, &f) < 0 || f.type != AM_FRAME_RESET ||
	     f.serial != peer->incarnation)) {
		a->ep->xstats.StaleIncarnations++;
		return false;
	}
	am_peer_renew(peer, a->packet.source_inc);
	return true;
}

static bool unsealed_holds(const struct arrival *a)
{
	/* A peer that never has checksums, and announces a new path from there, has none either */
	bool known = a->peer &&
		     (a->ep->options.checksum == AM_CHOICE_NO || path_holds(a->peer, a->from));

	return am_endpoint_takes_unsealed(a->ep, known ? a->peer : NULL);
}

static bool packet_check(struct arrival *a, const uint8_t *p, uint32_t n)
{
	struct amudp_ep *ep = a->ep;
	int ret = am_packet_parse(p, n, &a->packet);

	if (ret < 0) {
		if (ret == -EBADMSG)
			ep->xstats.BadChecksums++;
		else
			ep->xstats.BadPackets++;
		return false;
	}
	a->peer = am_peer_find(ep, a->packet.addr, a->packet.port);
	if (!(a->packet.flags & AM_PACKET_CRC) && !unsealed_holds(a)) {
		ep->xstats.BadChecksums++;
		return false;
	}
	if (a->packet.nonce != ep->nonce || !a->packet.source_inc ||
	    (a->packet.addr == ep->name.sin_addr.s_addr && a->packet.port == ep->name.sin_port)) {
		ep->xstats.Strangers++;
		return false;
	}
	return true;
}

static void frames_receive(struct arrival *a, const uint8_t *p, uint32_t n)
{
	struct am_frame f;
	int used;

	while (n) {
		used = am_frame_parse(p, n, &f);
		if (used < 0) {
			a->ep->xstats.BadPackets++;
			return;
		}
		if (source_allows(a, f.type))
			frame_receive(a, &f);
		else
			a->ep->xstats.Strangers++;
		/* its name may be forged: a refusal of each frame would flood another host */
		if (!a->peer)
			return;
		p += used;
		n -= (uint32_t)used;
	}
}

void am_rx_datagram(struct amudp_ep *ep, const uint8_t *p, uint32_t n,
		    const struct sockaddr_in *from)
{
	struct arrival a = { .ep = ep, .from = from };

	ep->xstats.PacketsReceived++;
	if (!packet_check(&a, p, n))
		return;
	p += PACKET_SIZE;
	n -= (uint32_t)PACKET_SIZE;
	if (!n || !source_allows(&a, p[0])) {
		ep->xstats.Strangers++;
		return;
	}
	if (a.packet.dest_inc && a.packet.dest_inc != ep->incarnation) {
		if (a.peer)
			stale_tell(ep, &a);
		return;
	}
	if (a.peer) {
		if (!incarnation_holds(&a, p, n))
			return;
		a.peer->resends = 0;
		a.peer->sleeps = a.packet.flags & AM_PACKET_SLEEPS;
		if (path_holds(a.peer, from))
			a.peer->takes_unsealed = a.packet.flags & AM_PACKET_UNSEALED;
		am_peer_window_set(a.peer, a.packet.window);
	}
	frames_receive(&a, p, n);
}
