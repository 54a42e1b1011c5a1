/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What bare AF_XDP carries one way, for bulk transfers past the kernel to be compared with; each
 * end in its own namespace, with the generic hook, which is the faster one on veth.
 *
 *	barexdp IFACE send SIZE         frames of so many octets, until it is killed
 *	barexdp IFACE receive SECONDS   octets a second, all headers but Ethernet's counted
 *
 * Both copy the octets, as whoever has data outside the frames must.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/xsk.h"

#define FRAMES 4096u
#define RING 2048u
#define BATCH 32u
#define OURS ETH_P_802_EX1 /* for experiments; the kernel has no use for it */

static struct xsk x;
static char memory[16 << 20];

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void check(int failed, const char *what)
{
	if (!failed)
		return;
	perror(what);
	exit(1);
}

/* A program that hands every frame to the socket. */
static void program_attach(const char *interface)
{
	struct bpf_link_create_opts opts = { .sz = sizeof(opts), .flags = XDP_FLAGS_SKB_MODE };
	int key = 0, fd = xsk_socket__fd(x.socket), program;
	int map = bpf_map_create(BPF_MAP_TYPE_XSKMAP, "sockets", sizeof(int), sizeof(int), 1, NULL);
	struct bpf_insn code[] = {
		{ .code = BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	check(map < 0 || bpf_map_update_elem(map, &key, &fd, 0) < 0, "map");
	program = bpf_prog_load(BPF_PROG_TYPE_XDP, "all", "Dual BSD/GPL", code,
				sizeof(code) / sizeof(code[0]), NULL);
	check(program < 0, "program");
	check(bpf_link_create(program, (int)if_nametoindex(interface), BPF_XDP, &opts) < 0, "link");
}

static void send_all(uint32_t size)
{
	struct ethhdr head = { .h_proto = htons(OURS) };
	uint32_t at, i, n, out = 0, next = 0;
	size_t from = 0;

	memset(head.h_dest, 0xFF, ETH_ALEN);
	memset(memory, 2, sizeof(memory));
	for (;;) {
		n = xsk_ring_cons__peek(&x.done, RING, &at);
		xsk_ring_cons__release(&x.done, n);
		out -= n;
		if (out <= RING - BATCH && xsk_ring_prod__reserve(&x.tx, BATCH, &at) == BATCH) {
			for (i = 0; i < BATCH; i++, next = (next + 1) % RING) {
				uint8_t *p = x.frames + (size_t)next * XSK_FRAME;

				memcpy(p, &head, sizeof(head));
				memcpy(p + sizeof(head), memory + from, size);
				from = (from + size) % (sizeof(memory) - XSK_FRAME);
				*xsk_ring_prod__tx_desc(&x.tx, at + i) = (struct xdp_desc){
					.addr = (uint64_t)next * XSK_FRAME,
					.len = (uint32_t)sizeof(head) + size,
				};
			}
			xsk_ring_prod__submit(&x.tx, BATCH);
			out += BATCH;
		}
		sendto(xsk_socket__fd(x.socket), NULL, 0, MSG_DONTWAIT, NULL, 0);
	}
}

static size_t take(void)
{
	static size_t to;
	uint32_t at, put, i, n = xsk_ring_cons__peek(&x.rx, BATCH, &at);
	size_t octets = 0;

	if (!n || xsk_ring_prod__reserve(&x.fill, n, &put) != n)
		return 0;
	for (i = 0; i < n; i++) {
		const struct xdp_desc *d = xsk_ring_cons__rx_desc(&x.rx, at + i);
		const uint8_t *p = x.frames + d->addr;

		*xsk_ring_prod__fill_addr(&x.fill, put + i) = d->addr & ~(uint64_t)(XSK_FRAME - 1);
		if (((const struct ethhdr *)p)->h_proto != htons(OURS))
			continue;
		memcpy(memory + to, p + ETH_HLEN, d->len - ETH_HLEN);
		to = (to + d->len) % (sizeof(memory) - XSK_FRAME);
		octets += d->len - ETH_HLEN;
	}
	xsk_ring_cons__release(&x.rx, n);
	xsk_ring_prod__submit(&x.fill, n);
	return octets;
}

static void receive_all(double seconds)
{
	double t, end;
	size_t octets = 0;
	uint32_t i, at;

	check(xsk_ring_prod__reserve(&x.fill, RING, &at) != RING, "fill");
	for (i = 0; i < RING; i++)
		*xsk_ring_prod__fill_addr(&x.fill, at + i) = (uint64_t)i * XSK_FRAME;
	xsk_ring_prod__submit(&x.fill, RING);
	while (!take())
		continue;
	t = now();
	end = t + seconds;
	while (now() < end)
		octets += take();
	printf("%.0f\n", (double)octets / (now() - t));
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: barexdp IFACE send SIZE | receive SECONDS\n");
		return 2;
	}
	check(xsk_open(&x, argv[1], FRAMES, RING, XDP_COPY | XDP_USE_NEED_WAKEUP), "socket");
	if (!strcmp(argv[2], "send"))
		send_all((uint32_t)atoi(argv[3]));
	program_attach(argv[1]);
	receive_all(atof(argv[3]));
	return 0;
}
