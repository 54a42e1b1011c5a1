/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pair itself, and the sink and source of an end: plain memory, STags and a record.
 */
#include "tests/unit/rdmap/pair.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/bits.h"

/* --- what an end gives to its stream ----------------------------------------------------- */

static enum iwarp_fault sink_place(void *ctx, const struct ddp_seg *seg, unsigned int access)
{
	struct end *e = ctx;
	enum ddp_stag_error err;
	__u8 *addr;

	cr_assert(seg->len, "nothing to place");
	e->accesses |= access;
	err = ddp_stag_check(&e->stags, seg->stag, PAIR_PD, seg->to, seg->len, access, &addr);
	if (err)
		return ddp_stag_fault_tagged(err);
	memcpy(addr, seg->payload, seg->len);
	return IWARP_OK;
}

static unsigned int sink_recv_ready(void *ctx, __u64 *len)
{
	struct end *e = ctx;

	*len = e->recv_room;
	return e->recv_posted;
}

static void sink_recv_place(void *ctx, const struct ddp_seg *seg)
{
	struct end *e = ctx;

	cr_assert(e->recv_posted);
	cr_assert_leq((__u64)seg->mo + seg->len, e->recv_room);
	memcpy(e->recv[e->recv_first] + seg->mo, seg->payload, seg->len);
}

static struct pair_event *event(struct end *e, enum pair_kind kind)
{
	struct pair_event *ev = &e->events[e->nevents++];

	cr_assert_lt(e->nevents, PAIR_EVENTS);
	*ev = (struct pair_event){ .kind = kind };
	return ev;
}

static void sink_recv_done(void *ctx, const struct rdmap_recv *recv)
{
	struct end *e = ctx;

	cr_assert(e->recv_posted);
	e->recv_posted--;
	e->recv_first++;
	event(e, EV_RECV)->recv = *recv;
}

static enum ddp_stag_error sink_invalidate(void *ctx, __u32 stag)
{
	struct end *e = ctx;

	return ddp_stag_invalidate(&e->stags, stag, PAIR_PD);
}

static void sink_done(void *ctx, __u64 cookie, __u64 value)
{
	struct pair_event *ev = event(ctx, EV_DONE);

	ev->cookie = cookie;
	ev->value = value;
}

static void sink_kick(void *ctx)
{
	((struct end *)ctx)->kicks++;
}

static enum ddp_stag_error source_get(void *ctx, __u32 stag, __u64 to, __u64 len,
				      unsigned int access, __u8 **addr)
{
	struct end *e = ctx;

	e->lookups++;
	return ddp_stag_check(&e->stags, stag, PAIR_PD, to, len, access, addr);
}

/* --- set-up ------------------------------------------------------------------------------ */

static const unsigned int region_access[REGIONS] = {
	[RW] = DDP_LOCAL_WRITE | DDP_REMOTE_WRITE | DDP_REMOTE_READ | DDP_REMOTE_ATOMIC,
	[READ_ONLY] = DDP_REMOTE_READ,
	[WRITE_ONLY] = DDP_REMOTE_WRITE,
	[FOREIGN] = DDP_REMOTE_WRITE | DDP_REMOTE_READ | DDP_REMOTE_ATOMIC,
	[SHARED] = DDP_REMOTE_WRITE,
	[LOCAL] = DDP_LOCAL_WRITE,
};

static void end_regions(struct end *e)
{
	cr_assert_eq(ddp_stag_table_init(&e->stags, REGIONS), 0);
	for (unsigned int r = 0; r < REGIONS; r++) {
		e->regions[r] = (struct ddp_region){
			.to = PAIR_TO,
			.len = PAIR_MEM,
			.addr = end_mem(e, r),
			.pd = r == FOREIGN ? PAIR_PD + 1 : PAIR_PD,
			.access = (__u8)region_access[r],
			.shared = r == SHARED,
		};
		cr_assert_eq(ddp_stag_insert(&e->stags, &e->regions[r]), 0);
		for (unsigned int i = 0; i < PAIR_MEM; i++)
			end_mem(e, r)[i] = (__u8)(i * 13 + i / 256 + r);
	}
}

static void end_init(struct end *e, enum mpa_role role, const struct pair_options *o)
{
	struct mpa_config config = { .rev = 2, .ird = o->ird, .ord = o->ord };
	struct mpa_conn *c = &e->s.ddp.mpa;

	e->slots = (struct rdmap_slots)RDMAP_SLOTS(e->in, e->out);
	e->sink = (struct rdmap_sink){
		.place = sink_place,
		.recv_ready = sink_recv_ready,
		.recv_place = sink_recv_place,
		.recv_done = sink_recv_done,
		.invalidate = sink_invalidate,
		.done = sink_done,
		.kick = sink_kick,
		.ctx = e,
	};
	e->source = (struct rdmap_source){ .get = source_get, .ctx = e };
	e->v = (struct mpa_txv){
		.iov = e->iov,
		.scratch = e->scratch,
		.iov_cap = base_array_size(e->iov),
		.scratch_cap = sizeof(e->scratch),
	};
	e->recv_room = PAIR_ROOM;
	e->recv_posted = PAIR_RECVS;
	end_regions(e);
	rdmap_stream_init(&e->s, role, &config, PAIR_SLOTS, PAIR_SLOTS);
	c->state = role == MPA_RESPONDER && o->gated ? MPA_GATED : MPA_OPEN;
	c->flags = o->flags;
	c->rtr = o->rtr;
	c->ird = o->ird;
	c->ord = o->ord;
	c->mulpdu = o->mulpdu ? o->mulpdu : 1440;
	cr_assert_eq(rdmap_stream_started(&e->s), IWARP_OK);
}

