/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MD5 (RFC 1321). The constants are the RFC's table T: of the sine of 1 to 64.
 */
#include "base/md5.h"

#include <string.h>

#include "base/bits.h"

static const uint32_t table[64] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
	0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
	0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
	0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
	0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
	0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
	0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
	0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
	0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
	0xeb86d391,
};

/* Of each round: how far its four kinds of step turn, and which word step i takes */
static const uint8_t turns[4][4] = {
	{ 7, 12, 17, 22 }, { 5, 9, 14, 20 }, { 4, 11, 16, 23 }, { 6, 10, 15, 21 }
};
static const uint8_t words[4][2] = { { 1, 0 }, { 5, 1 }, { 3, 5 }, { 7, 0 } };

static uint32_t mix(unsigned int round, uint32_t x, uint32_t y, uint32_t z)
{
	switch (round) {
	case 0:
		return (x & y) | (~x & z);
	case 1:
		return (x & z) | (y & ~z);
	case 2:
		return x ^ y ^ z;
	default:
		return y ^ (x | ~z);
	}
}

static void block_add(uint32_t state[4], const uint8_t *block)
{
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];

	for (unsigned int i = 0; i < 64; i++) {
		unsigned int round = i / 16, turn = turns[round][i % 4];
		unsigned int word = (words[round][0] * i + words[round][1]) % 16;
		uint32_t sum = a + mix(round, b, c, d) + base_get_le32(block + 4 * word) + table[i];

		a = d;
		d = c;
		c = b;
		b += sum << turn | sum >> (32 - turn);
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
}

void base_md5(const void *bytes, size_t len, uint8_t hash[BASE_MD5_SIZE])
{
	uint32_t state[4] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 };
	size_t whole = len / 64 * 64, rest = len - whole;
	uint8_t last[128] = { 0 };
	size_t end = rest < 56 ? 64 : 128;

	for (size_t at = 0; at < whole; at += 64)
		block_add(state, (const uint8_t *)bytes + at);
	if (rest)
		memcpy(last, (const uint8_t *)bytes + whole, rest);
	last[rest] = 0x80;
	base_put_le32(last + end - 8, (uint32_t)((uint64_t)len * 8));
	base_put_le32(last + end - 4, (uint32_t)((uint64_t)len >> 29));
	for (size_t at = 0; at < end; at += 64)
		block_add(state, last + at);
	for (int i = 0; i < 4; i++)
		base_put_le32(hash + (size_t)i * 4, state[i]);
}
