/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The server in C by AF_XDP, at the loopback interface of a network of its own: frames come to its
 * memory, and go back from the same place. It polls; the kernel is called once for each answer,
 * which it has to be told of. An answer is as long as its question, so that IP's checksum stays
 * right; UDP's it does without.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "am/xdp_frame.h"
#include "am/xdp_program.h"
#include "bench/xsk.h"
#include "speed.h"

enum { FRAMES = 64, PORT = 7298 };

static struct xsk x;

static void check(bool good, const char *what)
{
	if (!good)
		fail(what, errno);
}

static void frame_give(uint64_t addr)
{
	check(!xsk_give(&x, addr), "no room for a frame");
}

static bool socket_open(void)
{
	if (xsk_open(&x, "lo", FRAMES, FRAMES, XDP_COPY))
		return false;
	for (uint64_t i = 0; i < FRAMES; i++)
		frame_give(i * XSK_FRAME);
	return true;
}

/* What the kernel did not route itself it takes from 127.0.0.1 only if it is told to */
static void loopback_open(void)
{
	static const char *const files[] = { "/proc/sys/net/ipv4/conf/lo/route_localnet", "/proc/"
											  "sys/net/"
											  "ipv4/"
											  "conf/lo/"
											  "accept_"
											  "local" };

	for (int i = 0; i < 2; i++) {
		int fd = open(files[i], O_WRONLY);

		check(fd >= 0 && write(fd, "1", 1) == 1, files[i]);
		close(fd);
	}
}

static int program_attach(const struct sockaddr_in *at)
{
	static struct am_xdp_program program;
	const struct am_xdp_target target = { .ifindex = (int)if_nametoindex("lo"),
					      .name = at,
					      .frame_max = XSK_FRAME / 2,
					      .socket = xsk_socket__fd(x.socket),
					      .generic = true };

	return am_xdp_program_init(&program, &target);
}

/* Back to where it came from */
static void heads_turn(uint8_t *frame)
{
	struct am_xdp_header h, to;

	memcpy(&h, frame, sizeof(h));
	to = h;
	memcpy(to.ether.h_dest, h.ether.h_source, ETH_ALEN);
	memcpy(to.ether.h_source, h.ether.h_dest, ETH_ALEN);
	to.ip.saddr = h.ip.daddr;
	to.ip.daddr = h.ip.saddr;
	to.udp.source = h.udp.dest;
	to.udp.dest = h.udp.source;
	to.udp.check = 0;
	memcpy(frame, &to, sizeof(to));
}

static void frame_send(const struct xdp_desc *desc)
{
	uint32_t at = 0;

	check(xsk_ring_prod__reserve(&x.tx, 1, &at) == 1, "no room for an answer");
	*xsk_ring_prod__tx_desc(&x.tx, at) =
		(struct xdp_desc){ .addr = desc->addr, .len = desc->len };
	xsk_ring_prod__submit(&x.tx, 1);
	check(sendto(xsk_socket__fd(x.socket), NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0 ||
		      errno == EAGAIN || errno == EBUSY,
	      "no answer by AF_XDP");
	while (xsk_ring_cons__peek(&x.done, 1, &at)) {
		frame_give(*xsk_ring_cons__comp_addr(&x.done, at));
		xsk_ring_cons__release(&x.done, 1);
	}
}

static void frame_answer(const struct xdp_desc *desc)
{
	uint8_t *frame = x.frames + desc->addr;
	struct am_arrival arrival;
	unsigned long value;
	struct question q;

	if (!am_xdp_frame_parse(frame, desc->len, &arrival) || arrival.length != sizeof(q)) {
		frame_give(desc->addr);
		return;
	}
	memcpy(&q, arrival.data, sizeof(q));
	value = rpc_answer(&q);
	memcpy(arrival.data, &value, sizeof(value));
	heads_turn(frame);
	frame_send(desc);
}

void frame_serve(int tell)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_port = htons(PORT),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct told told = { .first = 0 };
	uint32_t next;

	if (socket_open() && !program_attach(&at)) {
		loopback_open();
		told = rpc_structures();
		memcpy(&told.addr, &at, sizeof(at));
	}
	check(write(tell, &told, sizeof(told)) == sizeof(told), "nobody to tell");
	if (!told.first)
		exit(0);
	for (;;) {
		if (!xsk_ring_cons__peek(&x.rx, 1, &next))
			continue;
		struct xdp_desc desc = *xsk_ring_cons__rx_desc(&x.rx, next);

		xsk_ring_cons__release(&x.rx, 1);
		frame_answer(&desc);
	}
}
