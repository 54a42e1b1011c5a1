/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers to Reads and Atomics: in order, once, and only from memory that may be read.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "base/bits.h"
#include "tests/unit/rdmap/pair.h"

static struct pair *p;

static void setup(void)
{
	p = pair_create(&(struct pair_options){ .flags = MPA_F_CRC, .ird = 6, .ord = 6 });
}

static void teardown(void)
{
	pair_destroy(p);
}

TestSuite(rdmap_response, .init = setup, .fini = teardown);

static struct rdmap_wr read_wr(enum pair_region source, __u64 to, __u32 len)
{
	return (struct rdmap_wr){ .op = RDMAP_READ_REQ,
				  .len = len,
				  .stag = end_stag(&p->b, source),
				  .to = to,
				  .sink_stag = end_stag(&p->a, RW),
				  .sink_to = PAIR_TO + 64,
				  .cookie = to };
}

static struct rdmap_wr add_wr(enum pair_region source, __u64 to)
{
	return (struct rdmap_wr){ .op = RDMAP_ATOMIC_REQ,
				  .aop = RDMAP_FETCH_ADD,
				  .stag = end_stag(&p->b, source),
				  .to = to,
				  .data = 1,
				  .cookie = to };
}

/* The request arrives at b, which has not answered yet */
static void request(const struct rdmap_wr *wr)
{
	cr_assert_eq(end_send(&p->a, wr), 0);
	cr_assert_eq(end_receive(&p->a, &p->b), IWARP_OK);
}

static int respond(void)
{
	return rdmap_tx_response(&p->b.s, &p->b.slots, &p->b.v, &p->b.source);
}

Test(rdmap_response, nothing_owed)
{
	cr_assert_eq(respond(), 0);
}

Test(rdmap_response, segments_of_a_large_one)
{
	struct rdmap_wr wr = read_wr(READ_ONLY, PAIR_TO + 10, 5000);
	static const __u32 cuts[] = { 0, 1426, 2852, 4278, 5000 };
	size_t at = 0, len;

	request(&wr);
	cr_assert_eq(end_respond(&p->b), 4);
	cr_assert_eq(p->b.lookups, 4, "the source is looked up for each");
	for (unsigned int i = 0; i < 4; i++) {
		const __u8 *u = end_ulpdu(&p->b, &at, &len);

		cr_assert_eq(u[0], i == 3 ? 0xC1 : 0x81);
		cr_assert_eq(u[1], 0x42);
		cr_assert_eq(base_get_be32(u + 2), wr.sink_stag);
		cr_assert_eq(base_get_be64(u + 6), wr.sink_to + cuts[i]);
		cr_assert_eq(len, 14 + cuts[i + 1] - cuts[i]);
		cr_assert_arr_eq(u + 14, end_mem(&p->b, READ_ONLY) + 10 + cuts[i], len - 14);
	}
	cr_assert_null(end_ulpdu(&p->b, &at, &len));
}

/* Reads and Atomics are answered in the order of their requests, whatever they are */
Test(rdmap_response, in_order)
{
	__u64 *number = (__u64 *)(void *)end_mem(&p->b, RW);
	__u64 found[2] = { 0 };
	struct rdmap_wr wrs[] = {
		read_wr(RW, PAIR_TO, 8), add_wr(RW, PAIR_TO), read_wr(RW, PAIR_TO, 8),
		add_wr(RW, PAIR_TO),	 add_wr(RW, PAIR_TO), read_wr(RW, PAIR_TO, 3000),
	};

	*number = 40;
	for (unsigned int i = 0; i < base_array_size(wrs); i++) {
		wrs[i].cookie = i;
		wrs[i].sink_to = PAIR_TO + 64 + 8 * i;
		request(&wrs[i]);
	}
	cr_assert_eq(end_respond(&p->b), 8);
	cr_assert_eq(pair_run(p), IWARP_OK);
	cr_assert_eq(p->a.nevents, 6);
	for (unsigned int i = 0; i < 6; i++)
		cr_assert_eq(p->a.events[i].cookie, i);
	found[0] = p->a.mem[RW][8];
	found[1] = p->a.mem[RW][10];
	cr_assert_eq(found[0], 40, "before the first addition");
	cr_assert_eq(found[1], 41, "between the first and the second");
	cr_assert_eq(p->a.events[1].value, 40);
	cr_assert_eq(p->a.events[3].value, 41);
	cr_assert_eq(p->a.events[4].value, 42);
	cr_assert_eq(*number, 43);
}

