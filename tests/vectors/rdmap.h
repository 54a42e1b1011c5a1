/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RDMAP messages as FPDUs with their CRC, as Wireshark finds them good. The unit tests and the
 * kernel module's self-test read them.
 */
#ifndef TESTS_VECTORS_RDMAP_H
#define TESTS_VECTORS_RDMAP_H

#include "rdmap/rdmap.h"

#define VECTOR_RDMAP_MAX 128
#define VECTOR_ZEROES "0000000000000000"
#define VECTOR_READ                                                                            \
	"4141 00000000 00000001 00000001 00000000 aabbccdd 0000000000001000 00000018 01020304" \
	"0000000000002000"

/* What is sent: the ready-to-receive message of the form @rtr, or else @wr, with @msn for a Send */
static const struct rdmap_vector {
	const char *name;
	__u8 rtr;
	__u32 msn;
	struct rdmap_wr wr;
	const char *wire;
} rdmap_vectors[] = {
	{ .name = "RTR Write",
	  .rtr = MPA_RTR_WRITE,
	  .wire = "000e c140 00000001" VECTOR_ZEROES "ebd34c5f" },
	{ .name = "RTR Read",
	  .rtr = MPA_RTR_READ,
	  .wire = "002e 4141 00000000 00000001 00000001 00000000 00000000" VECTOR_ZEROES
		  "00000000 00000001" VECTOR_ZEROES "ba10e3c9" },
	{ .name = "RTR Send",
	  .rtr = MPA_RTR_SEND,
	  .wire = "0012 4143 00000000 00000000 00000001 00000000 587be8c4" },
	{ .name = "Read Request",
	  .msn = 1,
	  .wr = { .op = RDMAP_READ_REQ,
		  .len = 24,
		  .stag = 0x01020304,
		  .to = 0x2000,
		  .sink_stag = 0xAABBCCDD,
		  .sink_to = 0x1000 },
	  .wire = "002e" VECTOR_READ "691ad9ae" },
	{ .name = "Immediate",
	  .msn = 5,
	  .wr = { .op = RDMAP_IMM, .imm = 0x494d4d4441544138 },
	  .wire = "001a 4148 00000000 00000000 00000005 00000000 494d4d4441544138 f9071909" },
};

/*
 * What is answered to the ULPDU @in, the message @msn of its queue, where there is neither a
 * receive nor memory: the Terminate of @fault. Without @in the fault is MPA's.
 */
static const struct terminate_vector {
	const char *name;
	__u32 msn;
	const char *in;
	__u32 fault;
	const char *wire;
} terminate_vectors[] = {
	{ "Terminate of a Send", 7, "4143 00000000 00000000 00000007 00000000 0102030405",
	  DDP_E_U_NOBUF,
	  "002a 4147 00000000 00000002 00000001 00000000 1202c000 0017"
	  "4143 00000000 00000000 00000007 00000000 734642fc" },
	{ "Terminate of a Read Request", 1, VECTOR_READ, RDMAP_E_BOUNDS,
	  "0046 4147 00000000 00000002 00000001 00000000 0101e000 002e" VECTOR_READ "16317c8e" },
	{ "Terminate of MPA", 1, NULL, MPA_E_CRC,
	  "0016 4147 00000000 00000002 00000001 00000000 20020000 7fe42585" },
};

#endif
