/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SHA-256: the examples of FIPS 180-4, and the same bytes in pieces of all sizes.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

static const char *hex(const uint8_t hash[BASE_SHA256_SIZE])
{
	static char text[2 * BASE_SHA256_SIZE + 1];

	for (int i = 0; i < BASE_SHA256_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", hash[i]);
	return text;
}

Test(sha256, examples)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c0"
									      "26930c3e6039a33ce459"
									      "64ff2167f6ecedd419db"
									      "06c1" },
	};
	uint8_t hash[BASE_SHA256_SIZE];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		base_sha256(rows[i].text, strlen(rows[i].text), hash);
		cr_assert_str_eq(hex(hash), rows[i].want);
	}
}

Test(sha256, a_million_bytes)
{
	uint8_t hash[BASE_SHA256_SIZE], *bytes = malloc(1000000);

	memset(bytes, 'a', 1000000);
	base_sha256(bytes, 1000000, hash);
	cr_assert_str_eq(hex(hash), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112c"
				    "d0");
	free(bytes);
}

Test(sha256, in_pieces)
{
	uint8_t bytes[300], want[BASE_SHA256_SIZE], got[BASE_SHA256_SIZE];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	for (size_t len = 0; len <= sizeof(bytes); len++) {
		struct base_sha256 s;
		size_t piece = 1 + len % 67;

		base_sha256(bytes, len, want);
		base_sha256_init(&s);
		for (size_t at = 0; at < len; at += piece)
			base_sha256_add(&s, bytes + at, len - at < piece ? len - at : piece);
		base_sha256_end(&s, got);
		cr_assert_arr_eq(got, want, BASE_SHA256_SIZE);
	}
}
