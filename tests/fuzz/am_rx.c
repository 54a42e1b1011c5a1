/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagrams from a peer that may say anything: parsed, checked, run and answered. Nothing may be
 * written to the segment's guard, and no handler may see a length beyond its data.
 *
 * The input is a run of (16-bit length, frames). Each is put behind a good packet header, so
 * that the frames are reached; an odd length leaves the header to the input too. The endpoint
 * also has requests of its own waiting, so that answers find their slots.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "am/bundle.h"
#include "am/rx.h"
#include "base/bits.h"
#include "include/warp/amudp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEGMENT = 4096, GUARD = 4096, DEPTH = 4, PACKET = sizeof(struct am_wire_packet) };

static uint8_t arena[GUARD + SEGMENT + GUARD];
static volatile unsigned int touched;

static amudp_category_t category;

/* A handler's kind is a matter between the ranks of a job: it is not told by the number. */
static void before(amudp_category_t cat, int request, int id, void *token, void *buf, size_t n,
		   int numargs, uint32_t *args)
{
	category = cat;
}

static void on_short(void *token)
{
	AM_Reply0(token, 1);
}

static void on_data(void *token, void *buf, int n)
{
	int i;

	if (category == amudp_Short) {
		AM_Reply0(token, 1);
		return;
	}
	for (i = 0; i < n; i++)
		touched += ((uint8_t *)buf)[i];
	AM_ReplyI0(token, 2, buf, n > 65000 ? 65000 : n);
}

static void on_returned(int status, op_t opcode, void *token)
{
	touched += (unsigned int)(status + opcode);
}

static struct sockaddr_in peer_name(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(9) };

	/* nothing listens at the discard port of this address */
	name.sin_addr.s_addr = htonl(0x7F000009);
	return name;
}

static void endpoint_open(eb_t *eb, ep_t *ep)
{
	struct sockaddr_in own;
	int i;

	setenv("AMUDP_CHECKSUM", "0", 1);
	setenv("AMUDP_LIVE", "0", 1);
	setenv("AMUDP_MAX_PACKET", "1400", 1);
	AMUDP_SetUDPInterface(htonl(INADDR_LOOPBACK));
	AM_Init();
	AM_AllocateBundle(AM_SEQ, eb);
	AM_AllocateEndpoint(*eb, ep, &own);
	AM_SetTag(*ep, AM_ALL);
	AM_SetSeg(*ep, arena + GUARD, SEGMENT);
	AMUDP_SetHandlerCallbacks(*ep, before, NULL);
	AM_SetHandler(*ep, 0, on_returned);
	AM_SetHandler(*ep, 1, on_short);
	for (i = 2; i < 8; i++)
		AM_SetHandler(*ep, i, on_data);
	AM_Map(*ep, 0, peer_name(), 1);
	AM_SetExpectedResources(*ep, 1, DEPTH);
}

static void requests_make(ep_t ep)
{
	static uint8_t data[3000];

	AM_Request0(ep, 0, 1);
	AM_RequestI0(ep, 0, 2, data, 100);
	AM_RequestXferAsync0(ep, 0, 0, 2, data, sizeof(data));
}

static void packet_take(ep_t ep, const uint8_t *p, uint32_t n, bool with_header)
{
	struct sockaddr_in from = peer_name();
	struct am_packet header = {
		.window = 64, .source_inc = 5, .addr = from.sin_addr.s_addr, .port = from.sin_port
	};
	uint8_t *packet = malloc(PACKET + n);

	if (with_header) {
		am_packet_put(packet, &header);
		memcpy(packet + PACKET, p, n);
		am_packet_seal(&(struct iovec){ packet, PACKET + n }, 1);
		am_rx_datagram(ep, packet, PACKET + n, &from);
	} else {
		memcpy(packet, p, n);
		am_rx_datagram(ep, packet, n, &from);
	}
	free(packet);
}

static void guards_check(void)
{
	size_t i;

	for (i = 0; i < GUARD; i++) {
		if (arena[i] || arena[GUARD + SEGMENT + i])
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	eb_t eb;
	ep_t ep;

	endpoint_open(&eb, &ep);
	requests_make(ep);
	while (size > 2) {
		uint32_t n = base_get_be16(data), take = base_min(n >> 1, (uint32_t)size - 2);

		packet_take(ep, data + 2, take, !(n & 1));
		data += 2 + take;
		size -= 2 + take;
		AM_Poll(eb);
	}
	guards_check();
	AM_Terminate();
	return 0;
}
