/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Placement out of order (RFC 5041 section 5.3, RFC 5044 appendix A): TCP's queue of segments
 * behind a lost one is looked at when TCP acknowledges a segment of it.
 *
 * The queue is TCP's: it may collapse, prune and merge what stands there, so nothing is kept but
 * sequence numbers. A run is a stretch of them without a gap, as SACK tells of them; a run begins
 * with a segment, which is taken for the begin of an FPDU, or a marker tells of one. An FPDU is
 * believed when its CRC is good; then the next begins behind it. A Write or an answer to a Read of
 * ours is placed if its STag and bounds allow it; all else waits for its turn, faults too. When
 * its turn comes an FPDU that was placed is not copied again: its first octets are compared, and
 * its header goes the way of all others, so delivery is in order, and rights are looked at again.
 * One that an earlier FPDU was placed over since then is copied again.
 *
 * A peer chooses how its segments come. Each FPDU is checked once, placed or not, and a look has a
 * budget; what it does not come to is looked at with the next acknowledgement.
 */
#include <linux/interval_tree_generic.h>
#include <linux/slab.h>

#include "kmod/conn.h"
#include "kmod/ooo.h"
#include "kmod/region.h"

#define FPDU_MAX 16896 /* longer ones wait for their turn */
#define COUNT_MAX 4096 /* FPDUs of a connection that are remembered */
#define RUNS_MAX 256
#define BUDGET 131072 /* octets that one look copies and checks */
#define STEP 64	      /* what a step from one thing to the next counts for */
#define GFP_HERE (GFP_ATOMIC | __GFP_NOWARN)

struct ooo_run {
	struct list_head list;
	__u32 begin, end;
	__u32 next; /* where the next FPDU begins */
	bool known; /* it does begin there; else that is a guess */
};

/* Of the payloads that are in their places: by their addresses in the program */
#define PLACE_FIRST(fpdu) ((fpdu)->first)
#define PLACE_LAST(fpdu) ((fpdu)->last)
INTERVAL_TREE_DEFINE(struct ooo_fpdu, place, __u64, subtree_last, PLACE_FIRST, PLACE_LAST,
		     static inline, places)

void conn_ooo_init(struct conn_ooo *o)
{
	INIT_LIST_HEAD(&o->runs);
	o->fpdus = RB_ROOT_CACHED;
	o->places = RB_ROOT_CACHED;
}

static void run_free(struct conn_ooo *o, struct ooo_run *run)
{
	list_del(&run->list);
	o->run_count--;
	kfree(run);
}

static void fpdu_unplace(struct conn_ooo *o, struct ooo_fpdu *fpdu)
{
	if (fpdu->placed)
		places_remove(fpdu, &o->places);
	fpdu->placed = false;
}

static void fpdu_free(struct conn_ooo *o, struct ooo_fpdu *fpdu)
{
	fpdu_unplace(o, fpdu);
	rb_erase_cached(&fpdu->node, &o->fpdus);
	o->fpdu_count--;
	kfree(fpdu);
}

static struct ooo_fpdu *fpdu_first(const struct conn_ooo *o)
{
	return rb_entry_safe(rb_first_cached(&o->fpdus), struct ooo_fpdu, node);
}

void conn_ooo_uninit(struct conn_ooo *o)
{
	struct ooo_run *run, *next_run;
	struct ooo_fpdu *fpdu;

	list_for_each_entry_safe(run, next_run, &o->runs, list) run_free(o, run);
	while ((fpdu = fpdu_first(o)) != NULL)
		fpdu_free(o, fpdu);
	kfree(o->buf);
	o->buf = NULL;
}

static void spend(struct conn_ooo *o, __u32 octets)
{
	o->work += octets;
	o->budget -= min(o->budget, octets);
}

/* --- TCP's queue ------------------------------------------------------------------------------ */

static struct sk_buff *queue_at(const struct tcp_sock *tp, __u32 seq)
{
	struct rb_node *node = tp->out_of_order_queue.rb_node;

