/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer that speaks octets: start-up frames, FPDUs, DDP and RDMAP headers written and read by
 * hand, from the RFCs. It shares no code with mpa/, ddp/ and rdmap/, not even the CRC, so that an
 * error there is not made twice. It does as told, also what no peer may do; what it receives it
 * holds to every rule that is the same for all FPDUs.
 */
#ifndef CONFORMANCE_PEER_H
#define CONFORMANCE_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wire/iwarp.h>
#include <wire/iwarp_fault.h>

#include "llp/llp.h"

#define PEER_IN (1u << 19)
#define ULPDU_ROOM 65536
#define FPDU_ROOM 67000

struct peer {
	struct llp *llp;
	void (*pump)(void *ctx); /* lets the other side work */
	void *ctx;
	unsigned int quiet_ms; /* how long nothing must come before it counts as nothing */
	bool write_retries;    /* the end may send empty Writes on its own: case 132 */
	bool any_pad;	       /* the end does not clear PAD */
	size_t cut;	       /* send so many octets at a time; 0: all at once */
	unsigned int pace_ms;  /* so long after each of these */

	bool crc, tx_marked, rx_marked;
	uint64_t tx_pos, rx_pos; /* octets of FPDUs so far */
	uint32_t msn[DDP_QUEUES];
	uint32_t rx_msn[DDP_QUEUES];

	/* of the next FPDU only */
	uint8_t pad;	     /* octet to pad with */
	uint8_t ptr_low;     /* ORed into each FPDUPTR */
	uint16_t ptr_wrong;  /* added to it */
	uint32_t crc_change; /* XORed into the CRC */

	bool ended;  /* an orderly end */
	int broken;  /* errno of another end */
	size_t fill; /* octets of in[] */
	uint8_t in[PEER_IN];
};

void peer_init(struct peer *p, struct llp *l, void (*pump)(void *), void *ctx);

/* --- octets ------------------------------------------------------------------------------- */

void peer_send(struct peer *p, const void *octets, size_t n);
/* False when the other side closed or reset the connection meanwhile */
bool peer_try_send(struct peer *p, const void *octets, size_t n);
/* Waits until @n octets are in in[]; false: the end came first, or too much time passed */
bool peer_fill(struct peer *p, size_t n);
void peer_drop(struct peer *p, size_t n);
/* Nothing arrives */
void peer_expect_quiet(struct peer *p);
/* The other side ends the connection, and no octet comes before that */
void peer_expect_end(struct peer *p);
void peer_close(struct peer *p);

/* --- start-up frames ---------------------------------------------------------------------- */

extern const uint8_t raw_req_key[16], raw_rep_key[16];

struct frame {
	uint8_t key[16];
	uint8_t flags, rev;
	uint16_t pd_len;
	uint8_t pd[512];
};

size_t raw_frame(uint8_t *out, const uint8_t *key, uint8_t flags, uint8_t rev, const void *pd,
		 size_t pd_len);
void peer_send_request(struct peer *p, uint8_t flags, uint8_t rev, const void *pd, size_t len);
void peer_send_reply(struct peer *p, uint8_t flags, uint8_t rev, const void *pd, size_t len);
/* A whole frame; fails when none comes or its fixed part is not as RFC 5044 has it */
void peer_recv_frame(struct peer *p, struct frame *f);

/* The four enhanced octets */
enum { RAW_A = 0x8000, RAW_B = 0x4000, RAW_C = 0x8000, RAW_D = 0x4000 };
void raw_enhanced(uint8_t out[4], uint16_t ird_bits, uint16_t ird, uint16_t ord_bits, uint16_t ord);

/* --- FPDUs -------------------------------------------------------------------------------- */

uint32_t raw_crc32c(const uint8_t *p, size_t n);
/* The FPDU of a ULPDU as the stream has it now; moves the stream on */
size_t raw_fpdu(struct peer *p, uint8_t *out, const uint8_t *ulpdu, size_t n);
void peer_fpdu(struct peer *p, const uint8_t *ulpdu, size_t n);

/* A segment received, taken apart */
struct seg {
	bool tagged, last;
	uint8_t opcode;
	uint32_t stag; /* tagged; untagged: the Invalidate STag */
	uint64_t to;
	uint32_t qn, msn, mo;
	const uint8_t *payload;
	size_t len;
	/* the FPDU it came in */
	uint64_t at; /* stream octets before it */
	size_t fpdu_len, ulpdu_len;
	unsigned int markers;
	uint8_t fpdu[FPDU_ROOM], ulpdu[ULPDU_ROOM];
};

/* The next one; false when none comes */
bool peer_try_recv(struct peer *p, struct seg *s);
void peer_recv(struct peer *p, struct seg *s);
/* The next one, which must be of @opcode */
void peer_recv_op(struct peer *p, struct seg *s, uint8_t opcode);
/* All segments of a message of @opcode into @out: its length */
size_t peer_recv_message(struct peer *p, uint8_t opcode, uint8_t *out, size_t room);

/* --- headers ------------------------------------------------------------------------------ */

uint64_t raw_get(const uint8_t *p, unsigned int octets);
void raw_put(uint8_t *p, unsigned int octets, uint64_t v);
/* @ctl, @ulp: the two control octets whole */
size_t raw_tagged(uint8_t *out, uint8_t ctl, uint8_t ulp, uint32_t stag, uint64_t to);
size_t raw_untagged(uint8_t *out, uint8_t ctl, uint8_t ulp, uint32_t inv, uint32_t qn, uint32_t msn,
		    uint32_t mo);
/* The RDMAP headers, behind the DDP header */
size_t raw_read_req(uint8_t *out, uint32_t sink_stag, uint64_t sink_to, uint32_t size,
		    uint32_t src_stag, uint64_t src_to);

struct atomic {
	uint8_t aop;
	uint32_t id, stag;
	uint64_t to, data, mask, compare, compare_mask;
};

size_t raw_atomic_req(uint8_t *out, const struct atomic *a);

/* Whole messages of one segment, with the number that is due */
void peer_write(struct peer *p, uint32_t stag, uint64_t to, const void *payload, size_t n);
void peer_tagged(struct peer *p, uint8_t opcode, bool last, uint32_t stag, uint64_t to,
		 const void *payload, size_t n);
void peer_untagged(struct peer *p, uint8_t opcode, bool last, uint32_t qn, uint32_t msn,
		   uint32_t mo, const void *payload, size_t n);
void peer_send_message(struct peer *p, const void *payload, size_t n);
void peer_send_op(struct peer *p, uint8_t opcode, uint32_t inv, const void *payload, size_t n);
void peer_read(struct peer *p, uint32_t sink_stag, uint64_t sink_to, uint32_t size,
	       uint32_t src_stag, uint64_t src_to);
void peer_atomic(struct peer *p, const struct atomic *a);
void peer_terminate(struct peer *p, const void *payload, size_t n);

#endif
