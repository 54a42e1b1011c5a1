/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MD5: the examples of RFC 1321, and lengths around a block's.
 */
#include "base/md5.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const char *hex_of(const void *bytes, size_t len)
{
	static char text[2 * BASE_MD5_SIZE + 1];
	uint8_t hash[BASE_MD5_SIZE];

	base_md5(bytes, len, hash);
	for (int i = 0; i < BASE_MD5_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", hash[i]);
	return text;
}

Test(md5, examples)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "d41d8cd98f00b204e9800998ecf8427e" },
		{ "a", "0cc175b9c0f1b6a831c399e269772661" },
		{ "abc", "900150983cd24fb0d6963f7d28e17f72" },
		{ "message digest", "f96b697d7cb7938d525a2f31aaf161d0" },
		{ "abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b" },
		{ "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9"
										    "f5a5611c2c9f41"
										    "9d9f" },
		{ "1234567890123456789012345678901234567890123456789012345678901234567890123456789"
		  "0",
		  "57edf4a22be3c955ac49da2e2107b67a" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_str_eq(hex_of(rows[i].text, strlen(rows[i].text)), rows[i].want);
}

/* As md5sum says of so many letters x */
Test(md5, lengths)
{
	static const struct {
		size_t len;
		const char *want;
	} rows[] = {
		{ 55, "04364420e25c512fd958a70738aa8f72" },
		{ 56, "668a72d5ba17f08e62dabcafad6db14b" },
		{ 57, "693037871c4a9d3d8685018905cb530a" },
		{ 63, "7dc2ca208106a2f703567bdff99d8981" },
		{ 64, "c1bb4f81d892b2d57947682aeb252456" },
		{ 65, "1bc932052302d074bdec39795fe00cf6" },
		{ 119, "ab347a5f68c8a443cfcddc633f12c24f" },
		{ 120, "fb98667f98096de92620b64f46e1c5b5" },
		{ 128, "d69cb61a6ee87200676eb0d4b90edbcb" },
		{ 200, "30a83621ce5422fbdfdd539777458c78" },
	};
	static char text[200];

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_str_eq(hex_of(text, rows[i].len), rows[i].want, "%zu", rows[i].len);
}