	while (node) {
		struct sk_buff *skb = rb_to_skb(node);

		if (before(seq, TCP_SKB_CB(skb)->seq))
			node = node->rb_left;
		else if (!before(seq, TCP_SKB_CB(skb)->seq + skb->len))
			node = node->rb_right;
		else
			return skb;
	}
	return NULL;
}

/* False: not all of it is there, or it lies in too many pieces */
static bool queue_copy(struct conn *c, __u32 seq, __u8 *to, __u32 n)
{
	spend(&c->ooo, n);
	while (n) {
		struct sk_buff *skb = queue_at(tcp_sk(c->sk), seq);
		__u32 off, part;

		spend(&c->ooo, STEP);
		if (!skb || !c->ooo.budget)
			return false;
		off = seq - TCP_SKB_CB(skb)->seq;
		part = min(n, skb->len - off);
		if (skb_copy_bits(skb, off, to, part))
			return false;
		seq += part;
		to += part;
		n -= part;
	}
	return true;
}

/* --- FPDUs that were checked ------------------------------------------------------------------ */

static struct ooo_fpdu *fpdu_at(const struct conn_ooo *o, __u32 seq)
{
	struct rb_node *node = o->fpdus.rb_root.rb_node;

	while (node) {
		struct ooo_fpdu *fpdu = rb_entry(node, struct ooo_fpdu, node);

		if (fpdu->seq == seq)
			return fpdu;
		node = before(seq, fpdu->seq) ? node->rb_left : node->rb_right;
	}
	return NULL;
}

/* Where those end that stand one behind the other from @seq on, or where the budget does */
static __u32 fpdus_skip(struct conn_ooo *o, __u32 seq)
{
	struct ooo_fpdu *fpdu = fpdu_at(o, seq);

	while (fpdu && fpdu->seq == seq && o->budget) {
		seq += fpdu->octets;
		fpdu = rb_entry_safe(rb_next(&fpdu->node), struct ooo_fpdu, node);
		spend(o, STEP);
	}
	return seq;
}

static bool fpdu_less(struct rb_node *a, const struct rb_node *b)
{
	return before(rb_entry(a, struct ooo_fpdu, node)->seq,
		      rb_entry(b, struct ooo_fpdu, node)->seq);
}

/* NULL: it is not remembered, and may be checked again */
static struct ooo_fpdu *fpdu_new(struct conn_ooo *o, __u32 seq, __u32 octets, const __u8 *head)
{
	struct ooo_fpdu *fpdu = NULL;

	if (o->fpdu_count < COUNT_MAX)
		fpdu = kzalloc(sizeof(*fpdu), GFP_HERE);
	if (!fpdu)
		return NULL;
	fpdu->seq = seq;
	fpdu->octets = octets;
	memcpy(fpdu->head, head, sizeof(fpdu->head));
	rb_add_cached(&fpdu->node, &o->fpdus, fpdu_less);
	o->fpdu_count++;
	return fpdu;
}

struct ooo_fpdu *conn_ooo_find(struct conn *c, __u32 seq, __u32 octets)
{
	struct ooo_run *run, *next_run;
	struct conn_ooo *o = &c->ooo;
	struct ooo_fpdu *fpdu;

	list_for_each_entry_safe(run, next_run, &o->runs, list)
	{
		if (after(run->end, seq))
			break;
		run_free(o, run);
	}
	while ((fpdu = fpdu_first(o)) != NULL && before(fpdu->seq, seq))
		fpdu_free(o, fpdu);
	if (!fpdu || fpdu->seq != seq || fpdu->octets != octets || !fpdu->placed)
		return NULL;
	return fpdu;
}

void conn_ooo_forget(struct conn *c, struct ooo_fpdu *fpdu)
{
	c->ooo.kept++;
	fpdu_free(&c->ooo, fpdu);
}

