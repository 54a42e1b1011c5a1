/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks at the transport that a reader is spared. Part of stream/rsock.h. */
#ifndef STREAM_SPARE_H
#define STREAM_SPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stream;

/* The transport of a connection was empty, when this process had sent so often */
struct stream_spare {
	bool is_set;
	uint32_t pair;
	uint64_t sends;
};

/* tx lock. It has sent something */
void stream_spare_sent(struct stream *s);
/* Before a look at the transport, for rsock.spare if that was empty */
struct stream_spare stream_spare_begin(const struct stream *s);
/* rx lock. Who got @taken bytes need not ask the transport; once */
bool stream_spare_take(struct stream *s, size_t taken);

#endif
