/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The forty bytes of private data with which each end begins, and the block behind them: what each
 * end has room for, and may be asked.
 */
#include "stream/protocol/protocol.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "stream/protocol/extension.h"

/* Our private data into @pd: its length */
size_t stream_hello_put(const struct stream *s, uint8_t pd[STREAM_HELLO_MAX])
{
	const struct stream_state *st = s->state;
	struct stream_ext ext = { .features = s->offered,
				  .window = s->ring,
				  .ird = STREAM_ONESIDED_DEPTH,
				  .ord = STREAM_ONESIDED_DEPTH };
	struct rs_conn_data cd = {
		.version = RS_VERSION,
		.flags = RS_CONN_IOMAP,
		.credits = htobe16(s->credits),
		.target_iomap_size = (uint8_t)s->slots,
		.target_sgl = { htobe64(st->sgl_to), htobe32(st->sgl_stag),
				htobe32(RS_SGL_ENTRIES) },
		.data_buf = { htobe64(st->ring_to), htobe32(st->ring_stag),
			      htobe32(stream_half(s)) },
	};

	memcpy(pd, &cd, sizeof(cd));
	return sizeof(cd) + (s->offered ? stream_ext_put(pd + sizeof(cd), &ext) : 0);
}

static bool buffer_fits(uint64_t to, uint64_t len)
{
	return len && to + len >= to;
}

/*
 * Credits that DATA leaves to messages which are not counted. Seven is what they can come to;
 * fewer receives than that, no peer can have posted in earnest.
 */
static uint16_t reserve_of(uint16_t credits)
{
	return credits >= 32 ? 16 : credits >= 16 ? 8 : 0;
}

/* More than 128 are told of in units of 256 */
static uint32_t slots_of(const struct rs_conn_data *cd)
{
	uint32_t n = cd->flags & RS_CONN_IOMAP ? cd->target_iomap_size : 0;

	return n > 128 ? (n & 0x7F) << 8 : n;
}

/* What both ends offer is in force; the order of two counts on what it needs */
static int features_take(struct stream *s, const struct stream_ext *ext)
{
	struct stream_state *st = s->state;
	uint32_t features;

	if (ext->features & STREAM_FEATURE_INLINE && !ext->window)
		return -EPROTO;
	features = ext->features & s->offered;
	if (!(features & STREAM_FEATURE_INLINE))
		features &= ~(uint32_t)(STREAM_FEATURE_MESSAGES | STREAM_FEATURE_URGENT |
					STREAM_FEATURE_HELD);
	base_store(&st->features, features);
	st->peer.ird = stream_has(s, STREAM_FEATURE_ONESIDED)
			       ? base_min(ext->ird, STREAM_ONESIDED_DEPTH)
			       : 0;
	st->peer.ord = ext->ord;
	st->first_window = ext->window;
	if (!stream_has(s, STREAM_FEATURE_INLINE))
		return 0;
	st->rx.window = ext->window;
	st->tx.granted = s->ring;
	/* The first words are ours; and a peer that is to know what is held is told by a window */
	if (s->initiator || stream_has(s, STREAM_FEATURE_HELD))
		__atomic_or_fetch(&st->tx.due, STREAM_DUE_GRANT, __ATOMIC_ACQ_REL);
	return 0;
}

/* The one place where the peer's private data is judged */
int stream_hello_take(struct stream *s, const uint8_t *pd, size_t len)
{
	struct stream_state *st = s->state;
	struct stream_ext ext;
	struct rs_conn_data cd;
	uint32_t entries, slots, room;
	int err;

	if (len < sizeof(cd))
		return -EPROTO;
	memcpy(&cd, pd, sizeof(cd));
	err = stream_ext_get(pd + sizeof(cd), len - sizeof(cd), &ext);
	if (err)
		return err;
	entries = be32toh(cd.target_sgl.length);
	slots = slots_of(&cd);
	room = be32toh(cd.data_buf.length);
	if (cd.version != RS_VERSION || cd.flags & RS_CONN_NET)
		return -EPROTONOSUPPORT;
	if (entries < RS_SGL_ENTRIES || !buffer_fits(be64toh(cd.data_buf.addr), room) ||
	    !buffer_fits(be64toh(cd.target_sgl.addr),
			 entries * (uint64_t)sizeof(struct rs_sge) +
				 slots * (uint64_t)sizeof(struct rs_iomap)))
		return -EPROTO;
	st->peer = (struct stream_peer){
		.sgl_to = be64toh(cd.target_sgl.addr),
		.sgl_stag = be32toh(cd.target_sgl.key),
		.sgl_entries = entries,
		.credits = be16toh(cd.credits),
		.reserve = reserve_of(be16toh(cd.credits)),
		.slots = (uint16_t)base_min(slots, STREAM_SLOTS),
	};
	st->rx.entry[0] =
		(struct stream_entry){ be64toh(cd.data_buf.addr), be32toh(cd.data_buf.key), room };
	st->rx.limit = be16toh(cd.credits);
	st->rx.entries = 1;
	return features_take(s, &ext);
}
