/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages from anybody, to a stream with regions, receives and Reads and Atomics under way,
 * while it answers, sends and takes back what it built.
 *
 * The input is a run of commands, an octet each with what belongs to it. A ULPDU comes raw or
 * mended: with versions, length, queue, number, STag or the oldest Read filled in as the stream
 * expects them, which random octets would never hit.
 *
 * Checked after each command: nothing is written but where the stream may; the rings are in
 * order and no deeper than agreed; a stream that has ended stays so, with its first fault, and
 * neither takes nor gives anything.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "rdmap/rdmap.h"

enum { SLOTS = 7, IRD = 3, ORD = 3, PD = 1, REGION = 256, GUARD = 64, REGIONS = 4, ROOM = 100 };
enum { MULPDU = 128 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
	struct rdmap_stream s;
	struct rdmap_inbound in[SLOTS];
	struct rdmap_outbound out[SLOTS];
	unsigned int posted; /* receives */
	__u64 asked, done;   /* Reads and Atomics */
	struct rdmap_term_info first;
	__u8 state;
	struct rdmap_tx_mark mark;
	bool marked;
	struct mpa_txv v;
	struct iovec iov[256];
	__u8 scratch[8192];
};

static struct ddp_stag_table stags;
static struct ddp_region regions[REGIONS] = {
	{ .to = 0x1000,
	  .len = REGION,
	  .pd = PD,
	  .access = DDP_LOCAL_WRITE | DDP_REMOTE_WRITE | DDP_REMOTE_READ | DDP_REMOTE_ATOMIC },
	{ .to = 0x1000, .len = REGION, .pd = PD, .access = DDP_REMOTE_READ },
	{ .to = 0x1000, .len = REGION, .pd = PD, .access = DDP_LOCAL_WRITE },
	{ .to = 0x1000, .len = REGION, .pd = PD + 1, .access = 0xF },
};
/* Guards around each region and behind the receive buffer hold what they held */
static __u64 arena[(GUARD + REGION) / 8 * REGIONS + GUARD / 8];
static __u8 recv_buffer[ROOM + GUARD];

#define CHECK(good)              \
	do {                     \
		if (!(good))     \
			abort(); \
	} while (0)

/* --- the surroundings of the stream ------------------------------------------------------ */

static __u8 *region_at(unsigned int i)
{
	return (__u8 *)arena + GUARD + (size_t)i * (REGION + GUARD);
}

static void begin(void)
{
	memset(arena, 0xA5, sizeof(arena));
	memset(recv_buffer, 0xA5, sizeof(recv_buffer));
	if (!stags.slots) {
		CHECK(!ddp_stag_table_init(&stags, REGIONS));
		for (unsigned int i = 0; i < REGIONS; i++) {
			regions[i].addr = region_at(i);
			CHECK(!ddp_stag_insert(&stags, &regions[i]));
		}
	}
	for (unsigned int i = 0; i < REGIONS; i++)
		regions[i].valid = true;
}

static void check_octets(const __u8 *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK(p[i] == 0xA5);
}

static void check_memory(void)
{
	const __u8 *p = (const __u8 *)arena;

	for (unsigned int i = 0; i <= REGIONS; i++)
		check_octets(p + (size_t)i * (REGION + GUARD), GUARD);
	check_octets(region_at(1), REGION); /* may only be read */
	check_octets(region_at(3), REGION); /* another domain's */
	check_octets(recv_buffer + ROOM, GUARD);
}

static enum iwarp_fault place(void *ctx, const struct ddp_seg *seg, unsigned int access)
{
	enum ddp_stag_error e;
	__u8 *addr;

	CHECK(seg->len);
	CHECK(access == DDP_REMOTE_WRITE || access == DDP_LOCAL_WRITE);
	e = ddp_stag_check(&stags, seg->stag, PD, seg->to, seg->len, access, &addr);
	if (e)
		return ddp_stag_fault_tagged(e);
	memcpy(addr, seg->payload, seg->len);
	return IWARP_OK;
}

static unsigned int recv_ready(void *ctx, __u64 *len)
{
	struct world *w = ctx;

	*len = ROOM;
	return w->posted;
}

static void recv_place(void *ctx, const struct ddp_seg *seg)
{
	struct world *w = ctx;

	CHECK(w->posted && seg->len);
	memcpy(recv_buffer + seg->mo, seg->payload, seg->len);
}

