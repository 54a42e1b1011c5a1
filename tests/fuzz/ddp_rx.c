/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Segments from anybody: parsed, checked and placed as a receiver does it. Nothing may
 * be written but the octets of a region or of the receive buffer, which the input's own
 * bookkeeping here follows by hand.
 *
 * The input is a run of (length, octets); an STag's low two bits choose one of four
 * regions, unless its top bit is set: then it is looked up as it stands.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "ddp/ddp.h"
#include "ddp/stag.h"

enum { GUARD = 4096, REGIONS = 4, BUFFER = 3000, PD = 1 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ddp_stag_table stags;
static struct ddp_region regions[REGIONS] = {
	{ .to = 0, .len = 1000, .pd = PD, .access = DDP_REMOTE_WRITE },
	{ .to = UINT64_MAX - 499, .len = 500, .pd = PD, .access = DDP_REMOTE_WRITE },
	{ .to = 0x1000, .len = 64, .pd = PD, .access = DDP_REMOTE_READ },
	{ .to = 0x1000, .len = 64, .pd = PD + 1, .access = DDP_REMOTE_WRITE },
};
/* a guard before and behind each */
static uint8_t arena[GUARD + (REGIONS + 1) * (BUFFER + GUARD)];
static uint8_t model[sizeof(arena)];

static uint8_t *slot_of(uint8_t *base, unsigned int i)
{
	return base + GUARD + i * (BUFFER + GUARD);
}

static void begin(void)
{
	if (stags.slots)
		return;
	if (ddp_stag_table_init(&stags, REGIONS))
		abort();
	for (unsigned int i = 0; i < REGIONS; i++) {
		regions[i].addr = slot_of(arena, i);
		if (ddp_stag_insert(&stags, &regions[i]))
			abort();
	}
}

/* The region of an STag that was found good; a fuzzer that watches comparisons guesses it */
static unsigned int region_of(uint32_t stag)
{
	unsigned int i = 0;

	while (i < REGIONS && regions[i].stag != stag)
		i++;
	return i;
}

static void tagged(struct ddp_stream *s, struct ddp_seg *seg)
{
	unsigned int i;
	uint8_t *addr;

	if (!(seg->stag & 0x80000000))
		seg->stag = regions[seg->stag & 3].stag;
	if (ddp_rx_check_tagged(s, seg))
		return;
	if (seg->len) {
		if (ddp_stag_check(&stags, seg->stag, PD, seg->to, seg->len, DDP_REMOTE_WRITE,
				   &addr))
			return;
		i = region_of(seg->stag);
		if (i > 1 || seg->to < regions[i].to)
			abort();
		if (addr != slot_of(arena, i) + (seg->to - regions[i].to))
			abort();
		memcpy(addr, seg->payload, seg->len);
		memcpy(slot_of(model, i) + (seg->to - regions[i].to), seg->payload, seg->len);
	}
	ddp_rx_accept(s, seg);
}

static void untagged(struct ddp_stream *s, struct ddp_seg *seg)
{
	struct iovec sg[3] = { { slot_of(arena, REGIONS), 100 },
			       { slot_of(arena, REGIONS), 0 },
			       { slot_of(arena, REGIONS) + 100, BUFFER - 100 } };

	seg->msn &= 0xF;
	if (ddp_rx_check_untagged(s, seg, 1, BUFFER))
		return;
	if (seg->qn == 0) {
		ddp_scatter(sg, 3, seg->mo, seg->payload, seg->len);
		memcpy(slot_of(model, REGIONS) + seg->mo, seg->payload, seg->len);
	}
	ddp_rx_accept(s, seg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddp_stream s = { .rx_msn = { 1, 1, 1, 1 } };
	struct ddp_seg seg;

	begin();
	while (size >= 2) {
		size_t n = base_min((size_t)base_get_be16(data), size - 2);
		/* a copy of its own, so that a read beyond the segment is seen */
		uint8_t *copy = malloc(n + !n);

		memcpy(copy, data + 2, n);
		if (!ddp_rx_parse(copy, n, &seg)) {
			if (seg.hdr_len + seg.len != n || seg.payload != copy + seg.hdr_len)
				abort();
			(seg.tagged ? tagged : untagged)(&s, &seg);
		}
		free(copy);
		data += 2 + n;
		size -= 2 + n;
	}
	if (memcmp(arena, model, sizeof(arena)))
		abort();
	return 0;
}
