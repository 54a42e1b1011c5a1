/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_KERNEL_CODE_H
#define ACTIVE_KERNEL_CODE_H

/* The code of the door in the kernel (active/kernel.c), made by bpfgen/. */

#include <wire/active.h>

#include "bpfkernel/kernel.h"

/* What own[] of a block is for. Runs and fuel are of all time */
enum { ACTIVE_KERNEL_GIVEN, ACTIVE_KERNEL_RUNS, ACTIVE_KERNEL_FUEL };

/* Of one run: bpfkernel's block, then output, then arguments. Zero but for what is counted */
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
	int accounts;	    /* descriptor of memory; */
	uint32_t account;   /* where in it the client's is, */
	uint64_t rate;	    /* and what a client has in a second; 0: there is no limit */
};

/*
 * What the programs of a client used, less what its rate allows, up to the window, which is 2^24
 * ns: some ticks of the kernel's clock.
 */
struct active_kernel_account {
	uint64_t window, used;
};

enum { ACTIVE_KERNEL_WINDOW = 24 };

/* A request of one key: arguments out of the packet, the program, the answer into the packet */
int active_kernel_program_write(struct bpfgen_code *c, const struct active_kernel_program *p,
				struct ebpf_error *err);

#endif
