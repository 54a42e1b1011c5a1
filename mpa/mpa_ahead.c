/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * FPDUs before their turn (RFC 5044 section 6 and appendix A).
 *
 * Where segments are lost a receiver may place what came behind them, if it knows where an FPDU
 * begins: a segment begins with one, or a marker tells. That it is one the CRC says. When its turn
 * comes, its header counts and not its payload, which is in its place.
 */
#include "mpa/mpa_ahead.h"

#include <errno.h>

#include "base/bits.h"
#include "mpa/mpa_marker.h"

#define FPDUPTR_MASK 0xFFFC

int mpa_ahead_look(const struct mpa_conn *c, __u16 phase, __u8 *p, size_t n, struct mpa_fpdu *out)
{
	struct mpa_conn ahead = {
		.role = c->role,
		.state = MPA_OPEN,
		.flags = c->flags,
		.rx_phase = phase,
		.rx_fpdus = 1, /* it is not the first one */
	};

	if (!(c->flags & MPA_F_CRC))
		return -EINVAL;
	return mpa_rx_fpdu(&ahead, p, n, out);
}

void mpa_ahead_take(struct mpa_conn *c, __u8 *head, __u32 used, struct mpa_fpdu *out)
{
	const bool marked = c->flags & MPA_F_RX_MARKERS;
	const __u32 gap = marked ? mpa_marker_gap(c->rx_phase) : MPA_MARKER_EVERY;
	const __u32 start = mpa_marker_start(gap);

	out->used = used;
	out->len = base_get_be16(head + start);
	out->ulpdu = marked ? mpa_marker_squeeze(head, gap, DDP_TAGGED_LEN) : head + MPA_LEN_FIELD;
	/* Pairs with mpa_conn_may_send() */
	if (c->state == MPA_GATED)
		__atomic_store_n(&c->state, MPA_OPEN, __ATOMIC_RELEASE);
	c->rx_fpdus++;
	c->rx_octets += used;
	if (marked)
		c->rx_phase = (c->rx_phase + used) % MPA_MARKER_EVERY;
}

/* A length behind a marker at the same FPDU's begin stands 4 octets behind a marker position */
__u32 mpa_ahead_back(const __u8 *marker)
{
	__u32 back = base_get_be16(marker + offsetof(struct mpa_marker, fpduptr)) & FPDUPTR_MASK;

	return back % MPA_MARKER_EVERY == MPA_MARKER_ROOM ? back + MPA_MARKER_LEN : back;
}
