/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where what arrives on a stream goes, by whom and to what memory. Part of rnic/rnic_stream.h. */
#ifndef RNIC_RNIC_SINK_H
#define RNIC_RNIC_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct base_recv_sleep;

/*
 * Address space that the peer may write to; where the bytes go is the sink's affair. Part of the
 * state.
 */
#define RNIC_WINDOWS 4

struct rnic_window {
	uint64_t to;
	uint64_t len;  /* 0: unused */
	uint32_t stag; /* by rnic_stream_ops.window */
	uint32_t tag;  /* the caller's, given to the sink */
};

/* What arrives. Called under the rx lock; must not call back into the stream. */
struct rnic_sink {
	/* Bytes @off.. of a window: 0, or -errno to refuse them: Terminate, and the end */
	int (*write)(void *ctx, const struct rnic_window *w, uint64_t off, const void *p,
		     size_t len);
	/*
	 * A part of a Send; @last: message complete, @off + len bytes. 0, or -EMSGSIZE, -ENOBUFS
	 * to refuse it
	 */
	int (*message)(void *ctx, uint64_t off, const void *p, size_t len, bool last);
	void *ctx;
	/*
	 * Bytes of .message may be wanted where they are, when they lie in rnic_stream_mem.in: are
	 * there such? and: they are no longer, for that memory is to be used again. NULL: never
	 */
	bool (*wants)(void *ctx);
	void (*settle)(void *ctx);
	void (*done)(void *ctx, uint64_t cookie, uint64_t value); /* an atomic found @value */
	void (*room)(void *ctx);       /* carrier.room() may say something else than before */
	struct base_recv_sleep *sleep; /* by which the first recv sleeps; NULL: it does not */
};

#endif
