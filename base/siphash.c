/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SipHash-2-4: two rounds for each eight octets, four at the end. The last word has what is left of
 * the text, and its length in the highest octet.
 */
#include "base/siphash.h"

#include <endian.h>
#include <string.h>

#include "base/bits.h"

static uint64_t rotate(uint64_t v, unsigned int by)
{
	return v << by | v >> (64 - by);
}

static uint64_t word_at(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return le64toh(word);
}

static void mix(uint64_t v[4], unsigned int rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static void word_add(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	mix(v, 2);
	v[0] ^= word;
}

uint64_t base_siphash(const struct base_siphash_key *key, const void *p, size_t len)
{
	uint64_t v[4] = {
		key->k[0] ^ 0x736f6d6570736575ull,
		key->k[1] ^ 0x646f72616e646f6dull,
		key->k[0] ^ 0x6c7967656e657261ull,
		key->k[1] ^ 0x7465646279746573ull,
	};
	const uint8_t *at = p, *end = at + base_align_down(len, 8);
	uint64_t last = (uint64_t)len << 56;

	for (; at < end; at += 8)
		word_add(v, word_at(at));
	for (size_t i = 0; i < len % 8; i++)
		last |= (uint64_t)at[i] << 8 * i;
	word_add(v, last);
	v[2] ^= 0xff;
	mix(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