struct pair *pair_create(const struct pair_options *o)
{
	static const struct pair_options plain = { .flags = MPA_F_CRC, .ird = 4, .ord = 4 };
	struct pair *p = calloc(1, sizeof(*p));

	cr_assert_not_null(p);
	end_init(&p->a, MPA_INITIATOR, o ? o : &plain);
	end_init(&p->b, MPA_RESPONDER, o ? o : &plain);
	return p;
}

void pair_destroy(struct pair *p)
{
	ddp_stag_table_uninit(&p->a.stags);
	ddp_stag_table_uninit(&p->b.stags);
	free(p);
}

__u8 *end_mem(struct end *e, enum pair_region r)
{
	return (__u8 *)e->mem[r];
}

__u32 end_stag(const struct end *e, enum pair_region r)
{
	return e->regions[r].stag;
}

/* --- the wire ---------------------------------------------------------------------------- */

void end_flush(struct end *e)
{
	for (__u32 i = 0; i < e->v.niov; i++) {
		cr_assert_leq(e->wire_len + e->iov[i].iov_len, PAIR_WIRE);
		memcpy(e->wire + e->wire_len, e->iov[i].iov_base, e->iov[i].iov_len);
		e->wire_len += e->iov[i].iov_len;
	}
	e->v.niov = e->v.used = 0;
	e->v.octets = 0;
}

enum iwarp_fault end_receive(struct end *from, struct end *to)
{
	enum iwarp_fault first = IWARP_OK;
	size_t at = 0;

	while (at < from->wire_len) {
		struct mpa_fpdu f;
		enum iwarp_fault fault;

		cr_assert_eq(mpa_rx_fpdu(&to->s.ddp.mpa, from->wire + at, from->wire_len - at, &f),
			     0);
		fault = end_take(to, f.ulpdu, f.len);
		first = first ? first : fault;
		at += f.used;
	}
	from->wire_len = 0;
	return first;
}

const __u8 *end_ulpdu(const struct end *e, size_t *at, size_t *len)
{
	const __u8 *p = e->wire + *at;

	if (*at == e->wire_len)
		return NULL;
	*len = base_get_be16(p);
	*at += base_align_up(MPA_LEN_FIELD + *len, 4) + MPA_CRC_LEN;
	return p + MPA_LEN_FIELD;
}

static unsigned int digit(char c)
{
	return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

size_t unhex(const char *text, __u8 *out)
{
	size_t digits = 0;

	for (; *text; text++) {
		if (*text == ' ')
			continue;
		out[digits / 2] = (__u8)((digits % 2 ? out[digits / 2] << 4 : 0) | digit(*text));
		digits++;
	}
	cr_assert_eq(digits % 2, 0);
	return digits / 2;
}

/* In a block of exactly this size, so that a sanitizer sees a look beyond the end */
enum iwarp_fault end_take(struct end *e, const __u8 *ulpdu, size_t len)
{
	__u8 *copy = malloc(len ? len : 1);
	enum iwarp_fault f;

	cr_assert_not_null(copy);
	memcpy(copy, ulpdu, len);
	f = rdmap_rx(&e->s, &e->slots, copy, len, &e->sink);
	free(copy);
	return f;
}

int end_send(struct end *e, const struct rdmap_wr *wr)
{
	bool last = false;
	__u32 off = 0;

	while (!last) {
		ssize_t n = rdmap_tx_wr(&e->s, &e->slots, &e->v, wr, off, &last);

		if (n < 0) {
			cr_assert_eq(off, 0, "cut off after %u octets: %zd", off, n);
			return (int)n;
		}
		off += (__u32)n;
		end_flush(e);
	}
	rdmap_tx_commit(&e->s);
	return 0;
}

int end_respond(struct end *e)
{
	int rc, segments = 0;

	while ((rc = rdmap_tx_response(&e->s, &e->slots, &e->v, &e->source)) > 0) {
		segments++;
		end_flush(e);
		rdmap_tx_commit(&e->s);
	}
	return rc ? rc : segments;
}

enum iwarp_fault pair_run(struct pair *p)
{
	enum iwarp_fault f = IWARP_OK;

	while (!f && (p->a.wire_len || p->b.wire_len)) {
		f = end_receive(&p->a, &p->b);
		if (!f)
			f = end_receive(&p->b, &p->a);
		end_respond(&p->a);
		end_respond(&p->b);
	}
	return f;
}
