/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagrams and frames, to and from bytes: docs/amudp-wire.md, sections 2 to 5.
 *
 * This file does no I/O and keeps no state. What am_frame_parse() lets through has lengths that
 * agree with each other and with the datagram; whether a slot, a handler or an offset exists is
 * for the endpoint to say. It is the only reader of bytes from the network, and is fuzzed.
 */
#include "am/frame.h"

#include <errno.h>

#include "base/bits.h"
#include "base/crc32c.h"
#include "include/warp/amudp.h"

#define PACKET_SIZE sizeof(struct am_wire_packet)
#define FRAME_SIZE sizeof(struct am_wire_frame)
#define MESSAGE_SIZE (FRAME_SIZE + sizeof(struct am_wire_message))

size_t am_packet_length(const uint8_t *p, size_t n)
{
	size_t length = n < PACKET_SIZE ? 0 : be16toh(((const struct am_wire_packet *)p)->length);

	return length >= PACKET_SIZE && length <= n ? length : n;
}

static uint32_t packet_crc(const uint8_t *p, size_t n)
{
	struct am_wire_packet w;
	uint32_t crc;

	memcpy(&w, p, sizeof(w));
	w.crc = 0;
	crc = base_crc32c(BASE_CRC32C_INIT, &w, sizeof(w));
	return base_crc32c_final(base_crc32c(crc, p + sizeof(w), n - sizeof(w)));
}

int am_packet_parse(const uint8_t *p, size_t n, struct am_packet *out)
{
	const struct am_wire_packet *w = (const void *)p;

	if (n < sizeof(*w) || w->magic != AM_WIRE_MAGIC)
		return -EPROTO;
	if (am_wire_packet_version(w) != AM_WIRE_VERSION)
		return -EPROTONOSUPPORT;
	out->flags = (uint8_t)am_wire_packet_flags(w);
	if ((out->flags & ~AM_PACKET_KNOWN) || be16toh(w->length) != n)
		return -EPROTO;
	if ((out->flags & AM_PACKET_CRC) && packet_crc(p, n) != be32toh(w->crc))
		return -EBADMSG;
	out->nonce = be64toh(w->nonce);
	out->source_inc = be32toh(w->source_inc);
	out->dest_inc = be32toh(w->dest_inc);
	out->addr = w->source_addr;
	out->port = w->source_port;
	out->window = be16toh(w->window);
	return 0;
}

void am_packet_put(uint8_t *p, const struct am_packet *packet)
{
	struct am_wire_packet w = {
		.magic = AM_WIRE_MAGIC,
		.version_flags = (uint8_t)(AM_WIRE_VERSION << 4 | packet->flags),
		.nonce = htobe64(packet->nonce),
		.source_inc = htobe32(packet->source_inc),
		.dest_inc = htobe32(packet->dest_inc),
		.source_addr = packet->addr,
		.source_port = packet->port,
		.window = htobe16(packet->window),
	};

	memcpy(p, &w, sizeof(w));
}

void am_packet_seal(const struct iovec *iov, size_t count)
{
	struct am_wire_packet *w = iov[0].iov_base;
	size_t i, length = 0;

	for (i = 0; i < count; i++)
		length += iov[i].iov_len;
	w->length = htobe16((uint16_t)length);
	w->crc = 0;
	if (am_wire_packet_flags(w) & AM_PACKET_CRC)
		w->crc = htobe32(base_crc32c_final(base_crc32c_iov(BASE_CRC32C_INIT, iov, count)));
}

/* Takes n bytes off the front; NULL when they are not there. */
static const uint8_t *take(const uint8_t **p, size_t *left, size_t n)
{
	const uint8_t *at = *p;

	if (*left < n)
		return NULL;
	*p += n;
	*left -= n;
	return at;
}

static int parse_options(const uint8_t **p, size_t *left, struct am_frame *f)
{
	const uint8_t *at;

	if (f->flags & AM_MESSAGE_OFFSET) {
		at = take(p, left, 8);
		if (!at)
			return -EPROTO;
		f->offset = base_get_be64(at);
	}
	if (f->flags & AM_MESSAGE_FRAGMENT) {
		at = take(p, left, sizeof(struct am_wire_fragment));
		if (!at)
			return -EPROTO;
		f->fragment_offset = base_get_be32(at);
		f->fragment_size = base_get_be32(at + 4);
	}
	if (f->flags & AM_MESSAGE_GET) {
		at = take(p, left, sizeof(struct am_wire_get));
		if (!at)
			return -EPROTO;
		f->source_offset = base_get_be64(at);
	}
	return 0;
}

static int parse_args(const uint8_t **p, size_t *left, struct am_frame *f)
{
	size_t bytes;

	if (f->numargs > AMUDP_MAX_SHORT)
		return -EPROTO;
	bytes = 4u * f->numargs;
	f->args = take(p, left, bytes);
	if (!f->args)
		return -EPROTO;
	/* data are aligned to 8; without any, the padding is the frame's */
	if (*left && (bytes & 4) && !take(p, left, 4))
		return -EPROTO;
	return 0;
}