/* Atomic Responses have a queue of their own, whose numbers do not count Reads */
Test(rdmap_response, atomic_responses_are_numbered_from_1)
{
	size_t at = 0, len;

	for (unsigned int i = 0; i < 3; i++) {
		struct rdmap_wr read = read_wr(RW, PAIR_TO, 0), add = add_wr(RW, PAIR_TO);

		request(&read);
		request(&add);
		end_respond(&p->b);
		end_ulpdu(&p->b, &at, &len);
		cr_assert_eq(base_get_be32(end_ulpdu(&p->b, &at, &len) + 10), i + 1);
		cr_assert_eq(pair_run(p), IWARP_OK);
		at = 0;
	}
}

Test(rdmap_response, a_read_of_nothing_looks_at_nothing)
{
	struct rdmap_wr wr = { .op = RDMAP_READ_REQ,
			       .stag = 0xDEADBEEF,
			       .to = ~0ull,
			       .sink_stag = 0x12345678,
			       .sink_to = 0xFEDCBA9876543210,
			       .cookie = 9 };
	size_t at = 0, len;
	const __u8 *u;

	request(&wr);
	cr_assert_eq(end_respond(&p->b), 1);
	cr_assert_eq(p->b.lookups, 0);
	u = end_ulpdu(&p->b, &at, &len);
	cr_assert_eq(len, 14);
	cr_assert_eq(u[0], 0xC1);
	cr_assert_eq(base_get_be32(u + 2), wr.sink_stag, "echoed");
	cr_assert_eq(base_get_be64(u + 6), wr.sink_to, "echoed");
	cr_assert_eq(pair_run(p), IWARP_OK);
	cr_assert_eq(p->a.events[0].cookie, 9);
}

struct source_row {
	enum pair_region region;
	__u32 stag_flip;
	__u64 to;
	__u32 len;
	enum iwarp_fault want;
};

static void check_fault(const struct end *e, enum iwarp_fault f, __u8 hdrct, __u16 seg_len)
{
	cr_assert_eq(e->s.state, RDMAP_FAULTED);
	cr_assert_eq(e->s.term.fault, f, "%x instead of %x", e->s.term.fault, f);
	cr_assert_eq(e->s.term.hdrct, hdrct);
	cr_assert_eq(e->s.term.seg_len, seg_len);
}

/* RFC 5040 section 7.2: what is wrong with the source of a Read */
Test(rdmap_response, sources_of_reads)
{
	static const struct source_row rows[] = {
		{ RW, 0, PAIR_TO, PAIR_MEM, IWARP_OK },
		{ RW, 0, PAIR_TO + PAIR_MEM - 1, 1, IWARP_OK },
		{ RW, 1, PAIR_TO, 1, RDMAP_E_STAG },
		{ RW, 0x100, PAIR_TO, 1, RDMAP_E_STAG },
		{ RW, 0, PAIR_TO, PAIR_MEM + 1, RDMAP_E_BOUNDS },
		{ RW, 0, PAIR_TO - 1, 1, RDMAP_E_BOUNDS },
		{ WRITE_ONLY, 0, PAIR_TO, 1, RDMAP_E_ACCESS },
		{ FOREIGN, 0, PAIR_TO, 1, RDMAP_E_STREAM },
		{ RW, 0, ~0ull - 3, 5, RDMAP_E_WRAP },
	};

	for (unsigned int i = 0; i < base_array_size(rows); i++) {
		struct rdmap_wr wr = read_wr(rows[i].region, rows[i].to, rows[i].len);
		int rc;

		if (i) {
			teardown();
			setup();
			wr = read_wr(rows[i].region, rows[i].to, rows[i].len);
		}
		wr.stag ^= rows[i].stag_flip;
		request(&wr);
		rc = end_respond(&p->b);
		if (!rows[i].want) {
			cr_assert_gt(rc, 0, "row %u", i);
			continue;
		}
		cr_assert_eq(rc, -EPROTO, "row %u", i);
		check_fault(&p->b, rows[i].want, 0xE0, 46);
		cr_assert_eq(p->b.wire_len, 0, "nothing of it was sent");
		cr_assert_eq(respond(), 0, "and nothing will be");
	}
}