/* What is behind @seq in the stream, and was placed there before, is to be copied again */
static void places_overwritten(struct conn_ooo *o, __u32 seq, const struct ddp_seg *seg)
{
	const __u64 last = seg->to + seg->len - 1;
	struct ooo_fpdu *fpdu, *next;

	for (fpdu = places_iter_first(&o->places, seg->to, last); fpdu; fpdu = next) {
		next = places_iter_next(fpdu, seg->to, last);
		if (after(fpdu->seq, seq))
			fpdu_unplace(o, fpdu);
	}
}

void conn_ooo_written(struct conn *c, const struct ddp_seg *seg)
{
	if (seg->len)
		places_overwritten(&c->ooo, c->rx.seq - c->rx.have, seg);
}

/* --- placing ---------------------------------------------------------------------------------- */

/* The right that the segment takes; 0: it waits for its turn */
static unsigned int access_of(const struct ddp_seg *seg)
{
	if (!seg->tagged || !seg->len || (seg->rsvdulp & RDMAP_RV) != RDMAP_RV1)
		return 0;
	switch (seg->rsvdulp & RDMAP_OP) {
	case RDMAP_WRITE:
		return DDP_REMOTE_WRITE;
	case RDMAP_READ_RESP:
		return DDP_LOCAL_WRITE; /* only sinks of Reads under way have it */
	default:
		return 0;
	}
}

static void fpdu_place(struct conn *c, __u32 seq, const __u8 *head, const struct mpa_fpdu *f)
{
	struct conn_ooo *o = &c->ooo;
	struct ooo_fpdu *fpdu = fpdu_new(o, seq, f->used, head);
	unsigned int access;
	struct ddp_seg seg;

	if (!fpdu || ddp_rx_parse(f->ulpdu, f->len, &seg))
		return;
	access = access_of(&seg);
	if (!access || conn_region_place(c, &seg, access, true))
		return;
	places_overwritten(o, seq, &seg);
	fpdu->first = seg.to;
	fpdu->last = seg.to + seg.len - 1;
	fpdu->placed = true;
	places_insert(fpdu, &o->places);
	o->placed++;
	o->octets += seg.len;
}

/* Octets behind the last marker position at @seq */
static __u16 phase_at(const struct conn *c, __u32 seq)
{
	__u32 begin = c->rx.seq - c->rx.have; /* of the FPDU whose turn it is */

	return (c->s.ddp.mpa.rx_phase + (seq - begin)) % MPA_MARKER_EVERY;
}

static bool buf_get(struct conn_ooo *o, __u32 octets)
{
	if (o->cap >= octets)
		return true;
	kfree(o->buf);
	o->buf = kmalloc(octets, GFP_HERE);
	o->cap = o->buf ? octets : 0;
	return o->buf;
}

/* The FPDU at @seq: its octets; 0: not all of it is there; -EPROTO: it is none, or too long */
static int fpdu_take(struct conn *c, __u32 seq, __u32 there)
{
	const struct mpa_conn *mpa = &c->s.ddp.mpa;
	__u16 phase = phase_at(c, seq);
	__u8 head[MPA_AHEAD_HEAD];
	struct mpa_fpdu f;
	int rc;

	if (there < sizeof(head) || !queue_copy(c, seq, head, sizeof(head)))
		return 0;
	rc = mpa_ahead_look(mpa, phase, head, sizeof(head), &f);
	if (rc != -EAGAIN)
		return rc ? -EPROTO : f.used;
	if (f.used > FPDU_MAX || !buf_get(&c->ooo, f.used))
		return -EPROTO;
	if (f.used > there || !queue_copy(c, seq, c->ooo.buf, f.used))
		return 0;
	if (mpa_ahead_look(mpa, phase, c->ooo.buf, f.used, &f))
		return -EPROTO;
	fpdu_place(c, seq, head, &f);
	return f.used;
}

/* --- runs ------------------------------------------------------------------------------------- */

