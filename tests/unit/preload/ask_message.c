/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagrams of the question beside a connection: octets of docs/stream-wire.md, and what is none.
 */
#include "preload/rules/ask_message.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"

#define NONCE 0x0102030405060708ull

static const uint8_t yes[] = { 'W', 'A', 'S', 'K', 1, 2, 0x1b, 0x58, 1, 2, 3, 4, 5, 6, 7, 8 };

Test(ask_message, octets)
{
	struct ask_message m;

	ask_message_put(&m, &(struct ask){ ASK_YES, htons(7000), NONCE });
	cr_expect_arr_eq((uint8_t *)&m, yes, sizeof(yes));
}

Test(ask_message, taken)
{
	for (uint8_t kind = ASK_QUESTION; kind <= ASK_NO; kind++) {
		uint8_t octets[ASK_LEN];
		struct ask ask;

		memcpy(octets, yes, sizeof(yes));
		octets[5] = kind;
		cr_assert_eq(ask_message_get(octets, sizeof(octets), &ask), 0);
		cr_expect_eq(ask.kind, (enum ask_kind)kind);
		cr_expect_eq(ask.port, htons(7000));
		cr_expect_eq(ask.nonce, NONCE);
	}
}

static const struct {
	const char *what;
	size_t at;
	uint8_t value;
} wrong[] = {
	{ "another protocol's", 0, 'w' }, { "the same", 3, 0 }, { "version 0", 4, 0 },
	{ "a later version", 4, 2 },	  { "no kind", 5, 0 },	{ "a later kind", 5, 4 },
	{ "a kind far off", 5, 255 },
};

static void expect_none(const void *p, size_t len, const char *what)
{
	struct ask ask = { ASK_NO, 1, 2 };

	cr_expect_eq(ask_message_get(p, len, &ask), -EPROTO, "%s", what);
	cr_expect(ask.kind == ASK_NO && ask.port == 1 && ask.nonce == 2, "%s", what);
}

Test(ask_message, not_taken)
{
	uint8_t octets[ASK_LEN];

	for (size_t i = 0; i < base_array_size(wrong); i++) {
		memcpy(octets, yes, sizeof(yes));
		octets[wrong[i].at] = wrong[i].value;
		expect_none(octets, sizeof(octets), wrong[i].what);
	}
	memcpy(octets, yes, sizeof(yes));
	octets[6] = octets[7] = 0;
	expect_none(octets, sizeof(octets), "port 0");
}

Test(ask_message, length)
{
	uint8_t octets[64] = { 0 };

	memcpy(octets, yes, sizeof(yes));
	for (size_t len = 0; len <= sizeof(octets); len++)
		if (len != ASK_LEN)
			expect_none(octets, len, "another length");
}
