/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_UDP_WIRE_H
#define ACTIVE_UDP_WIRE_H

/*
 * The messages of the prototype of 2010 as octets and as structs (docs/active-wire.md, section 4).
 * No I/O, no memory of its own.
 */

#include "active/wire.h"
#include "base/md5.h"

enum active_udp_op {
	ACTIVE_UDP_READ,
	ACTIVE_UDP_WRITE,
	ACTIVE_UDP_CAS,
	ACTIVE_UDP_RUN,
	ACTIVE_UDP_LOAD,
	ACTIVE_UDP_READ_BYTES,
	ACTIVE_UDP_WRITE_BYTES,
};

enum active_udp_error {
	ACTIVE_UDP_OK,
	ACTIVE_UDP_BOUNDS,
	ACTIVE_UDP_TIME,
	ACTIVE_UDP_UNKNOWN_CODE,
	ACTIVE_UDP_DUPLICATE,
	ACTIVE_UDP_ERROR,
};

enum {
	ACTIVE_UDP_PORT = 15712,
	ACTIVE_UDP_MAX = 65507, /* octets of a datagram */
	/* What an answer has room for beside the three numbers */
	ACTIVE_UDP_BYTES_MAX = ACTIVE_UDP_MAX - 12,
	ACTIVE_UDP_WORDS_MAX = ACTIVE_UDP_BYTES_MAX / 4,
};

struct active_udp_request {
	enum active_udp_op op;
	uint32_t addr, count; /* count: of words or octets */
	uint32_t test, value;
	const uint8_t *hash;	   /* RUN */
	struct active_span octets; /* words to be written, arguments: 4 each; octets; the object */
};

/* -EPROTO: not one whole request; what stands behind it is not looked at */
int active_udp_read(const void *octets, size_t len, struct active_udp_request *out);

/* @words NULL or @bytes.at NULL: there is no such array */
struct active_udp_answer {
	enum active_udp_error error;
	const uint32_t *words;
	size_t word_count;
	struct active_span bytes;
};

/* Into @to, of ACTIVE_UDP_MAX octets: their number, or -EMSGSIZE */
int active_udp_write(const struct active_udp_answer *answer, void *to);

#endif