/* Goes on to the first FPDU that a marker tells of; false: none does yet */
static bool marker_find(struct conn *c, struct ooo_run *run)
{
	/* A segment may begin at any octet */
	__u32 at = run->next + -(__u32)phase_at(c, run->next) % MPA_MARKER_EVERY;
	__u8 marker[MPA_MARKER_LEN];

	for (; !after(at + MPA_MARKER_LEN, run->end); at += MPA_MARKER_EVERY) {
		if (!queue_copy(c, at, marker, sizeof(marker)))
			return false;
		if (!before(at - mpa_ahead_back(marker), run->next)) {
			run->next = at - mpa_ahead_back(marker);
			return true;
		}
		/* None begins before it that is all there: this is not looked at again */
		run->next = at + MPA_MARKER_LEN;
	}
	return false;
}

static void run_lost(struct ooo_run *run)
{
	run->known = false;
	run->next = run->end; /* perhaps the next segment begins with one */
}

/* False: the budget has ended, and there is more to look at */
static bool run_look(struct conn *c, struct ooo_run *run)
{
	bool marked = c->s.ddp.mpa.flags & MPA_F_RX_MARKERS;
	struct conn_ooo *o = &c->ooo;
	int octets;

	if (marked && !run->known && !marker_find(c, run))
		return o->budget;
	for (;;) {
		run->next = fpdus_skip(o, run->next);
		if (!before(run->next, run->end))
			return true;
		octets = o->budget ? fpdu_take(c, run->next, run->end - run->next) : 0;
		if (octets < 0)
			run_lost(run);
		if (octets <= 0)
			return o->budget;
		run->known = true;
		run->next += octets;
	}
}

static struct ooo_run *run_new(struct conn_ooo *o, struct list_head *behind, __u32 begin)
{
	struct ooo_run *run;

	if (o->run_count >= RUNS_MAX)
		return NULL;
	run = kmalloc(sizeof(*run), GFP_HERE);
	if (!run)
		return NULL;
	*run = (struct ooo_run){ .begin = begin, .end = begin, .next = begin };
	list_add_tail(&run->list, behind);
	o->run_count++;
	return run;
}

/* The run from @begin to @end: those that it now consists of become one */
static struct ooo_run *run_of(struct conn_ooo *o, __u32 begin, __u32 end)
{
	struct ooo_run *run, *next, *found = NULL;

	list_for_each_entry_safe(run, next, &o->runs, list)
	{
		if (before(run->end, begin))
			continue;
		if (after(run->begin, end))
			break;
		if (found)
			run_free(o, run);
		else
			found = run;
	}
	if (!found)
		found = run_new(o, &run->list, begin);
	if (!found)
		return NULL;
	if (before(begin, found->begin)) {
		found->begin = found->next = begin;
		found->known = false;
	}
	if (after(end, found->end))
		found->end = end;
	return found;
}

static bool block_is(const struct tcp_sack_block *a, const struct tcp_sack_block *b)
{
	return a->start_seq == b->start_seq && a->end_seq == b->end_seq;
}

void conn_ooo_look(struct conn *c)
{
	const struct tcp_sock *tp = tcp_sk(c->sk);
	struct conn_ooo *o = &c->ooo;

	if (RB_EMPTY_ROOT(&tp->out_of_order_queue) || !(c->s.ddp.mpa.flags & MPA_F_CRC) ||
	    c->state != CONN_DDP || rdmap_state_of(&c->s) != RDMAP_OPEN)
		return;
	o->budget = BUDGET;
	for (int i = 0; i < min_t(int, tp->rx_opt.num_sacks, TCP_NUM_SACKS); i++) {
		const struct tcp_sack_block *block = &tp->selective_acks[i];
		struct ooo_run *run;

		if (block_is(block, &o->seen[i]))
			continue;
		run = run_of(o, block->start_seq, block->end_seq);
		if (!run || run_look(c, run))
			o->seen[i] = *block;
	}
}
