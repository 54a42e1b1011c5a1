/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random messages out of one stream and into another: what is reassembled is what was sent.
 */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "base/bits.h"
#include "ddp/ddp.h"
#include "ddp/stag.h"

enum { MAX_LEN = 20000, REGION = 65536, PD = 3, MESSAGES = 400 };

struct world {
	struct ddp_stream tx, rx;
	struct ddp_stag_table stags;
	struct ddp_region region;
	__u8 source[MAX_LEN + 64];
	__u8 memory[REGION]; /* tagged */
	__u8 model[REGION];
	__u8 buffer[MAX_LEN]; /* untagged */
	unsigned int delivered;
};

static unsigned int below(unsigned int n)
{
	return (unsigned int)rand() % n;
}

/* The source cut into up to 20 pieces, some of them empty */
static unsigned int random_pieces(struct world *w, __u32 len, struct iovec sg[20])
{
	unsigned int nsg = 0;
	__u32 at = 0;

	while (nsg < 19 && at < len) {
		__u32 n = below(4) ? below(len - at + 1) : 0;

		sg[nsg++] = (struct iovec){ w->source + at, n };
		at += n;
	}
	sg[nsg++] = (struct iovec){ w->source + at, len - at };
	return nsg;
}

static void place(struct world *w, const struct ddp_seg *seg, __u32 len)
{
	enum ddp_stag_error e;
	__u8 *addr;

	if (seg->tagged) {
		cr_assert_eq(ddp_rx_check_tagged(&w->rx, seg), IWARP_OK);
		e = ddp_stag_check(&w->stags, seg->stag, PD, seg->to, seg->len, DDP_REMOTE_WRITE,
				   &addr);
		cr_assert_eq(e, DDP_STAG_OK);
		memcpy(addr, seg->payload, seg->len);
	} else {
		struct iovec buffer[2] = { { w->buffer, len / 3 },
					   { w->buffer + len / 3, len - len / 3 } };

		cr_assert_eq(ddp_rx_check_untagged(&w->rx, seg, 1, len), IWARP_OK);
		ddp_scatter(buffer, 2, seg->mo, seg->payload, seg->len);
	}
	ddp_rx_accept(&w->rx, seg);
}

/* One segment over: header and payload out of the FPDU, as the stream has no CRC and no markers */
static ssize_t carry(struct world *w, const struct ddp_tx_msg *m, __u32 off, bool *last)
{
	static __u8 flat[MPA_ULPDU_MAX + 16];
	struct iovec iov[512];
	__u8 scratch[4096];
	struct mpa_txv v = { .iov = iov, .scratch = scratch, .iov_cap = 512, .scratch_cap = 4096 };
	ssize_t n = ddp_tx_segment(&w->tx, &v, m, off, last);
	struct ddp_seg seg;
	size_t len = 0;

	cr_assert_geq(n, 0);
	for (__u32 i = 0; i < v.niov; i++) {
		memcpy(flat + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	len = base_get_be16(flat);
	cr_assert_leq(len, w->tx.mpa.mulpdu);
	cr_assert_eq(ddp_rx_parse(flat + 2, len, &seg), IWARP_OK);
	cr_assert_eq(seg.len, (__u32)n);
	cr_assert_eq(seg.last, *last);
	place(w, &seg, m->len);
	if (*last && !m->tagged)
		cr_assert_eq(ddp_seg_message_len(&seg), m->len);
	return n;
}

static void one_message(struct world *w)
{
	struct iovec sg[20];
	struct ddp_tx_msg m = { .tagged = below(2), .qn = below(4), .sg = sg };
	bool last = false;
	__u32 off = 0;

	w->tx.mpa.mulpdu = (__u16)(MPA_MULPDU_MIN + below(below(2) ? 64 : 9000));
	m.len = below(3) ? below(MAX_LEN) : below(3);
	m.nsg = random_pieces(w, m.len, sg);
	m.stag = w->region.stag;
	m.to = w->region.to + below(REGION - m.len + 1);
	for (__u32 i = 0; i < m.len; i++)
		w->source[i] = (__u8)rand();
	while (!last)
		off += (__u32)carry(w, &m, off, &last);
	cr_assert_eq(off, m.len);
	if (m.tagged)
		memcpy(w->model + (m.to - w->region.to), w->source, m.len);
	else
		cr_assert_arr_eq(w->buffer, w->source, m.len);
}

Test(ddp_stream, reassembled_is_what_was_sent, .timeout = 30)
{
	struct mpa_config config = { .rev = 1 };
	struct world *w = calloc(1, sizeof(*w));

	cr_assert_not_null(w);
	srand(2);
	ddp_stream_init(&w->tx, MPA_INITIATOR, &config);
	ddp_stream_init(&w->rx, MPA_RESPONDER, &config);
	w->tx.mpa.state = MPA_OPEN;
	cr_assert_eq(ddp_stag_table_init(&w->stags, 1), 0);
	/* the last region there can be: it ends at 2^64 */
	w->region = (struct ddp_region){ .to = UINT64_MAX - REGION + 1,
					 .len = REGION,
					 .addr = w->memory,
					 .pd = PD,
					 .access = DDP_REMOTE_WRITE };
	cr_assert_eq(ddp_stag_insert(&w->stags, &w->region), 0);
	for (int i = 0; i < MESSAGES; i++) {
		one_message(w);
		cr_assert_arr_eq(w->memory, w->model, REGION, "message %d", i);
	}
	for (unsigned int qn = 0; qn < DDP_QUEUES; qn++)
		cr_expect_eq(w->tx.tx_msn[qn], w->rx.rx_msn[qn], "queue %u", qn);
	ddp_stag_table_uninit(&w->stags);
	free(w);
}
