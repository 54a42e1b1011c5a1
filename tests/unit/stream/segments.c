/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths with short segments: a write is many frames, of which the kernel takes as many as it has
 * room for.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>

#define SIZE (1 << 20)
#define PIECE 65536

static uint8_t out[SIZE], in[SIZE];

static size_t some(ssize_t n)
{
	cr_assert(n > 0 || n == -EAGAIN, "%zd", n);
	return n > 0 ? (size_t)n : 0;
}

/* All of out[] one way; FPDUs that it took */
static uint64_t carry(struct stream *from, struct stream *to)
{
	const struct stream *s = from;
	struct rnic_stream_info before, after;
	size_t sent = 0, got = 0;

	s->rnic->info(&s->mem, &before);
	while (got < SIZE) {
		/* Behind a short one no frame begins where a segment does */
		struct iovec a = { out + sent,
				   base_min((size_t)(sent ? PIECE : 100), SIZE - sent) };
		struct iovec b = { in + got, SIZE - got };

		if (sent < SIZE)
			sent += some(stream_send(from, &a, 1));
		got += some(stream_recv(to, &b, 1, 0));
		stream_progress(from);
		stream_progress(to);
	}
	s->rnic->info(&s->mem, &after);
	return after.tx_fpdus - before.tx_fpdus;
}

Test(segments, long_writes, .timeout = 120)
{
	static const int mss[] = { 536, 1000, 1460, 2060 };
	struct stream *s[2];

	for (size_t i = 0; i < SIZE; i++)
		out[i] = ends_octet(i);
	for (unsigned int i = 0; i < 2 * base_array_size(mss); i++) {
		ends_mss = mss[i / 2];
		ends_open(s);
		if (i % 2)
			ends_narrow(s[0]);
		cr_expect_geq(carry(s[0], s[1]), SIZE / (uint64_t)ends_mss, "MSS %d", ends_mss);
		cr_expect_arr_eq(in, out, SIZE);
		ends_destroy(s);
	}
}
