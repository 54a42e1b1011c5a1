/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two RDMAP streams wired in memory, each with regions, receives and a record of what happened
 * to it.
 *
 * a: initiator   a.wire ->        b: responder <- b.wire
 */
#ifndef TESTS_UNIT_RDMAP_PAIR_H
#define TESTS_UNIT_RDMAP_PAIR_H

#include "rdmap/rdmap.h"

enum { PAIR_SLOTS = 12, PAIR_RECVS = 8, PAIR_EVENTS = 64, PAIR_PD = 1 };
enum { PAIR_MEM = 16384, PAIR_ROOM = 8192, PAIR_WIRE = 1 << 17 };

/* Regions of an end, all of PAIR_MEM octets at PAIR_TO */
enum pair_region { RW, READ_ONLY, WRITE_ONLY, FOREIGN, SHARED, LOCAL, REGIONS };
#define PAIR_TO 0x100000ull

enum pair_kind { EV_RECV, EV_DONE };

struct pair_event {
	enum pair_kind kind;
	struct rdmap_recv recv; /* EV_RECV */
	__u64 cookie, value;	/* EV_DONE */
};

struct end {
	struct rdmap_stream s;
	struct rdmap_inbound in[PAIR_SLOTS];
	struct rdmap_outbound out[PAIR_SLOTS];
	struct rdmap_slots slots;
	struct rdmap_sink sink;
	struct rdmap_source source;

	struct ddp_stag_table stags;
	struct ddp_region regions[REGIONS];
	__u64 mem[REGIONS][PAIR_MEM / 8];
	unsigned int lookups; /* of the source */

	__u8 recv[PAIR_RECVS][PAIR_ROOM];
	__u64 recv_room;
	unsigned int recv_first, recv_posted; /* the next to be used; those from it on */

	struct pair_event events[PAIR_EVENTS];
	unsigned int nevents, kicks;
	unsigned int accesses; /* given to place, ORed */

	__u8 wire[PAIR_WIRE]; /* FPDUs that have left and not arrived */
	size_t wire_len;
	struct iovec iov[1024];
	__u8 scratch[1 << 16];
	struct mpa_txv v;
};

struct pair_options {
	__u8 flags; /* enum mpa_flag */
	__u8 rtr;
	__u16 mulpdu;	/* 0: 1440 */
	__u16 ird, ord; /* of either end */
	bool gated;	/* b has not received anything yet */
};

struct pair {
	struct end a, b;
};

/* NULL options: CRC, depths of 4 */
struct pair *pair_create(const struct pair_options *o);
void pair_destroy(struct pair *p);

__u8 *end_mem(struct end *e, enum pair_region r);
__u32 end_stag(const struct end *e, enum pair_region r);

/* Moves what @e has built to its wire */
void end_flush(struct end *e);
/*
 * Gives what is on the wire of @from to @to, FPDU by FPDU; the first fault. After it the rest
 * is given too.
 */
enum iwarp_fault end_receive(struct end *from, struct end *to);
/*
 * The payload of the FPDU in the wire at *@at, which moves on; NULL at the end. For streams
 * without markers.
 */
const __u8 *end_ulpdu(const struct end *e, size_t *at, size_t *len);

/* The whole of a work request, built and flushed: 0 or the error of its first segment */
int end_send(struct end *e, const struct rdmap_wr *wr);
/* Answers all that is owed: the number of segments or an error */
int end_respond(struct end *e);
/* Both directions until nothing moves; the first fault of either */
enum iwarp_fault pair_run(struct pair *p);

/* Reads "0a 0B..." with blanks anywhere; returns the number of octets */
size_t unhex(const char *text, __u8 *out);

/* A ULPDU straight to rdmap_rx() */
enum iwarp_fault end_take(struct end *e, const __u8 *ulpdu, size_t len);

#endif
