/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which hosts are near by their address, and which addresses are one host's.
 */
#include "preload/rules/near.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>

#include "base/bits.h"

static socklen_t address(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
	struct sockaddr_in *four = (struct sockaddr_in *)out;

	*out = (struct sockaddr_storage){ .ss_family = AF_INET };
	if (inet_pton(AF_INET, text, &four->sin_addr) == 1)
		return sizeof(*four);
	six->sin6_family = AF_INET6;
	cr_assert_eq(inet_pton(AF_INET6, text, &six->sin6_addr), 1, "%s", text);
	return sizeof(*six);
}

static const struct {
	const char *text;
	bool host, private;
} cases[] = {
	{ "10.0.0.1", true, true },
	{ "10.255.255.255", true, true },
	{ "9.255.255.255", true, false },
	{ "11.0.0.0", true, false },
	{ "172.15.255.255", true, false },
	{ "172.16.0.1", true, true },
	{ "172.31.255.255", true, true },
	{ "172.32.0.0", true, false },
	{ "192.167.255.255", true, false },
	{ "192.168.0.1", true, true },
	{ "192.169.0.0", true, false },
	{ "169.254.169.254", true, false },
	{ "100.64.0.1", true, false },
	{ "8.8.8.8", true, false },
	{ "127.0.0.1", false, false },
	{ "127.255.0.1", false, false },
	{ "0.0.0.0", false, false },
	{ "0.1.2.3", false, false },
	{ "224.0.0.1", false, false },
	{ "239.255.255.255", false, false },
	{ "255.255.255.255", false, false },
	{ "::ffff:10.0.0.1", true, true },
	{ "::ffff:127.0.0.1", false, false },
	{ "::ffff:8.8.8.8", true, false },
	{ "fc00::1", true, true },
	{ "fdff::1", true, true },
	{ "fe00::1", true, false },
	{ "fb00::1", true, false },
	{ "fe80::1", true, true },
	{ "febf::1", true, true },
	{ "fec0::1", true, false },
	{ "2001:db8::1", true, false },
	{ "a00::1", true, false }, /* as 10.0.0.0/8 begins */
	{ "::1", false, false },
	{ "::", false, false },
	{ "ff02::1", false, false },
};

Test(near, by_its_address)
{
	for (size_t i = 0; i < base_array_size(cases); i++) {
		struct sockaddr_storage a;
		socklen_t len = address(cases[i].text, &a);

		cr_expect_eq(near_is_host((struct sockaddr *)&a, len), cases[i].host, "%s",
			     cases[i].text);
		cr_expect_eq(near_is_private((struct sockaddr *)&a, len), cases[i].private, "%s",
			     cases[i].text);
	}
}

/* Each host has the loopback's, a network of 2^24 addresses */
Test(near, on_link_is_asked_of_the_kernel)
{
	struct sockaddr_storage a;
	socklen_t len = address("127.9.8.7", &a);

	cr_expect(near_is_on_link((struct sockaddr *)&a, len));
	len = address("198.51.100.77", &a);
	cr_expect_not(near_is_on_link((struct sockaddr *)&a, len));
	len = address("2001:db8:77::1", &a);
	cr_expect_not(near_is_on_link((struct sockaddr *)&a, len));
}

Test(near, no_address_of_IP)
{
	struct sockaddr_storage a = { .ss_family = AF_UNIX };

	cr_expect_not(near_is_host((struct sockaddr *)&a, sizeof(a)));
	cr_expect_not(near_is_private((struct sockaddr *)&a, sizeof(a)));
	cr_expect_not(near_is_on_link((struct sockaddr *)&a, sizeof(a)));
	cr_expect_not(near_is_host((struct sockaddr *)&a, 2));
}
