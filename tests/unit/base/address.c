/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses of both families: what is asked of them in the same words, whichever they are.
 */
#include "base/address.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>

#include "base/bits.h"

Test(address, of_both_families)
{
	static const struct {
		int family;
		const char *text;
		bool any;
		socklen_t len;
	} rows[] = {
		{ AF_INET, "0.0.0.0", true, sizeof(struct sockaddr_in) },
		{ AF_INET, "127.0.0.1", false, sizeof(struct sockaddr_in) },
		{ AF_INET6, "::", true, sizeof(struct sockaddr_in6) },
		{ AF_INET6, "::1", false, sizeof(struct sockaddr_in6) },
		{ AF_INET6, "::ffff:0.0.0.0", false, sizeof(struct sockaddr_in6) },
		{ AF_INET6, "1::", false, sizeof(struct sockaddr_in6) },
	};

	for (size_t i = 0; i < base_array_size(rows); i++) {
		struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(0x1234) };
		struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(0x1234) };
		bool is_four = rows[i].family == AF_INET;
		void *addr = is_four ? (void *)&four : &six;

		cr_assert_eq(inet_pton(rows[i].family, rows[i].text,
				       is_four ? (void *)&four.sin_addr : &six.sin6_addr),
			     1);
		cr_expect_eq(base_address_is_four(addr), is_four, "%s", rows[i].text);
		cr_expect_eq(base_address_is_any(addr), rows[i].any, "%s", rows[i].text);
		cr_expect_eq(base_address_len(addr), rows[i].len, "%s", rows[i].text);
		cr_expect_eq(base_address_port(addr), htons(0x1234), "%s", rows[i].text);
		base_address_set_port(addr, htons(80));
		cr_expect_eq(is_four ? four.sin_port : six.sin6_port, htons(80));
	}
}
