/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads requests and writes answers of the prototype's protocol: all numbers have 32 bits and are
 * big-endian, an array is its count and its elements, and one that is not there has the count -1.
 */
#include "active/udp_wire.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"

struct source {
	const uint8_t *at;
	size_t len;
	bool bad;
};

static const uint8_t *take(struct source *s, size_t len)
{
	const uint8_t *at = s->at;

	s->bad |= len > s->len;
	if (s->bad)
		return NULL;
	s->at += len;
	s->len -= len;
	return at;
}

static uint32_t number(struct source *s)
{
	const uint8_t *at = take(s, 4);

	return at ? base_get_be32(at) : 0;
}

/* An array that has to be there */
static uint32_t array(struct source *s, size_t each, struct active_span *out)
{
	uint32_t count = number(s);

	s->bad |= count > ACTIVE_UDP_MAX / each;
	out->at = s->bad ? NULL : take(s, count * each);
	out->len = out->at ? count * each : 0;
	return count;
}

static void run_read(struct source *s, struct active_udp_request *r)
{
	struct active_span hash;

	s->bad |= array(s, 1, &hash) != BASE_MD5_SIZE;
	r->hash = hash.at;
	r->count = array(s, 4, &r->octets);
}

static void cas_read(struct source *s, struct active_udp_request *r)
{
	r->addr = number(s);
	r->test = number(s);
	r->value = number(s);
}

int active_udp_read(const void *octets, size_t len, struct active_udp_request *out)
{
	struct source s = { octets, len, false };
	struct active_udp_request r = { .op = (enum active_udp_op)number(&s) };

	switch (r.op) {
	case ACTIVE_UDP_READ:
	case ACTIVE_UDP_READ_BYTES:
		r.addr = number(&s);
		r.count = number(&s);
		break;
	case ACTIVE_UDP_WRITE:
	case ACTIVE_UDP_WRITE_BYTES:
		r.addr = number(&s);
		r.count = array(&s, r.op == ACTIVE_UDP_WRITE ? 4 : 1, &r.octets);
		break;
	case ACTIVE_UDP_CAS:
		cas_read(&s, &r);
		break;
	case ACTIVE_UDP_RUN:
		run_read(&s, &r);
		break;
	case ACTIVE_UDP_LOAD:
		r.count = array(&s, 1, &r.octets);
		break;
	default:
		s.bad = true;
	}
	if (s.bad)
		return -EPROTO;
	*out = r;
	return 0;
}

int active_udp_write(const struct active_udp_answer *a, void *to)
{
	size_t words = a->words ? a->word_count : 0, bytes = a->bytes.at ? a->bytes.len : 0;
	uint8_t *at = to;

	if (words > ACTIVE_UDP_WORDS_MAX || bytes > ACTIVE_UDP_BYTES_MAX - words * 4)
		return -EMSGSIZE;
	base_put_be32(at, a->error);
	base_put_be32(at + 4, a->words ? (uint32_t)words : UINT32_MAX);
	at += 8;
	for (size_t i = 0; i < words; i++, at += 4)
		base_put_be32(at, a->words[i]);
	base_put_be32(at, a->bytes.at ? (uint32_t)bytes : UINT32_MAX);
	if (bytes)
		memcpy(at + 4, a->bytes.at, bytes);
	return (int)(12 + words * 4 + bytes);
}
