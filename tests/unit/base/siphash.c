/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The numbers of the authors' reference: the key 00 01 .. 0f, texts 00 01 .. of each length.
 */
#include "base/siphash.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/bits.h"

static const struct {
	size_t len;
	uint64_t hash;
} cases[] = {
	{ 0, 0x726fdb47dd0e0e31ull },  { 1, 0x74f839c593dc67fdull },  { 2, 0x0d6c8009d9a94f5aull },
	{ 7, 0xab0200f58b01d137ull },  { 8, 0x93f5f5799a932462ull },  { 9, 0x9e0082df0ba9e4b0ull },
	{ 15, 0xa129ca6149be45e5ull }, { 16, 0x3f2acc7f57c29bdbull },
};

Test(siphash, reference)
{
	uint8_t text[16], octets[16];
	struct base_siphash_key key;

	for (uint8_t i = 0; i < 16; i++)
		octets[i] = text[i] = i;
	memcpy(&key, octets, sizeof(key)); /* of a little-endian host, as all of ours */
	for (size_t i = 0; i < base_array_size(cases); i++)
		cr_expect_eq(base_siphash(&key, text, cases[i].len), cases[i].hash, "%zu octets",
			     cases[i].len);
}

Test(siphash, another_key)
{
	struct base_siphash_key a = { { 1, 2 } }, b = { { 1, 3 } };

	cr_expect_neq(base_siphash(&a, "text", 4), base_siphash(&b, "text", 4));
}
