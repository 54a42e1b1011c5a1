/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_FRAME_H
#define AM_FRAME_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "include/wire/am.h"

/* A message's head at its longest: frame, message, offset, fragment, get, 16 arguments. */
#define AM_HEAD_MAX 112
/* Fragments carry at least this much, so that a hostile size cannot ask for a huge map. */
#define AM_FRAGMENT_MIN 512

/* The packet header in host order; addr and port stay in network order, as sockets want them. */
struct am_packet {
	uint8_t flags;
	uint16_t window;
	uint32_t source_inc;
	uint32_t dest_inc;
	uint32_t addr;
	uint16_t port;
	uint64_t nonce;
};

/* Any frame in host order. Pointers are into the datagram. */
struct am_frame {
	uint8_t type;
	uint8_t flags;
	uint8_t handler;
	uint8_t numargs;
	uint8_t copy;
	uint8_t reason; /* REFUSE */
	uint16_t slot;
	uint16_t seq;
	uint32_t nbytes;
	uint32_t fragment_offset;
	uint32_t fragment_size; /* 0: the message is whole */
	uint32_t length;	/* bytes of data, or of the SACK's map */
	uint32_t cumulative;	/* SACK */
	uint32_t total;		/* SACK */
	uint32_t serial;	/* MOVE; RESET: the stale incarnation */
	uint64_t tag;
	uint64_t offset;
	uint64_t source_offset; /* get */
	const uint8_t *args;
	const uint8_t *data;
};

static inline unsigned int am_frame_category(const struct am_frame *f)
{
	return f->flags & AM_MESSAGE_CATEGORY;
}

/* Bytes of the first packet of a datagram by its own account; all n when that cannot be. */
size_t am_packet_length(const uint8_t *p, size_t n);
/*
 * 0 when these n bytes are a packet of this version whose checksum, if there is one, holds;
 * -EPROTO, -EPROTONOSUPPORT or -EBADMSG otherwise.
 */
int am_packet_parse(const uint8_t *p, size_t n, struct am_packet *out);
void am_packet_put(uint8_t *p, const struct am_packet *packet);
/* Fills the length in, and the checksum if the flags say so; iov[0] begins with the header. */
void am_packet_seal(const struct iovec *iov, size_t count);

/* The bytes of the frame with its padding, or -EPROTO. Nothing is believed unchecked. */
int am_frame_parse(const uint8_t *p, size_t n, struct am_frame *out);

/* Writes a message's head with padding up to its data; returns its bytes. */
size_t am_frame_put_message(uint8_t *p, const struct am_frame *f, const int32_t *args);
/* Makes the head of a fragmented message that of the fragment at this offset. */
void am_frame_patch_fragment(uint8_t *head, size_t head_len, uint32_t offset, uint32_t length);
void am_frame_patch_copy(uint8_t *head, uint8_t copy);

/* The small frames; each returns its bytes, a multiple of 8. */
size_t am_frame_put_sack(uint8_t *p, const struct am_frame *f, const uint8_t *map);
size_t am_frame_put_refuse(uint8_t *p, const struct am_frame *f);
size_t am_frame_put_move(uint8_t *p, const struct am_frame *f, const struct sockaddr_in *places,
			 int count);
size_t am_frame_put_number(uint8_t *p, const struct am_frame *f);
size_t am_frame_put_bare(uint8_t *p, const struct am_frame *f);

#endif
