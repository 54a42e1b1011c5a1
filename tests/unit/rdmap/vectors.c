/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whole FPDUs, octet for octet and with their CRC, as Wireshark finds them good.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "base/bits.h"
#include "tests/unit/rdmap/pair.h"

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

static void assert_wire(const struct end *e, const char *hex)
{
	__u8 want[256];
	size_t n = unhex(hex, want);

	cr_assert_eq(e->wire_len, n, "%zu octets instead of %zu", e->wire_len, n);
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(e->wire[i], want[i], "octet %zu is %02x instead of %02x", i,
			     e->wire[i], want[i]);
}

TestSuite(rdmap_vectors, .fini = teardown);

Test(rdmap_vectors, ready_to_receive)
{
	static const struct {
		__u8 rtr;
		const char *fpdu;
	} rows[] = {
		{ MPA_RTR_WRITE, "000e c140 00000001" ZEROES_8 "ebd34c5f" },
		{ MPA_RTR_READ, "002e 4141 00000000 00000001 00000001 00000000 00000000" ZEROES_8
				"00000000 00000001" ZEROES_8 "ba10e3c9" },
		{ MPA_RTR_SEND, "0012 4143 00000000 00000000 00000001 00000000 587be8c4" },
	};

	for (unsigned int i = 0; i < 3; i++) {
		if (i)
			pair_destroy(p);
		open_pair(MPA_F_P2P, rows[i].rtr);
		cr_assert_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), 1);
		end_flush(&p->a);
		assert_wire(&p->a, rows[i].fpdu);
		cr_assert_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), 0, "one only");
		cr_assert_eq(rdmap_outstanding(&p->a.s), rows[i].rtr == MPA_RTR_READ);
	}
}

Test(rdmap_vectors, read_request)
{
	struct rdmap_wr wr = { .op = RDMAP_READ_REQ,
			       .len = 24,
			       .stag = 0x01020304,
			       .to = 0x2000,
			       .sink_stag = 0xAABBCCDD,
			       .sink_to = 0x1000 };

	open_pair(0, 0);
	cr_assert_eq(end_send(&p->a, &wr), 0);
	assert_wire(&p->a, "002e 4141 00000000 00000001 00000001 00000000 aabbccdd 0000000000001000"
			   "00000018 01020304 0000000000002000 691ad9ae");
}

Test(rdmap_vectors, immediate)
{
	struct rdmap_wr wr = { .op = RDMAP_IMM, .imm = 0x494d4d4441544138 };

	open_pair(0, 0);
	p->a.s.ddp.tx_msn[RDMAP_QN_SEND] = 5;
	cr_assert_eq(end_send(&p->a, &wr), 0);
	assert_wire(&p->a, "001a 4148 00000000 00000000 00000005 00000000 494d4d4441544138 "
			   "f9071909");
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

/* Message 7 on QN 0 finds no receive */
Test(rdmap_vectors, terminate_of_a_send)
{
	__u8 ulpdu[64];
	size_t n = unhex("4143 00000000 00000000 00000007 00000000 0102030405", ulpdu);

	open_pair(0, 0);
	p->b.recv_posted = 0;
	p->b.s.ddp.rx_msn[RDMAP_QN_SEND] = 7;
	cr_assert_eq(end_take(&p->b, ulpdu, n), DDP_E_U_NOBUF);
	cr_assert_eq(rdmap_tx_terminate(&p->b.s, &p->b.v), 1);
	end_flush(&p->b);
	assert_wire(&p->b, "002a 4147 00000000 00000002 00000001 00000000 1202c000 0017"
			   "4143 00000000 00000000 00000007 00000000 734642fc");
}

static enum ddp_stag_error out_of_bounds(void *ctx, __u32 stag, __u64 to, __u64 len,
					 unsigned int access, __u8 **addr)
{
	return DDP_STAG_BOUNDS;
}

Test(rdmap_vectors, terminate_of_a_read_request)
{
	static const struct rdmap_source source = { .get = out_of_bounds };
	__u8 ulpdu[64];
	size_t n = unhex("4141 00000000 00000001 00000001 00000000 aabbccdd 0000000000001000"
			 "00000018 01020304 0000000000002000",
			 ulpdu);

	open_pair(0, 0);
	cr_assert_eq(end_take(&p->b, ulpdu, n), IWARP_OK);
	cr_assert_eq(rdmap_tx_response(&p->b.s, &p->b.slots, &p->b.v, &source), -EPROTO);
	cr_assert_eq(rdmap_tx_terminate(&p->b.s, &p->b.v), 1);
	end_flush(&p->b);
	assert_wire(&p->b, "0046 4147 00000000 00000002 00000001 00000000 0101e000 002e"
			   "4141 00000000 00000001 00000001 00000000 aabbccdd 0000000000001000"
			   "00000018 01020304 0000000000002000 16317c8e");
}

Test(rdmap_vectors, terminate_of_mpa)
{
	open_pair(0, 0);
	rdmap_fault(&p->b.s, MPA_E_CRC);
	cr_assert_eq(rdmap_tx_terminate(&p->b.s, &p->b.v), 1);
	end_flush(&p->b);
	assert_wire(&p->b, "0016 4147 00000000 00000002 00000001 00000000 20020000 7fe42585");
}
