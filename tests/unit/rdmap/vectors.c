/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages of tests/vectors, octet for octet, and Atomics, whose STag chance chooses.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "base/bits.h"
#include "tests/unit/rdmap/pair.h"
#include "tests/vectors/rdmap.h"

#define ZEROES_8 "0000000000000000"

static struct pair *p;

static void teardown(void)
{
	pair_destroy(p);
}

static void open_pair(__u8 flags, __u8 rtr)
{
	p = pair_create(&(struct pair_options){
		.flags = MPA_F_CRC | flags, .rtr = rtr, .ird = 4, .ord = 4 });
}

static void assert_wire(const struct end *e, const char *name, const char *hex)
{
	__u8 want[VECTOR_RDMAP_MAX];
	size_t n = unhex(hex, want);

	cr_assert_eq(e->wire_len, n, "%s: %zu octets instead of %zu", name, e->wire_len, n);
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(e->wire[i], want[i], "%s: octet %zu is %02x instead of %02x", name, i,
			     e->wire[i], want[i]);
}

TestSuite(rdmap_vectors, .fini = teardown);

static void send_rtr(const struct rdmap_vector *row)
{
	open_pair(MPA_F_P2P, row->rtr);
	cr_assert_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), 1);
	end_flush(&p->a);
	assert_wire(&p->a, row->name, row->wire);
	cr_assert_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), 0, "one only");
	cr_assert_eq(rdmap_outstanding(&p->a.s), row->rtr == MPA_RTR_READ);
}

static void send_wr(const struct rdmap_vector *row)
{
	open_pair(0, 0);
	p->a.s.ddp.tx_msn[RDMAP_QN_SEND] = row->msn;
	cr_assert_eq(end_send(&p->a, &row->wr), 0);
	assert_wire(&p->a, row->name, row->wire);
}

Test(rdmap_vectors, are_sent)
{
	for (size_t i = 0; i < base_array_size(rdmap_vectors); i++) {
		const struct rdmap_vector *row = &rdmap_vectors[i];

		if (i)
			pair_destroy(p);
		if (row->rtr)
			send_rtr(row);
		else
			send_wr(row);
	}
}

Test(rdmap_vectors, atomic_request_and_response)
{
	struct rdmap_wr wr = { .op = RDMAP_ATOMIC_REQ,
			       .aop = RDMAP_CMP_SWAP,
			       .to = PAIR_TO,
			       .data = 0x1111111111111111,
			       .mask = 0x2222222222222222,
			       .compare = 0x3333333333333333,
			       .compare_mask = 0x4444444444444444 };
	__u8 want[128];
	size_t at = 0, n, len;
	const __u8 *ulpdu;

	open_pair(0, 0);
	wr.stag = end_stag(&p->b, RW);
	p->b.mem[RW][0] = 0x0102030405060708;
	cr_assert_eq(end_send(&p->a, &wr), 0);
	ulpdu = end_ulpdu(&p->a, &at, &len);
	n = unhex("414a 00000000 00000001 00000001 00000000 00000002 00000000 00000000"
		  "0000000000100000 1111111111111111 2222222222222222 3333333333333333"
		  "4444444444444444",
		  want);
	memcpy(want + 26, &(__be32){ htobe32(wr.stag) }, 4);
	cr_assert_eq(len, n);
	cr_assert_arr_eq(ulpdu, want, n);

	cr_assert_eq(end_receive(&p->a, &p->b), IWARP_OK);
	cr_assert_eq(end_respond(&p->b), 1);
	at = 0;
	ulpdu = end_ulpdu(&p->b, &at, &len);
	n = unhex("414b 00000000 00000003 00000001 00000000 00000000 0102030405060708", want);
	cr_assert_eq(len, n);
	cr_assert_arr_eq(ulpdu, want, n);
}

/* RFC 7306 section 5.1.1: what a FetchAdd says in the fields of a comparison */
Test(rdmap_vectors, fetch_add_request)
{
	struct rdmap_wr wr = { .op = RDMAP_ATOMIC_REQ,
			       .aop = RDMAP_FETCH_ADD,
			       .stag = 7,
			       .to = 8,
			       .data = 1,
			       .compare = 5,
			       .compare_mask = 6 };
	size_t at = 0, len;
	__u8 want[128];

	open_pair(0, 0);
	cr_assert_eq(end_send(&p->a, &wr), 0);
	unhex("414a 00000000 00000001 00000001 00000000 00000000 00000000 00000007"
	      "0000000000000008 0000000000000001" ZEROES_8 ZEROES_8 "ffffffffffffffff",
	      want);
	cr_assert_arr_eq(end_ulpdu(&p->a, &at, &len), want, 70);
}

static enum ddp_stag_error out_of_bounds(void *ctx, __u32 stag, __u64 to, __u64 len,
					 unsigned int access, __u8 **addr)
{
	return DDP_STAG_BOUNDS;
}

/* What comes of the ULPDU, and of the answer that it may ask for */
static __u32 provoke(const struct terminate_vector *row)
{
	static const struct rdmap_source source = { .get = out_of_bounds };
	__u8 ulpdu[VECTOR_RDMAP_MAX];
	size_t n = unhex(row->in, ulpdu);

	p->b.recv_posted = 0;
	p->b.s.ddp.rx_msn[RDMAP_QN_SEND] = row->msn;
	if (!end_take(&p->b, ulpdu, n))
		cr_assert_eq(rdmap_tx_response(&p->b.s, &p->b.slots, &p->b.v, &source), -EPROTO);
	return p->b.s.term.fault;
}

Test(rdmap_vectors, terminates)
{
	for (size_t i = 0; i < base_array_size(terminate_vectors); i++) {
		const struct terminate_vector *row = &terminate_vectors[i];

		if (i)
			pair_destroy(p);
		open_pair(0, 0);
		if (row->in)
			cr_assert_eq(provoke(row), row->fault, "%s", row->name);
		else
			rdmap_fault(&p->b.s, row->fault);
		cr_assert_eq(rdmap_tx_terminate(&p->b.s, &p->b.v), 1);
		end_flush(&p->b);
		assert_wire(&p->b, row->name, row->wire);
	}
}