static void recv_done(void *ctx, const struct rdmap_recv *recv)
{
	struct world *w = ctx;

	CHECK(w->posted);
	CHECK(recv->op >= RDMAP_SEND && recv->op <= RDMAP_IMM_SE && recv->op != RDMAP_TERMINATE);
	CHECK(recv->len <= ROOM);
	w->posted--;
}

static enum ddp_stag_error invalidate(void *ctx, __u32 stag)
{
	return ddp_stag_invalidate(&stags, stag, PD);
}

static void done(void *ctx, __u64 cookie, __u64 value)
{
	struct world *w = ctx;

	CHECK(cookie == w->done); /* in order */
	CHECK(w->done < w->asked);
	w->done++;
}

static void kick(void *ctx)
{
}

static enum ddp_stag_error get(void *ctx, __u32 stag, __u64 to, __u64 len, unsigned int access,
			       __u8 **addr)
{
	CHECK(access == DDP_REMOTE_READ || access == DDP_REMOTE_ATOMIC);
	return ddp_stag_check(&stags, stag, PD, to, len, access, addr);
}

/* --- the commands ------------------------------------------------------------------------ */

struct input {
	const uint8_t *p;
	size_t left;
};

static __u8 next(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->p++;
}

/* What is on its way has left, or has not */
static void flush(struct world *w, bool left)
{
	if (w->marked && !left) {
		rdmap_tx_rewind(&w->s, &w->mark);
		w->asked = w->done + rdmap_outstanding(&w->s);
	}
	w->marked = false;
	rdmap_tx_commit(&w->s);
	w->v.niov = w->v.used = 0;
	w->v.octets = 0;
}

static void mark(struct world *w)
{
	if (!w->marked)
		rdmap_tx_mark(&w->s, &w->mark);
	w->marked = true;
}

static void command_wr(struct world *w, struct input *in)
{
	static const __u8 ops[] = { RDMAP_READ_REQ, RDMAP_ATOMIC_REQ, RDMAP_READ_REQ, RDMAP_IMM };
	__u8 kind = next(in);
	struct rdmap_wr wr = { .op = ops[kind & 3],
			       .aop = kind & 4 ? RDMAP_CMP_SWAP : RDMAP_FETCH_ADD,
			       .fence = kind & 8,
			       .len = next(in),
			       .sink_stag = regions[kind >> 4 & 3].stag,
			       .sink_to = 0x1000 + next(in),
			       .cookie = w->asked };
	struct rdmap_slots slots = RDMAP_SLOTS(w->in, w->out);
	bool last = false;

	mark(w);
	if (rdmap_tx_wr(&w->s, &slots, &w->v, &wr, 0, &last) < 0)
		return;
	CHECK(last && w->state == RDMAP_OPEN);
	w->asked += wr.op != RDMAP_IMM;
}

static void command_respond(struct world *w)
{
	static const struct rdmap_source source = { .get = get };
	struct rdmap_slots slots = RDMAP_SLOTS(w->in, w->out);

	mark(w);
	if (rdmap_tx_response(&w->s, &slots, &w->v, &source) == 1)
		CHECK(w->state == RDMAP_OPEN);
	if (rdmap_tx_terminate(&w->s, &w->v) == 1)
		CHECK(w->s.term.fault && w->state <= RDMAP_FAULTED);
}

static __u32 expected_qn(__u8 op)
{
	static const __u8 qn[16] = { [RDMAP_READ_REQ] = RDMAP_QN_READ,
				     [RDMAP_ATOMIC_REQ] = RDMAP_QN_READ,
				     [RDMAP_TERMINATE] = RDMAP_QN_TERM,
				     [RDMAP_ATOMIC_RESP] = RDMAP_QN_ATOMIC };

	return qn[op];
}

/* Of the whole ULPDU */
static size_t expected_len(__u8 op)
{
	static const __u8 hdr[16] = {
		[RDMAP_READ_REQ] = 28,	  [RDMAP_ATOMIC_REQ] = 52, [RDMAP_TERMINATE] = 52,
		[RDMAP_ATOMIC_RESP] = 12, [RDMAP_IMM] = 8,	   [RDMAP_IMM_SE] = 8
	};

	return DDP_UNTAGGED_LEN + hdr[op];
}

