/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef STREAM_PROTOCOL_EXTENSION_H
#define STREAM_PROTOCOL_EXTENSION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <wire/stream_ext.h>

/* What an end says in its extension block; all zero: it sent none */
struct stream_ext {
	uint32_t features; /* enum stream_feature, also bits that have no name here */
	uint16_t ird, ord;
	uint64_t window;
};

/* The block of @ext into @p, which has STREAM_EXT_MAX bytes of room: its length */
size_t stream_ext_put(uint8_t *p, const struct stream_ext *ext);
/*
 * Judges what stands behind the connection data. Bytes that are no block, or one of another
 * version, are none, and *@out is zero. -EPROTO: a block whose parts contradict each other.
 */
int stream_ext_get(const uint8_t *p, size_t len, struct stream_ext *out);

#endif
