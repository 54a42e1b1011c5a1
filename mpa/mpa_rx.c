/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * FPDUs on their way in (RFC 5044 sections 4 to 6 and 8).
 *
 * An FPDU is looked at when the whole of it is in the caller's buffer: nothing is altered before,
 * so the same octets may be offered again with more behind them, cut in any way. The order is
 * length, CRC over the octets as they came, markers, and only then the ULPDU. A length field that
 * was damaged on its way shows as a CRC error, once as many octets have come as it asks for.
 *
 * Any length is taken: above MPA_MULPDU_MAX (which binds senders, and not all keep to it) and down
 * to an empty ULPDU, which is handed up as it is; what is too short for a header is for DDP to
 * say. The first good FPDU opens a responder's gate (section 7.1.2, rule 4).
 */
#include "mpa/mpa.h"

#include <errno.h>

#include "base/bits.h"
#include "base/crc32c.h"
#include "mpa/mpa_marker.h"

#define NO_MARKER (~(__u32)0) /* a gap that no FPDU bridges */

/* Pairs with mpa_conn_may_send(), which the sending direction may call meanwhile. */
static void conn_set_state(struct mpa_conn *c, enum mpa_state state)
{
	__atomic_store_n(&c->state, state, __ATOMIC_RELEASE);
}

static int rx_fail(struct mpa_conn *c, enum iwarp_fault fault)
{
	c->fault = fault;
	conn_set_state(c, MPA_FAILED);
	return -EPROTO;
}

/* Octets that an FPDU takes in the stream */
static inline __u32 fpdu_octets(__u32 gap, __u32 ulpdu, __u32 *markers)
{
	const __u32 body = (MPA_LEN_FIELD + ulpdu + 3) & ~3u;

	*markers = mpa_marker_count(gap, body);
	return body + *markers * MPA_MARKER_LEN + MPA_CRC_LEN;
}

static inline bool crc_good(const __u8 *p, __u32 n)
{
	__u32 crc = base_crc32c(BASE_CRC32C_INIT, p, n - MPA_CRC_LEN);

	return base_crc32c_final(crc) == base_get_le32(p + n - MPA_CRC_LEN);
}

/*
 * The siw driver, when it is initiator and cannot agree, ends start-up by a Terminate whose CRC
 * field is 0 although CRC was agreed. It is worth more than "CRC error", and nothing else can
 * begin a connection like this.
 */
static bool bare_terminate(const struct mpa_conn *c, const __u8 *p, __u32 n)
{
	return c->role == MPA_RESPONDER && !c->rx_fpdus && !base_get_le32(p + n - MPA_CRC_LEN) &&
	       base_get_be16(p) >= DDP_UNTAGGED_LEN && p[MPA_LEN_FIELD] == (DDP_L | DDP_DV1) &&
	       p[MPA_LEN_FIELD + 1] == (RDMAP_RV1 | RDMAP_TERMINATE);
}

static int fpdu_judge(struct mpa_conn *c, const __u8 *p, __u32 gap, __u32 markers, __u32 total)
{
	if ((c->flags & MPA_F_CRC) && !crc_good(p, total) && !bare_terminate(c, p, total))
		return rx_fail(c, MPA_E_CRC);
	if (markers && !mpa_marker_check(p, gap, markers))
		return rx_fail(c, MPA_E_MARKER);
	return 0;
}

int mpa_rx_fpdu(struct mpa_conn *c, __u8 *p, size_t n, struct mpa_fpdu *out)
{
	const bool marked = c->flags & MPA_F_RX_MARKERS;
	const __u32 gap = marked ? mpa_marker_gap(c->rx_phase) : NO_MARKER;
	const __u32 start = mpa_marker_start(gap);
	__u32 len, markers;

	if (c->state != MPA_OPEN && c->state != MPA_GATED)
		return c->state == MPA_FAILED ? -EPROTO : -EINVAL;
	len = n < start + MPA_LEN_FIELD ? 0 : base_get_be16(p + start);
	out->used = fpdu_octets(gap, len, &markers);
	if (n < out->used)
		return -EAGAIN;
	if (fpdu_judge(c, p, gap, markers, out->used))
		return -EPROTO;
	out->len = len;
	out->ulpdu = markers ? mpa_marker_squeeze(p, gap, len) : p + MPA_LEN_FIELD;
	if (c->state == MPA_GATED)
		conn_set_state(c, MPA_OPEN);
	c->rx_fpdus++;
	c->rx_octets += out->used;
	if (marked)
		c->rx_phase = (c->rx_phase + out->used) % MPA_MARKER_EVERY;
	return 0;
}

int mpa_rx_end(struct mpa_conn *c, size_t left)
{
	const bool running = c->state == MPA_GATED || c->state == MPA_OPEN;

	if (left == 0 && (running || c->state == MPA_REJECTED))
		return 0;
	if (c->state != MPA_FAILED)
		rx_fail(c, MPA_E_CLOSED);
	return -ECONNRESET;
}
