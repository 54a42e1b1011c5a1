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
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <xdp/xsk.h>

#define FRAMES 4096u
#define FRAME_SIZE 4096u
#define RING 2048u
#define BATCH 32u
#define BUSY_TRIES 100
#define OURS ETH_P_802_EX1 /* for experiments; the kernel has no use for it */

static struct xsk_umem *umem;
static struct xsk_socket *xsk;
static struct xsk_ring_prod fill, tx;
static struct xsk_ring_cons done, rx;
static char *frames, memory[16 << 20];

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

static void socket_open(const char *interface)
{
	struct xsk_umem_config memory_config = { .fill_size = RING,
						 .comp_size = RING,
						 .frame_size = FRAME_SIZE };
	struct xsk_socket_config config = { .rx_size = RING,
					    .tx_size = RING,
					    .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
					    .bind_flags = XDP_COPY | XDP_USE_NEED_WAKEUP };
	size_t size = (size_t)FRAMES * FRAME_SIZE;
	int i, ret = -EBUSY;

	frames = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(frames == MAP_FAILED, "mmap");
	check(xsk_umem__create(&umem, frames, size, &fill, &done, &memory_config), "umem");
	/* a socket that was just closed lets go of the queue a little later */
	for (i = 0; i < BUSY_TRIES && ret == -EBUSY; i++) {
		usleep(10000);
		ret = xsk_socket__create(&xsk, interface, 0, umem, &rx, &tx, &config);
	}
	check(ret < 0, "socket");
}

/* A program that hands every frame to the socket. */
static void program_attach(const char *interface)
{
	struct bpf_link_create_opts opts = { .sz = sizeof(opts), .flags = XDP_FLAGS_SKB_MODE };
	int key = 0, fd = xsk_socket__fd(xsk), program;
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
		n = xsk_ring_cons__peek(&done, RING, &at);
		xsk_ring_cons__release(&done, n);
		out -= n;
		if (out <= RING - BATCH && xsk_ring_prod__reserve(&tx, BATCH, &at) == BATCH) {
			for (i = 0; i < BATCH; i++, next = (next + 1) % RING) {
				char *p = frames + (size_t)next * FRAME_SIZE;

				memcpy(p, &head, sizeof(head));
				memcpy(p + sizeof(head), memory + from, size);
				from = (from + size) % (sizeof(memory) - FRAME_SIZE);
				*xsk_ring_prod__tx_desc(&tx, at + i) = (struct xdp_desc){
					.addr = (uint64_t)next * FRAME_SIZE,
					.len = (uint32_t)sizeof(head) + size,
				};
			}
			xsk_ring_prod__submit(&tx, BATCH);
			out += BATCH;
		}
		sendto(xsk_socket__fd(xsk), NULL, 0, MSG_DONTWAIT, NULL, 0);
	}
}

static size_t take(void)
{
	static size_t to;
	uint32_t at, put, i, n = xsk_ring_cons__peek(&rx, BATCH, &at);
	size_t octets = 0;

	if (!n || xsk_ring_prod__reserve(&fill, n, &put) != n)
		return 0;
	for (i = 0; i < n; i++) {
		const struct xdp_desc *d = xsk_ring_cons__rx_desc(&rx, at + i);
		const char *p = frames + d->addr;

		*xsk_ring_prod__fill_addr(&fill, put + i) = d->addr & ~(uint64_t)(FRAME_SIZE - 1);
		if (((const struct ethhdr *)p)->h_proto != htons(OURS))
			continue;
		memcpy(memory + to, p + ETH_HLEN, d->len - ETH_HLEN);
		to = (to + d->len) % (sizeof(memory) - FRAME_SIZE);
		octets += d->len - ETH_HLEN;
	}
	xsk_ring_cons__release(&rx, n);
	xsk_ring_prod__submit(&fill, n);
	return octets;
}

static void receive_all(double seconds)
{
	double t, end;
	size_t octets = 0;
	uint32_t i, at;

	check(xsk_ring_prod__reserve(&fill, RING, &at) != RING, "fill");
	for (i = 0; i < RING; i++)
		*xsk_ring_prod__fill_addr(&fill, at + i) = (uint64_t)i * FRAME_SIZE;
	xsk_ring_prod__submit(&fill, RING);
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
	socket_open(argv[1]);
	if (!strcmp(argv[2], "send"))
		send_all((uint32_t)atoi(argv[3]));
	program_attach(argv[1]);
	receive_all(atof(argv[3]));
	return 0;
}