Test(rdmap_response, memory_invalidated_midway_is_not_read)
{
	struct rdmap_wr wr = read_wr(RW, PAIR_TO + 8, 5000);
	struct rdmap_read_req left;

	wr.sink_stag = end_stag(&p->a, RW);
	request(&wr);
	cr_assert_eq(respond(), 1);
	cr_assert_eq(respond(), 1);
	cr_assert_eq(ddp_stag_invalidate(&p->b.stags, wr.stag, PAIR_PD), DDP_STAG_OK);
	cr_assert_eq(respond(), -EPROTO);
	check_fault(&p->b, RDMAP_E_STAG, 0xE0, 46);
	memcpy(&left, p->b.s.term.hdr + 18, sizeof(left));
	cr_assert_eq(p->b.s.term.ddp_len, 18);
	cr_assert_eq(be32toh(left.sink_stag), wr.sink_stag);
	cr_assert_eq(be64toh(left.sink_to), wr.sink_to + 2852);
	cr_assert_eq(be32toh(left.size), 5000 - 2852);
	cr_assert_eq(be32toh(left.src_stag), wr.stag);
	cr_assert_eq(be64toh(left.src_to), wr.to + 2852);

	cr_assert_eq(rdmap_tx_terminate(&p->b.s, &p->b.v), 1);
	end_flush(&p->b);
	cr_assert_eq(end_receive(&p->b, &p->a), IWARP_OK);
	cr_assert_eq(p->a.s.state, RDMAP_TERM_RCVD);
	cr_assert_arr_eq(p->a.s.peer_term.hdr + 18, &left, sizeof(left));
}

/* The fault names the request it is about: the second one, with its own number */
Test(rdmap_response, the_header_returned_is_that_of_the_request)
{
	struct rdmap_wr good = read_wr(RW, PAIR_TO, 8), bad = read_wr(RW, 0, 8);
	struct ddp_untagged h;

	request(&good);
	request(&bad);
	cr_assert_eq(respond(), 1);
	cr_assert_eq(respond(), -EPROTO);
	memcpy(&h, p->b.s.term.hdr, sizeof(h));
	cr_assert_eq(h.ctl, 0x41);
	cr_assert_eq(h.rsvdulp, 0x41);
	cr_assert_eq(be32toh(h.qn), 1);
	cr_assert_eq(be32toh(h.msn), 2);
	cr_assert_eq(be32toh(h.mo), 0);
}

Test(rdmap_response, without_room_the_answer_waits)
{
	struct rdmap_wr read = read_wr(RW, PAIR_TO, 100), add = add_wr(RW, PAIR_TO + 8);
	__u64 *number = &p->b.mem[RW][1];

	*number = 1;
	request(&read);
	request(&add);
	p->b.v.scratch_cap = p->b.v.used;
	cr_assert_eq(respond(), -ENOBUFS);
	p->b.v.scratch_cap = sizeof(p->b.scratch);
	cr_assert_eq(respond(), 1);
	end_flush(&p->b);
	rdmap_tx_commit(&p->b.s);
	p->b.v.scratch_cap = 0;
	cr_assert_eq(respond(), -ENOBUFS);
	cr_assert_eq(respond(), -ENOBUFS);
	p->b.v.scratch_cap = sizeof(p->b.scratch);
	cr_assert_eq(respond(), 1);
	cr_assert_eq(*number, 2, "executed once");
	end_flush(&p->b);
	cr_assert_eq(end_receive(&p->b, &p->a), IWARP_OK);
	cr_assert_eq(p->a.events[1].value, 1);
}

/* The Read came first, so its octets are gone before the addition changes them */
Test(rdmap_response, an_atomic_waits_for_reads_to_leave)
{
	struct rdmap_wr read = read_wr(RW, PAIR_TO, 16), none = read_wr(RW, PAIR_TO, 0);
	struct rdmap_wr add = add_wr(RW, PAIR_TO);
	__u64 *number = &p->b.mem[RW][0];

	*number = 5;
	request(&none);
	request(&add);
	request(&read);
	request(&add);
	cr_assert_eq(respond(), 1);
	cr_assert_eq(respond(), 1, "a Read of nothing is not waited for");
	cr_assert_eq(respond(), 1);
	cr_assert_eq(respond(), -ENOBUFS);
	cr_assert_eq(*number, 6);
	end_flush(&p->b);
	rdmap_tx_commit(&p->b.s);
	cr_assert_eq(respond(), 1);
	cr_assert_eq(*number, 7);
	end_flush(&p->b);
	cr_assert_eq(end_receive(&p->b, &p->a), IWARP_OK);
	cr_assert_eq(p->a.mem[RW][8], 6);
}

struct holder {
	struct end *end;
	__u8 copy[PAIR_MEM];
	size_t used, largest;
	bool full;
};

