/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that bypass the kernel: headers, checksums by RFC 1071's own rule, and what is refused.
 */
#include "am/xdp_frame.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>

static uint8_t frame[4096], octets[2000];
static struct am_xdp_header header;
static const uint8_t mac[6] = { 2, 4, 6, 8, 10, 12 };

/* As RFC 1071 says it, one 16-bit word at a time; all ones when the checksum is right. */
static uint32_t ones_sum(uint32_t sum, const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return sum;
}

static uint32_t put(size_t first, size_t second)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(1234) };
	struct am_datagram d = { .count = second ? 2 : 1,
				 .iov = { { octets, first }, { octets + first, second } } };
	size_t i;

	for (i = 0; i < sizeof(octets); i++)
		octets[i] = (uint8_t)(i * 29 + 5);
	name.sin_addr.s_addr = inet_addr("10.1.2.3");
	d.to.sin_addr.s_addr = inet_addr("10.4.5.6");
	d.to.sin_port = htons(5678);
	am_xdp_header_init(&header, &name);
	return am_xdp_frame_put(frame, &header, mac, 7, &d);
}

Test(xdp_frame, round_trip)
{
	static const size_t sizes[] = { 1, 32, 33, 64, 1400, 1471 };
	struct am_arrival out;
	uint32_t n;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		n = put(sizes[i], 11);
		cr_assert_eq(n, 42 + sizes[i] + 11);
		cr_assert_arr_eq(frame, mac, 6);
		cr_assert(am_xdp_frame_parse(frame, n, &out));
		cr_assert_eq(out.length, sizes[i] + 11);
		cr_assert_eq(out.from.sin_port, htons(1234));
		cr_assert_eq(out.from.sin_addr.s_addr, inet_addr("10.1.2.3"));
		cr_assert_arr_eq(out.data, octets, out.length);
		cr_assert_eq(ones_sum(0, frame + 14, 20), 0xFFFFu, "IP header");
		cr_assert_eq(ones_sum(17 + n - 34, frame + 26, n - 26), 0xFFFFu, "UDP");
	}
}

Test(xdp_frame, padding_of_short_frames_is_cut)
{
	struct am_arrival out;

	put(1, 0);
	cr_assert(am_xdp_frame_parse(frame, 60, &out));
	cr_assert_eq(out.length, 1u);
}

Test(xdp_frame, refused)
{
	static const struct {
		const char *what;
		int at;
		uint8_t value;
	} rows[] = {
		{ "not IPv4", 13, 6 },		{ "version 6", 14, 0x65 },
		{ "options", 14, 0x46 },	{ "TCP", 23, 6 },
		{ "more fragments", 20, 0x20 }, { "a later fragment", 21, 9 },
		{ "IP too long", 16, 9 },	{ "UDP too long", 38, 9 },
		{ "UDP too short", 39, 7 },
	};
	struct am_arrival out;
	uint32_t n;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		n = put(64, 0);
		frame[rows[i].at] = rows[i].value;
		if (rows[i].at == 39)
			frame[38] = 0;
		cr_assert_not(am_xdp_frame_parse(frame, n, &out), "%s", rows[i].what);
	}
	n = put(64, 0);
	frame[17] = 10; /* an IP length below its header's, and a UDP length beyond the frame */
	frame[38] = 9;
	cr_assert_not(am_xdp_frame_parse(frame, n, &out));
	n = put(64, 0);
	for (i = 0; i < n; i++)
		cr_assert_not(am_xdp_frame_parse(frame, (uint32_t)i, &out), "%zu octets", i);
}