static bool fragment_agrees(const struct am_frame *f)
{
	if (f->fragment_size < AM_FRAGMENT_MIN || f->nbytes <= f->fragment_size ||
	    f->fragment_offset >= f->nbytes || f->fragment_offset % f->fragment_size)
		return false;
	return f->length == base_min(f->fragment_size, f->nbytes - f->fragment_offset);
}

static bool category_agrees(const struct am_frame *f)
{
	switch (am_frame_category(f)) {
	case amudp_Short:
		return !f->nbytes && !(f->flags & (AM_MESSAGE_OFFSET | AM_MESSAGE_GET));
	case amudp_Medium:
		return f->nbytes <= AMUDP_MAX_MEDIUM &&
		       !(f->flags & (AM_MESSAGE_OFFSET | AM_MESSAGE_GET));
	case amudp_Long:
		return f->nbytes <= AMUDP_MAX_XFER && (f->flags & AM_MESSAGE_OFFSET);
	default:
		return false;
	}
}

static bool kind_agrees(const struct am_frame *f)
{
	if (f->flags & ~AM_MESSAGE_KNOWN)
		return false;
	if (f->type == AM_FRAME_REQUEST && f->copy == AM_COPY_ASKED)
		return false;
	if (f->flags & AM_MESSAGE_GET)
		return f->type == AM_FRAME_REQUEST && !(f->flags & AM_MESSAGE_FRAGMENT) &&
		       !f->length;
	if ((f->flags & AM_MESSAGE_AUTO) &&
	    (f->type != AM_FRAME_REPLY || am_frame_category(f) != amudp_Short || f->numargs))
		return false;
	if (f->flags & AM_MESSAGE_FRAGMENT)
		return fragment_agrees(f);
	return f->length == f->nbytes;
}

static int parse_message(const uint8_t *p, size_t left, struct am_frame *f)
{
	const struct am_wire_message *w = (const void *)take(&p, &left, sizeof(*w));

	if (!w)
		return -EPROTO;
	f->handler = w->handler;
	f->numargs = w->numargs;
	f->copy = w->copy;
	f->nbytes = be32toh(w->nbytes);
	f->tag = be64toh(w->tag);
	if (parse_options(&p, &left, f) < 0 || parse_args(&p, &left, f) < 0)
		return -EPROTO;
	f->data = p;
	f->length = (uint32_t)left;
	return category_agrees(f) && kind_agrees(f) ? 0 : -EPROTO;
}

static int parse_sack(const uint8_t *p, size_t left, struct am_frame *f)
{
	const uint8_t *at = take(&p, &left, sizeof(struct am_wire_sack));

	if (!at)
		return -EPROTO;
	f->cumulative = base_get_be32(at);
	f->total = base_get_be32(at + 4);
	f->data = p;
	f->length = (uint32_t)left;
	return 0;
}

static int parse_refuse(const uint8_t *p, size_t left, struct am_frame *f)
{
	if (left != sizeof(struct am_wire_refuse))
		return -EPROTO;
	f->reason = p[0];
	return f->reason >= EBADARGS && f->reason <= EREPLYREJECTED ? 0 : -EPROTO;
}

static int parse_move(const uint8_t *p, size_t left, struct am_frame *f)
{
	const uint8_t *at = take(&p, &left, sizeof(struct am_wire_move));
	const size_t place = sizeof(struct am_wire_place);

	if (!at || left % place || left > AM_WIRE_MAX_PLACES * place)
		return -EPROTO;
	f->serial = base_get_be32(at);
	f->data = p;
	f->length = (uint32_t)left;
	return 0;
}

/* RESET and MOVE_ACK: one number */
static int parse_number(const uint8_t *p, size_t left, struct am_frame *f)
{
	if (left != 8)
		return -EPROTO;
	f->serial = base_get_be32(p);
	return 0;
}

/* ASK and ABSENT: the frame's head says all */
static int parse_bare(const uint8_t *p, size_t left, struct am_frame *f)
{
	return left || f->flags == AM_COPY_ASKED ? -EPROTO : 0;
}

static int (*const parsers[AM_FRAME_TYPES])(const uint8_t *, size_t, struct am_frame *) = {
	[AM_FRAME_REQUEST] = parse_message,   [AM_FRAME_REPLY] = parse_message,
	[AM_FRAME_SACK] = parse_sack,	      [AM_FRAME_REFUSE] = parse_refuse,
	[AM_FRAME_REFUSE_ACK] = parse_refuse, [AM_FRAME_RESET] = parse_number,
	[AM_FRAME_MOVE] = parse_move,	      [AM_FRAME_MOVE_ACK] = parse_number,
	[AM_FRAME_ASK] = parse_bare,	      [AM_FRAME_ABSENT] = parse_bare,
};

