/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One-sided operations of a stream, and what they come to.
 */
#ifndef STREAM_JOB_H
#define STREAM_JOB_H

#include <stdbool.h>
#include <stdint.h>

/* Operations whose completion nobody has taken yet, at most */
#define STREAM_JOBS 256
/* Bytes of one */
#define STREAM_JOB_MAX (1u << 30)

enum stream_job_kind { STREAM_JOB_WRITE, STREAM_JOB_READ, STREAM_JOB_ADD, STREAM_JOB_SWAP };

struct stream_job {
	enum stream_job_kind kind;
	uint64_t cookie;
	void *addr; /* ours: source of a Write, sink of the others; its owner's until completion */
	uint32_t len;
	uint32_t stag; /* the peer's */
	uint64_t to;
	bool mapped; /* a Write: @to is an offset of what the peer has mapped, and @stag nothing */
	uint64_t data, mask, compare, compare_mask; /* atomics, as struct warp_send_wr has them */
};

enum stream_job_status {
	STREAM_JOB_DONE,
	STREAM_JOB_FLUSHED, /* the connection ended before */
	STREAM_JOB_REFUSED, /* the peer's Terminate said so, and ended the connection */
};

struct stream_completion {
	enum stream_job_kind kind;
	enum stream_job_status status;
	uint64_t cookie;
	uint32_t len;
};

/* What DDP_INFO tells of a stream */
struct stream_info {
	const char *provider;
	uint32_t features, fault; /* 0 or layer, type and code, as a Terminate has them */
	uint32_t ring, mulpdu;
	uint16_t ird, ord;
	uint8_t mpa_rev;
	uint32_t broken;      /* enum stream_broken; 0: it is not */
	uint32_t start_error; /* errno that start-up came to, in the process that saw it; 0 */
	bool reached;	      /* of that: TCP was connected */
	bool foreign;	      /* another process's, and to be closed alone */
	bool open, over, cut, aborted, fault_by_peer, crc, tx_markers, rx_markers;
	uint64_t tx_octets, rx_octets, tx_fpdus, rx_fpdus;
	uint64_t messages_sent, messages_received, jobs;
};

#endif
