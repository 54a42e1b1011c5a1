/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks at the transport that a reader is spared. Part of stream/rsock.h. */
#ifndef STREAM_SPARE_H
#define STREAM_SPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rsock;

/* The transport of a connection was empty, when this process had sent so often */
struct rsock_spare {
	bool is_set;
	uint32_t pair;
	uint64_t sends;
};

/* tx lock. It has sent something */
void rsock_spare_sent(struct rsock *s);
/* Before a look at the transport, for rsock.spare if that was empty */
struct rsock_spare rsock_spare_begin(const struct rsock *s);
/* rx lock. Who got @taken bytes need not ask the transport; once */
bool rsock_spare_take(struct rsock *s, size_t taken);

#endif