static void mend_untagged(const struct world *w, __u8 *u)
{
	__u32 qn = expected_qn(u[1] & RDMAP_OP);

	base_put_be32(u + 6, qn);
	base_put_be32(u + 10, w->s.ddp.rx_msn[qn]);
	base_put_be32(u + 14, w->s.ddp.rx_mo[qn]);
}

/* As the Response to the oldest Read or Atomic */
static void mend_response(const struct world *w, __u8 *u, size_t n)
{
	const struct rdmap_outbound *o = &w->out[w->s.out_head % SLOTS];

	if ((u[1] & RDMAP_OP) == RDMAP_READ_RESP && n >= DDP_TAGGED_LEN) {
		base_put_be32(u + 2, o->sink_stag);
		base_put_be64(u + 6, o->sink_to + o->got);
	} else if ((u[1] & RDMAP_OP) == RDMAP_ATOMIC_RESP && n >= DDP_UNTAGGED_LEN + 12) {
		base_put_be32(u + DDP_UNTAGGED_LEN, o->req_id);
	}
}

/* An STag by its low bits */
static void mend_stag(__u8 *at)
{
	base_put_be32(at, regions[at[3] & 3].stag);
}

/* STag, offset and length that may be those of a region, on the whole aligned for an Atomic */
static void mend_request(__u8 *u, size_t n)
{
	__u8 *h = u + DDP_UNTAGGED_LEN;

	if ((u[1] & RDMAP_OP) == RDMAP_READ_REQ && n >= DDP_UNTAGGED_LEN + 28u) {
		base_put_be32(h + 12, h[15]);
		mend_stag(h + 16);
		base_put_be64(h + 20, 0x1000 + h[27]);
	} else if ((u[1] & RDMAP_OP) == RDMAP_ATOMIC_REQ && n >= DDP_UNTAGGED_LEN + 52u) {
		mend_stag(h + 8);
		base_put_be64(h + 12, 0x1000 + (h[19] % 8 < 7 ? h[19] & ~7 : h[19]));
	}
}

static void mend_stags(__u8 *u, size_t n)
{
	if (n >= 6)
		mend_stag(u + 2);
	if (u[0] & DDP_T && n >= DDP_TAGGED_LEN)
		base_put_be64(u + 6, 0x1000 + u[13]);
	mend_request(u, n);
}

static void mend(const struct world *w, __u8 how, __u8 *u, size_t n)
{
	if (n < 2)
		return;
	if (how & 1) {
		u[0] = (u[0] & (DDP_T | DDP_L)) | DDP_DV1;
		u[1] = RDMAP_RV1 | (u[1] & RDMAP_OP);
	}
	if ((how & 2) && !(u[0] & DDP_T) && n >= DDP_UNTAGGED_LEN)
		mend_untagged(w, u);
	if (how & 4)
		mend_stags(u, n);
	if (how & 8)
		mend_response(w, u, n);
}

static void receive(struct world *w, const __u8 *u, size_t n)
{
	static const struct rdmap_sink surroundings = {
		.place = place,
		.recv_ready = recv_ready,
		.recv_place = recv_place,
		.recv_done = recv_done,
		.invalidate = invalidate,
		.done = done,
		.kick = kick,
	};
	struct rdmap_slots slots = RDMAP_SLOTS(w->in, w->out);
	struct rdmap_sink sink = surroundings;
	enum iwarp_fault f;

	sink.ctx = w;
	f = rdmap_rx(&w->s, &slots, u, n, &sink);
	CHECK(!f ||
	      (w->state == RDMAP_OPEN && w->s.state == RDMAP_FAULTED && w->s.term.fault == f));
}

static void command_ulpdu(struct world *w, struct input *in)
{
	__u8 how = next(in);
	size_t given = next(in), n;
	__u8 *u;

	given = base_min(given, in->left);
	n = how & 16 && given > 1 ? expected_len(in->p[1] & RDMAP_OP) : given;
	/* of its own, so that a look beyond its end is seen */
	u = calloc(1, n + !n);
	CHECK(u);
	memcpy(u, in->p, base_min(given, n));
	in->p += given;
	in->left -= given;
	mend(w, how, u, n);
	receive(w, u, n);
	free(u);
}