static enum ddp_stag_error holder_get(void *ctx, __u32 stag, __u64 to, __u64 len,
				      unsigned int access, __u8 **addr)
{
	struct holder *h = ctx;

	return h->end->source.get(h->end, stag, to, len, access, addr);
}

static const __u8 *holder_hold(void *ctx, const __u8 *addr, size_t len)
{
	struct holder *h = ctx;
	__u8 *copy = h->copy + h->used;

	if (h->full)
		return NULL;
	cr_assert_leq(h->used + len, sizeof(h->copy));
	memcpy(copy, addr, len);
	h->used += len;
	h->largest = base_max(h->largest, len);
	return copy;
}

/*
 * The program writes to its memory while the answer is on its way: the CRC is that of what leaves
 */
Test(rdmap_response, memory_that_changes_is_held)
{
	struct rdmap_wr wr = read_wr(READ_ONLY, PAIR_TO, 5000);
	struct holder h = { .end = &p->b };
	struct rdmap_source source = { holder_get, holder_hold, &h };
	__u8 before[5000];

	memcpy(before, end_mem(&p->b, READ_ONLY), sizeof(before));
	request(&wr);
	for (unsigned int i = 0; i < 4; i++)
		cr_assert_eq(rdmap_tx_response(&p->b.s, &p->b.slots, &p->b.v, &source), 1);
	cr_assert_eq(h.used, 5000, "each octet once");
	cr_assert_eq(h.largest, 1426, "a segment at a time");
	memset(end_mem(&p->b, READ_ONLY), 0xFF, sizeof(before));
	end_flush(&p->b);
	cr_assert_eq(end_receive(&p->b, &p->a), IWARP_OK);
	cr_assert_arr_eq(end_mem(&p->a, RW) + 64, before, sizeof(before));
}

Test(rdmap_response, no_room_to_hold)
{
	struct rdmap_wr wr = read_wr(READ_ONLY, PAIR_TO, 10);
	struct holder h = { .end = &p->b, .full = true };
	struct rdmap_source source = { holder_get, holder_hold, &h };

	request(&wr);
	cr_assert_eq(rdmap_tx_response(&p->b.s, &p->b.slots, &p->b.v, &source), -ENOBUFS);
	h.full = false;
	cr_assert_eq(rdmap_tx_response(&p->b.s, &p->b.slots, &p->b.v, &source), 1);
}

/* The frame did not leave: it is built again, the addition is not done again */
Test(rdmap_response, an_atomic_built_twice_is_executed_once)
{
	struct rdmap_wr add = add_wr(RW, PAIR_TO + 8);
	__u64 *number = &p->b.mem[RW][1];
	struct rdmap_tx_mark mark;

	*number = 7;
	request(&add);
	rdmap_tx_mark(&p->b.s, &mark);
	cr_assert_eq(respond(), 1);
	rdmap_tx_rewind(&p->b.s, &mark);
	p->b.v.niov = p->b.v.used = 0;
	*number += 100; /* by somebody else */
	cr_assert_eq(end_respond(&p->b), 1);
	cr_assert_eq(*number, 108);
	cr_assert_eq(end_receive(&p->b, &p->a), IWARP_OK);
	cr_assert_eq(p->a.events[0].value, 7);
}

Test(rdmap_response, atomics_that_are_refused)
{
	static const struct source_row rows[] = {
		{ RW, 0, PAIR_TO + PAIR_MEM - 8, 0, IWARP_OK },
		{ RW, 0, PAIR_TO + 1, 0, RDMAP_E_CATASTROPHIC },
		{ RW, 0, PAIR_TO + 4, 0, RDMAP_E_CATASTROPHIC },
		{ RW, 1, PAIR_TO, 0, RDMAP_E_STAG },
		{ RW, 0, PAIR_TO + PAIR_MEM, 0, RDMAP_E_BOUNDS },
		{ READ_ONLY, 0, PAIR_TO, 0, RDMAP_E_ACCESS },
		{ WRITE_ONLY, 0, PAIR_TO, 0, RDMAP_E_ACCESS },
		{ FOREIGN, 0, PAIR_TO, 0, RDMAP_E_STREAM },
	};

	for (unsigned int i = 0; i < base_array_size(rows); i++) {
		__u64 before[PAIR_MEM / 8];
		struct rdmap_wr wr;

		if (i) {
			teardown();
			setup();
		}
		wr = add_wr(rows[i].region, rows[i].to);
		wr.stag ^= rows[i].stag_flip;
		memcpy(before, p->b.mem[rows[i].region], sizeof(before));
		request(&wr);
		cr_assert_eq(respond(), rows[i].want ? -EPROTO : 1, "row %u", i);
		cr_assert_eq(!memcmp(before, p->b.mem[rows[i].region], sizeof(before)),
			     rows[i].want != IWARP_OK, "row %u", i);
		if (rows[i].want)
			check_fault(&p->b, rows[i].want, 0xC0, 70);
	}
}

