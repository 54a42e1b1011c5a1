/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the protocol asks for and no other file has: the time, the end of others' calls, and the
 * table of what the peer has mapped.
 */
#include "base/clock.h"
#include "stream/state/memory.h"

void stream_senders_pass(struct stream *s)
{
	stream_tx_lock(s);
	stream_tx_unlock(s);
}

uint64_t stream_now(void)
{
	return base_now();
}

struct stream_mapping *stream_mappings(const struct stream *s)
{
	return s->slab->maps[s->cell].slot;
}
