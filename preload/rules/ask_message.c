/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The datagrams of the question beside a connection (docs/stream-wire.md), from octets and back.
 *
 * A datagram of another version, or of another length, is none: an end that speaks a later version
 * finds silence here, and is plain TCP.
 */
#include "preload/rules/ask_message.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

void ask_message_put(struct ask_message *m, const struct ask *ask)
{
	*m = (struct ask_message){
		.version = ASK_VERSION,
		.kind = (__u8)ask->kind,
		.port = ask->port,
		.nonce = htobe64(ask->nonce),
	};
	memcpy(m->magic, ASK_MAGIC, sizeof(m->magic));
}

int ask_message_get(const void *p, size_t len, struct ask *out)
{
	struct ask_message m;

	if (len != sizeof(m))
		return -EPROTO;
	memcpy(&m, p, sizeof(m));
	if (memcmp(m.magic, ASK_MAGIC, sizeof(m.magic)) || m.version != ASK_VERSION ||
	    m.kind < ASK_QUESTION || m.kind > ASK_NO || !m.port)
		return -EPROTO;
	*out = (struct ask){ (enum ask_kind)m.kind, m.port, be64toh(m.nonce) };
	return 0;
}