/* Offset and address of a region need not be aligned alike: the memory counts */
Test(rdmap_response, an_atomic_on_an_unaligned_address)
{
	struct rdmap_wr wr = add_wr(RW, PAIR_TO);
	__u8 before[16];

	memcpy(before, end_mem(&p->b, RW), sizeof(before));
	p->b.regions[RW].addr++;
	request(&wr);
	cr_assert_eq(respond(), -EPROTO);
	check_fault(&p->b, RDMAP_E_CATASTROPHIC, 0xC0, 70);
	cr_assert_arr_eq(before, end_mem(&p->b, RW), sizeof(before));
}

/* And so does the offset, as the peer cannot know better */
Test(rdmap_response, an_atomic_on_an_unaligned_offset_of_aligned_memory)
{
	struct rdmap_wr wr = add_wr(RW, PAIR_TO + 1);

	p->b.regions[RW].to++;
	request(&wr);
	cr_assert_eq(respond(), -EPROTO);
	check_fault(&p->b, RDMAP_E_CATASTROPHIC, 0xC0, 70);
}

/* Told when its turn comes: what was asked for before it is still answered */
Test(rdmap_response, an_atomic_of_an_unknown_kind)
{
	__u8 ulpdu[128];
	size_t n = unhex("414a 00000000 00000001 00000002 00000000 00000001 00000000 00000007"
			 "0000000000000008 0000000000000001 0000000000000000 0000000000000000"
			 "ffffffffffffffff",
			 ulpdu);
	struct rdmap_wr read = read_wr(RW, PAIR_TO, 8);

	request(&read);
	cr_assert_eq(end_take(&p->b, ulpdu, n), IWARP_OK);
	cr_assert_eq(respond(), 1);
	rdmap_tx_commit(&p->b.s);
	cr_assert_eq(respond(), -EPROTO);
	check_fault(&p->b, RDMAP_E_OPCODE, 0xC0, 70);
}

/* The reserved bits beside the AOpCode are not looked at */
Test(rdmap_response, reserved_bits_of_an_atomic)
{
	struct rdmap_wr add = add_wr(RW, PAIR_TO);
	__u8 ulpdu[128];
	size_t at = 0, n;
	const __u8 *u;

	cr_assert_eq(end_send(&p->a, &add), 0);
	u = end_ulpdu(&p->a, &at, &n);
	memcpy(ulpdu, u, n);
	memcpy(ulpdu + 18, "\xFF\xFF\xFF\xF0", 4);
	cr_assert_eq(end_take(&p->b, ulpdu, n), IWARP_OK);
	cr_assert_eq(respond(), 1);
}

Test(rdmap_response, an_initiator_answers_behind_its_own_first_message)
{
	__u8 ulpdu[64];
	size_t n = unhex("4141 00000000 00000001 00000001 00000000 aabbccdd 0000000000001000"
			 "00000000 01020304 0000000000002000",
			 ulpdu);

	teardown();
	p = pair_create(&(struct pair_options){
		.flags = MPA_F_P2P, .rtr = MPA_RTR_WRITE, .ird = 1, .ord = 1 });
	cr_assert_eq(end_take(&p->a, ulpdu, n), IWARP_OK);
	cr_assert_eq(rdmap_tx_response(&p->a.s, &p->a.slots, &p->a.v, &p->a.source), 0);
	cr_assert_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), 1);
	cr_assert_eq(rdmap_tx_response(&p->a.s, &p->a.slots, &p->a.v, &p->a.source), 1);
}

Test(rdmap_response, a_connection_that_failed_answers_nothing)
{
	struct rdmap_wr read = read_wr(RW, PAIR_TO, 8);

	request(&read);
	p->b.s.ddp.mpa.state = MPA_FAILED;
	cr_assert_eq(respond(), 0);
	p->b.s.ddp.mpa.state = MPA_OPEN;
	p->b.s.state = RDMAP_TERM_RCVD;
	cr_assert_eq(respond(), 0);
}