int am_frame_parse(const uint8_t *p, size_t n, struct am_frame *out)
{
	const struct am_wire_frame *w = (const void *)p;
	size_t length;

	if (n < FRAME_SIZE)
		return -EPROTO;
	length = be16toh(w->length);
	if (length < FRAME_SIZE || length > n || w->type >= AM_FRAME_TYPES || !parsers[w->type])
		return -EPROTO;
	memset(out, 0, sizeof(*out));
	out->type = w->type;
	out->flags = w->flags;
	out->slot = be16toh(w->slot);
	out->seq = be16toh(w->seq);
	if (parsers[w->type](p + FRAME_SIZE, length - FRAME_SIZE, out) < 0)
		return -EPROTO;
	return (int)base_min(base_align_up(length, 8), n);
}

static void put_frame(uint8_t *p, const struct am_frame *f, size_t length)
{
	struct am_wire_frame w = {
		.type = f->type,
		.flags = f->flags,
		.length = htobe16((uint16_t)length),
		.slot = htobe16(f->slot),
		.seq = htobe16(f->seq),
	};

	memcpy(p, &w, sizeof(w));
}

static uint8_t *put_options(uint8_t *at, const struct am_frame *f)
{
	if (f->flags & AM_MESSAGE_OFFSET) {
		base_put_be64(at, f->offset);
		at += 8;
	}
	if (f->flags & AM_MESSAGE_FRAGMENT) {
		base_put_be32(at, f->fragment_offset);
		base_put_be32(at + 4, f->fragment_size);
		at += sizeof(struct am_wire_fragment);
	}
	if (f->flags & AM_MESSAGE_GET) {
		base_put_be64(at, f->source_offset);
		at += sizeof(struct am_wire_get);
	}
	return at;
}

size_t am_frame_put_message(uint8_t *p, const struct am_frame *f, const int32_t *args)
{
	struct am_wire_message w = {
		.handler = f->handler,
		.numargs = f->numargs,
		.copy = f->copy,
		.nbytes = htobe32(f->nbytes),
		.tag = htobe64(f->tag),
	};
	uint8_t *at = put_options(p + MESSAGE_SIZE, f);
	unsigned int i;

	memcpy(p + FRAME_SIZE, &w, sizeof(w));
	for (i = 0; i < f->numargs; i++, at += 4)
		base_put_be32(at, (uint32_t)args[i]);
	if (f->numargs & 1) {
		base_put_be32(at, 0);
		at += 4;
	}
	put_frame(p, f, (size_t)(at - p) - (f->length ? 0 : 4 * (f->numargs & 1)) + f->length);
	return (size_t)(at - p);
}

void am_frame_patch_fragment(uint8_t *head, size_t head_len, uint32_t offset, uint32_t length)
{
	bool has_offset = head[offsetof(struct am_wire_frame, flags)] & AM_MESSAGE_OFFSET;

	base_put_be16(head + offsetof(struct am_wire_frame, length), (uint16_t)(head_len + length));
	base_put_be32(head + MESSAGE_SIZE + (has_offset ? 8 : 0), offset);
}

void am_frame_patch_copy(uint8_t *head, uint8_t copy)
{
	head[FRAME_SIZE + offsetof(struct am_wire_message, copy)] = copy;
}

size_t am_frame_put_sack(uint8_t *p, const struct am_frame *f, const uint8_t *map)
{
	size_t length = FRAME_SIZE + sizeof(struct am_wire_sack) + f->length;
	size_t padded = base_align_up(length, 8);

	memset(p + padded - 8, 0, 8);
	base_put_be32(p + FRAME_SIZE, f->cumulative);
	base_put_be32(p + FRAME_SIZE + 4, f->total);
	if (f->length)
		memcpy(p + FRAME_SIZE + sizeof(struct am_wire_sack), map, f->length);
	put_frame(p, f, length);
	return padded;
}

size_t am_frame_put_refuse(uint8_t *p, const struct am_frame *f)
{
	memset(p + FRAME_SIZE, 0, sizeof(struct am_wire_refuse));
	p[FRAME_SIZE] = f->reason;
	put_frame(p, f, FRAME_SIZE + sizeof(struct am_wire_refuse));
	return FRAME_SIZE + sizeof(struct am_wire_refuse);
}

size_t am_frame_put_move(uint8_t *p, const struct am_frame *f, const struct sockaddr_in *places,
			 int count)
{
	uint8_t *at = p + FRAME_SIZE + sizeof(struct am_wire_move);
	int i;

	for (i = 0; i < count; i++, at += sizeof(struct am_wire_place)) {
		struct am_wire_place w = { .addr = places[i].sin_addr.s_addr,
					   .port = places[i].sin_port };

		memcpy(at, &w, sizeof(w));
	}
	am_frame_put_number(p, f);
	put_frame(p, f, (size_t)(at - p));
	return (size_t)(at - p);
}

size_t am_frame_put_number(uint8_t *p, const struct am_frame *f)
{
	base_put_be32(p + FRAME_SIZE, f->serial);
	base_put_be32(p + FRAME_SIZE + 4, 0);
	put_frame(p, f, FRAME_SIZE + 8);
	return FRAME_SIZE + 8;
}

size_t am_frame_put_bare(uint8_t *p, const struct am_frame *f)
{
	put_frame(p, f, FRAME_SIZE);
	return FRAME_SIZE;
}