/* A Read or an Atomic that is likely to be answered, out of five octets */
static void command_request(struct world *w, struct input *in)
{
	__u8 how = next(in), u[IWARP_HDR_MAX] = { DDP_L | DDP_DV1, RDMAP_RV1 };
	__u8 *h = u + DDP_UNTAGGED_LEN;
	bool atomic = how & 1;

	u[1] |= atomic ? RDMAP_ATOMIC_REQ : RDMAP_READ_REQ;
	if (atomic) {
		h[3] = how >> 1 & 3;
		h[11] = next(in);
		h[19] = next(in);
		h[27] = next(in);
		h[35] = next(in);
	} else {
		h[15] = next(in);
		h[19] = next(in);
		h[27] = next(in);
	}
	mend(w, 7, u, expected_len(u[1] & RDMAP_OP));
	receive(w, u, expected_len(u[1] & RDMAP_OP));
}

static void command(struct world *w, struct input *in)
{
	__u8 c = next(in);

	switch (c & 7) {
	case 0:
	case 1:
		command_ulpdu(w, in);
		break;
	case 2:
		command_request(w, in);
		break;
	case 3:
		command_wr(w, in);
		break;
	case 4:
		command_respond(w);
		break;
	case 5:
		flush(w, c & 8);
		break;
	case 6:
		w->posted += c >> 3 & 3;
		break;
	default:
		rdmap_fault(&w->s, c & 0x80 ? MPA_E_CRC : RDMAP_E_LOCAL);
	}
}

/* --- what must hold ---------------------------------------------------------------------- */

static void check_term(const struct rdmap_term_info *t)
{
	CHECK(t->ddp_len == 0 || t->ddp_len == DDP_TAGGED_LEN || t->ddp_len == DDP_UNTAGGED_LEN);
	CHECK(!(t->hdrct & RDMAP_TERM_D) == !t->ddp_len);
	CHECK(!(t->hdrct & RDMAP_TERM_R) || t->ddp_len);
}

/* Forward only, except that a Terminate may turn out not to have left */
static void check_state(struct world *w)
{
	const struct rdmap_stream *s = &w->s;

	CHECK(w->state == RDMAP_OPEN || s->state != RDMAP_OPEN);
	CHECK((w->state == RDMAP_TERM_RCVD) <= (s->state == RDMAP_TERM_RCVD));
	CHECK((s->state == RDMAP_FAULTED || s->state == RDMAP_TERM_SENT) <= (s->term.fault != 0));
	CHECK((s->state == RDMAP_TERM_RCVD) <= (s->peer_term.fault != 0));
	if (w->first.fault)
		CHECK(!memcmp(&w->first, &s->term, sizeof(w->first)));
	w->first = s->term;
	w->state = s->state;
	check_term(&s->term);
	check_term(&s->peer_term);
}

static void check_rings(const struct world *w)
{
	const struct rdmap_stream *s = &w->s;
	__u32 held = rdmap_ring_count(s->in_head, s->in_tail, SLOTS);
	__u32 waiting = rdmap_ring_count(s->in_next, s->in_tail, SLOTS);
	__u32 built = rdmap_ring_count(s->in_head, s->in_next, SLOTS);

	CHECK(held <= SLOTS && waiting <= held && built <= held && waiting + built == held);
	CHECK(rdmap_outstanding(s) <= ORD);
	CHECK(w->asked - w->done == rdmap_outstanding(s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct mpa_config config = { .rev = 2, .ird = IRD, .ord = ORD };
	static struct world w;
	struct input in = { data, size };
	__u8 how = next(&in);
	struct mpa_conn *c = &w.s.ddp.mpa;

	begin();
	memset(&w, 0, sizeof(w));
	w.v = (struct mpa_txv){
		.iov = w.iov, .iov_cap = 256, .scratch = w.scratch, .scratch_cap = 8192
	};
	rdmap_stream_init(&w.s, how & 1 ? MPA_RESPONDER : MPA_INITIATOR, &config, SLOTS, SLOTS);
	c->state = MPA_OPEN;
	c->mulpdu = MULPDU;
	c->flags = how & 2 ? MPA_F_P2P : 0;
	c->rtr = how & 2 ? MPA_RTR_SEND : 0;
	c->ird = IRD;
	c->ord = ORD;
	CHECK(!rdmap_stream_started(&w.s));
	w.posted = 2;
	while (in.left) {
		command(&w, &in);
		check_memory();
		check_state(&w);
		check_rings(&w);
	}
	return 0;
}
