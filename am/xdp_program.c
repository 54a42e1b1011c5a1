/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The redirect program: UDP packets for one address and port go to our socket, all others on to
 * the kernel.
 *
 * It is two dozen instructions, written as such, with the address and the port as constants: no
 * compiler for BPF is needed to build, and there is nothing to look up at run time. IP options,
 * fragments and what does not fit our frames are the kernel's: a large MTU, or UDP GSO's packets,
 * which the generic hook sees uncut. So are packets marked as bulk: of a row of them some are
 * merged and some are not, and all must go one way to come in their order.
 */
#include "am/xdp_program.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/fdutil.h"

/* Offsets in the frame. */
enum {
	AT_ETHER_TYPE = 12,
	AT_IP_VERSION = 14,
	AT_IP_TOS = 15,
	AT_IP_FRAGMENT = 20,
	AT_IP_PROTOCOL = 23,
	AT_IP_DESTINATION = 30,
	AT_UDP_DESTINATION = 36,
	AT_DATA = 42,
};

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define LOAD(size, d, s, o) INSN(BPF_LDX | BPF_MEM | (size), d, s, o, 0)
#define MOVE(d, s) INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define MOVE_NUMBER(d, i) INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
/* to the end, which the last two instructions are */
#define UNLESS(r, i) INSN(BPF_JMP32 | BPF_JNE | BPF_K, r, 0, TO_PASS, i)
#define TO_PASS INT16_MAX

static int program_load(int map, const struct am_xdp_target *target)
{
	const struct sockaddr_in *name = target->name;
	struct bpf_insn code[] = {
		MOVE(6, 1),
		LOAD(BPF_W, 2, 1, offsetof(struct xdp_md, data)),
		LOAD(BPF_W, 3, 1, offsetof(struct xdp_md, data_end)),
		MOVE(4, 2),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, AT_DATA),
		INSN(BPF_JMP | BPF_JGT | BPF_X, 4, 3, TO_PASS, 0),
		MOVE(4, 2),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, (int32_t)target->frame_max),
		INSN(BPF_JMP | BPF_JGT | BPF_X, 3, 4, TO_PASS, 0),
		LOAD(BPF_H, 5, 2, AT_ETHER_TYPE),
		UNLESS(5, htons(ETH_P_IP)),
		LOAD(BPF_B, 5, 2, AT_IP_VERSION),
		UNLESS(5, 0x45),
		LOAD(BPF_B, 5, 2, AT_IP_TOS),
		INSN(BPF_ALU64 | BPF_AND | BPF_K, 5, 0, 0, AM_XDP_TOS_BULK),
		UNLESS(5, 0),
		LOAD(BPF_B, 5, 2, AT_IP_PROTOCOL),
		UNLESS(5, IPPROTO_UDP),
		LOAD(BPF_H, 5, 2, AT_IP_FRAGMENT),
		INSN(BPF_ALU64 | BPF_AND | BPF_K, 5, 0, 0, htons(0x3FFF)),
		UNLESS(5, 0),
		LOAD(BPF_W, 5, 2, AT_IP_DESTINATION),
		UNLESS(5, (int32_t)name->sin_addr.s_addr),
		LOAD(BPF_H, 5, 2, AT_UDP_DESTINATION),
		UNLESS(5, name->sin_port),
		LOAD(BPF_W, 2, 6, offsetof(struct xdp_md, rx_queue_index)),
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map),
		INSN(0, 0, 0, 0, 0),
		MOVE_NUMBER(3, XDP_PASS), /* when no socket has the queue */
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		MOVE_NUMBER(0, XDP_PASS),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	size_t i, count = base_array_size(code), pass = count - 2;
	int fd;

	for (i = 0; i < count; i++) {
		if (code[i].off == TO_PASS)
			code[i].off = (int16_t)(pass - i - 1);
	}
	fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "am_redirect", "Dual BSD/GPL", code, count, NULL);
	return fd < 0 ? -errno : fd;
}

static int attach(struct am_xdp_program *p, int ifindex, unsigned int mode)
{
	struct bpf_link_create_opts opts = { .sz = sizeof(opts), .flags = mode };

	p->link = bpf_link_create(p->program, ifindex, BPF_XDP, &opts);
	return p->link < 0 ? -errno : 0;
}

void am_xdp_program_clear(struct am_xdp_program *p)
{
	*p = (struct am_xdp_program){ -1, -1, -1, false };
}

int am_xdp_program_init(struct am_xdp_program *p, const struct am_xdp_target *target)
{
	int key = 0, ret;

	p->map = bpf_map_create(BPF_MAP_TYPE_XSKMAP, "am_sockets", sizeof(int), sizeof(int), 1,
				NULL);
	if (p->map < 0 || bpf_map_update_elem(p->map, &key, &target->socket, 0) < 0)
		return -errno;
	p->program = program_load(p->map, target);
	if (p->program < 0)
		return p->program;
	ret = target->generic ? -EOPNOTSUPP : attach(p, target->ifindex, XDP_FLAGS_DRV_MODE);
	p->native = ret == 0;
	/* a driver without XDP, or one that cannot now, still has the generic hook */
	if (ret < 0 && ret != -EBUSY)
		ret = attach(p, target->ifindex, XDP_FLAGS_SKB_MODE);
	return ret;
}

void am_xdp_program_uninit(struct am_xdp_program *p)
{
	base_fd_close(p->link);
	base_fd_close(p->program);
	base_fd_close(p->map);
}
