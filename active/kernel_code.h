/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_KERNEL_CODE_H
#define ACTIVE_KERNEL_CODE_H

/* The code of the door in the kernel (active/kernel.c), made by bpfgen/. */

#include <wire/active.h>

#include "bpfkernel/kernel.h"

/* Of one run: bpfkernel's block, then output, then arguments. Zero while no program runs */
struct active_kernel_block {
	struct bpfkernel_block block;
	uint8_t output[ACTIVE_WIRE_DATA_MAX];
	uint8_t args[ACTIVE_WIRE_DATA_MAX];
};

struct active_kernel_door {
	__be32 addr;
	__be16 port;
	int keys,
		programs; /* descriptors of maps: from a key to a number, from that to a program */
};

/* What takes requests off the interface, and gives the rest to the network as it was */
int active_kernel_door_write(struct bpfgen_code *c, const struct active_kernel_door *door);

struct active_kernel_program {
	struct bpfkernel_params params;
	int arena;	 /* descriptor */
	uint64_t blocks; /* the address of the first; one for each processor */
	unsigned int block_count;
	uint64_t args_addr; /* where the program sees its arguments */
	uint64_t fuel;	    /* the most */
};

/* A request of one key: arguments out of the packet, the program, the answer into the packet */
int active_kernel_program_write(struct bpfgen_code *c, const struct active_kernel_program *p,
				struct ebpf_error *err);

#endif
