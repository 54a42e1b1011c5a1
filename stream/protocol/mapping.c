/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Mappings: one-sided Writes as rsockets has them (riomap, riowrite).
 *
 * An end offers slots behind its target SGL. The other one maps memory of its own there: a Write of
 * where that lies and what offset it goes by, and a message with the slot's number. From then on
 * who offered the slot may write to the memory, which has neither message nor credit.
 *
 * What the peer has mapped is part of the state, for it may come before a process has made the
 * connection's one-sided operations its own. What we have mapped is that process's.
 *
 * The message takes a credit, which rsockets does not give back: it counts none that it receives.
 * And it gives new ones when half of them are used up. So what is mapped to it in all must leave as
 * many as that.
 */
#include "stream/protocol/onesided.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "stream/protocol/protocol.h"

/* --- the peer's --- */

int stream_slot_write(struct stream *s, uint64_t off, const uint8_t *p, size_t len)
{
	struct stream_rx *rx = &s->state->rx;

	if (len != sizeof(rx->map) || off % sizeof(rx->map))
		return stream_refuse("wrote beside a slot for mappings");
	if (rx->map_here)
		return stream_refuse("wrote a mapping before it told of the last one");
	memcpy(&rx->map, p, len);
	rx->map_here = (uint8_t)(off / sizeof(rx->map) + 1);
	return 0;
}

/* A slot that was never written says that nothing is mapped */
int stream_slot_landed(struct stream *s, uint32_t i)
{
	const uint8_t *sgl = s->rnic->native->memory(s->mem.native, STREAM_SGL_WINDOW);
	struct rs_iomap map;

	if (i >= s->slots)
		return 0; /* its message is refused */
	memcpy(&map, sgl + RS_SGL_LEN + i * sizeof(map), sizeof(map));
	return stream_slot_write(s, i * sizeof(map), (const uint8_t *)&map, sizeof(map));
}

static int slot_fill(struct stream *s, uint32_t i, const struct rs_iomap *map)
{
	struct stream_mapping *to = &stream_mappings(s)[i], m = {
		.offset = le64toh(map->offset),
		.to = le64toh(map->sge.addr),
		.stag = le32toh(map->sge.key),
		.octets = le32toh(map->sge.length),
	};

	if (!m.octets || !m.stag || m.offset + m.octets < m.offset || m.to + m.octets < m.to)
		return stream_refuse("mapped what cannot be");
	if (stream_reserve(s, to, sizeof(*to))) {
		stream_spoilt(s, STREAM_NO_MEMORY);
		return 0;
	}
	*to = m;
	s->state->rx.maps = (uint8_t)base_max((uint32_t)base_once(s->state->rx.maps), i + 1);
	return 0;
}

int stream_slot_take(struct stream *s, uint32_t i)
{
	struct stream_rx *rx = &s->state->rx;
	int err;

	if (i >= s->slots)
		return stream_refuse("mapped to a slot that there is not");
	if (rx->map_here != i + 1)
		return stream_refuse("told of a mapping that it did not write");
	if (base_load(&s->state->ends) & STREAM_IN_ENDED)
		return stream_refuse("mapped memory after its end");
	rx->map_here = 0;
	err = stream_has(s, STREAM_FEATURE_INLINE) ? 0 : stream_credit_take(s);
	return err ? err : slot_fill(s, i, &rx->map);
}

static bool is_within(const struct stream_mapping *m, const struct stream_job *job)
{
	return job->to >= m->offset && job->to - m->offset < m->octets &&
	       job->len <= m->octets - (job->to - m->offset);
}

int stream_mapping_find(struct stream *s, struct stream_job *job)
{
	int err = -ENXIO;
	uint32_t n;

	/* Where none has been there is no memory to look at */
	n = base_min((uint32_t)base_once(s->state->rx.maps), s->slots);
	for (uint32_t i = 0; i < n && err; i++) {
		struct stream_mapping m = stream_mappings(s)[i];

		if (!is_within(&m, job))
			continue;
		job->to = m.to + (job->to - m.offset);
		job->stag = m.stag;
		err = 0;
	}
	return err;
}

/* --- ours --- */

int stream_region_enter(struct stream *s, void *addr, size_t len, unsigned int access,
			uint32_t *stag)
{
	int err = s->rnic->onesided->add(s->mem.regions, addr, len, access, stag);

	if (!err)
		__atomic_add_fetch(&s->regions, 1, __ATOMIC_ACQ_REL);
	return err;
}

int stream_region_strike(struct stream *s, uint32_t stag)
{
	int err = s->rnic->onesided->remove(s->mem.regions, stag);

	if (!err)
		__atomic_sub_fetch(&s->regions, 1, __ATOMIC_ACQ_REL);
	return err;
}

/* The slot of @addr, @len; NULL and 0: a free one. NULL: there is none */
struct stream_own_map *stream_map_find(struct stream *s, const void *addr, size_t len)
{
	uint32_t n = base_min((uint32_t)base_once(s->state->peer.slots), STREAM_SLOTS);

	for (uint32_t i = 0; s->maps && i < n; i++) {
		struct stream_own_map *m = &s->maps->map[i];

		if (m->len == len && m->addr == addr)
			return m;
	}
	return NULL;
}

/* Another Warpsock counts them: none is lost */
bool stream_map_allowed(const struct stream *s)
{
	uint32_t half = s->state->peer.credits / 2, reserve = s->state->peer.reserve;

	return stream_has(s, STREAM_FEATURE_ABORT) || s->maps->told + reserve < half;
}

/* The slot's bytes and the message, in the books before they go: 0, -EAGAIN, -errno */
static int map_post(struct stream *s, uint32_t i, const struct rs_iomap *map)
{
	struct stream_state *st = s->state;
	uint64_t table = st->peer.sgl_to + st->peer.sgl_entries * (uint64_t)sizeof(struct rs_sge);
	uint32_t told = rs_msg(RS_OP_IOMAP_SGL, i);
	uint8_t msg[RS_MSG_LEN];
	struct iovec iov[2] = { { (void *)map, sizeof(*map) }, { msg, sizeof(msg) } };
	struct rnic_stream_wr wr[2] = {
		{ st->peer.sgl_stag, table + i * sizeof(*map), &iov[0], 1, sizeof(*map), NULL,
		  false },
		{ .iov = &iov[1], .niov = 1, .len = sizeof(msg) },
	};
	int done;

	base_put_le32(msg, told);
	base_store(&st->tx.sent, (uint16_t)(st->tx.sent + 1));
	done = stream_wr_post(s, wr, 2);
	if (done <= 0)
		base_store(&st->tx.sent, (uint16_t)(st->tx.sent - 1));
	if (done == 1)
		base_store(&st->tx.owed, told);
	return done > 0 ? 0 : done < 0 ? done : -EAGAIN;
}

/* Both locks; the slot is free */
int stream_map_fill(struct stream *s, struct stream_own_map *m, void *addr, size_t len,
		    uint64_t offset)
{
	struct rs_iomap wire = {
		.offset = htole64(offset),
		.sge = { .addr = htole64((uintptr_t)addr), .length = htole32((uint32_t)len) },
	};
	uint32_t stag;
	int err = stream_region_enter(s, addr, len, RNIC_REMOTE_WRITE, &stag);

	if (err)
		return err;
	wire.sge.key = htole32(stag);
	err = map_post(s, (uint32_t)(m - s->maps->map), &wire);
	if (err) {
		stream_region_strike(s, stag);
		return err;
	}
	*m = (struct stream_own_map){ addr, len, stag };
	s->maps->told++;
	return 0;
}
