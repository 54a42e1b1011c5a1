/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CRC32c: known answers, and that pieces give what the whole gives.
 */
#include "base/crc32c.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"

static uint32_t crc_whole(const void *p, size_t n)
{
	return base_crc32c_final(base_crc32c(BASE_CRC32C_INIT, p, n));
}

/* RFC 3720 appendix B.4, and the check value of the CRC catalogue. */
static const struct {
	const char *name;
	uint8_t first, step;
	const char *text;
	size_t len;
	uint32_t want;
} known[] = {
	{ "32 zeroes", 0x00, 0, NULL, 32, 0x8A9136AA },
	{ "32 ones", 0xFF, 0, NULL, 32, 0x62A8AB43 },
	{ "32 rising", 0x00, 1, NULL, 32, 0x46DD794E },
	{ "32 falling", 0x1F, 0xFF, NULL, 32, 0x113FDB5C },
	{ "check", 0, 0, "123456789", 9, 0xE3069283 },
	{ "empty", 0, 0, "", 0, 0 },
};

Test(crc32c, known_answers)
{
	for (size_t i = 0; i < base_array_size(known); i++) {
		uint8_t buf[64];
		uint8_t v = known[i].first;

		for (size_t j = 0; j < known[i].len; j++, v += known[i].step)
			buf[j] = known[i].text ? (uint8_t)known[i].text[j] : v;
		cr_expect_eq(crc_whole(buf, known[i].len), known[i].want, "%s", known[i].name);
	}
}

Test(crc32c, starts_raw_and_stays_raw)
{
	cr_assert_eq(base_crc32c(0x12345678, "x", 0), 0x12345678u);
	cr_assert_eq(base_crc32c(BASE_CRC32C_INIT, "123456789", 9), ~0xE3069283u);
}

Test(crc32c, any_cut_gives_the_whole)
{
	uint8_t buf[257];

	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)(i * 7 + 3);
	for (size_t cut = 0; cut <= sizeof(buf); cut++) {
		struct iovec iov[] = { { buf, cut }, { buf + cut, sizeof(buf) - cut } };
		uint32_t crc = base_crc32c_iov(BASE_CRC32C_INIT, iov, 2);

		cr_expect_eq(base_crc32c_final(crc), crc_whole(buf, sizeof(buf)), "cut %zu", cut);
	}
}

/*
 * More than an int can count. Untouched pages read as zeroes; the octets set stand around each
 * 2^28, so that one left out or read twice where a piece ends changes the result.
 */
Test(crc32c, longer_than_int)
{
	size_t step = (size_t)1 << 28, n = 9 * step + 3;
	uint32_t crc = BASE_CRC32C_INIT;
	uint8_t *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	for (size_t at = step; at < n; at += step)
		memcpy(p + at - 2, "\x11\x22\x33\x44", 4);
	for (size_t at = 0; at < n; at += step)
		crc = base_crc32c(crc, p + at, base_min(step, n - at));
	cr_assert_eq(base_crc32c(BASE_CRC32C_INIT, p, n), crc);
	munmap(p, n);
}
