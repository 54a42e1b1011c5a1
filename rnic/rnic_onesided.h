/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One-sided operations of a stream connection: beside the windows, memory of this process that
 * the peer may use, and operations of ours on the peer's memory.
 */
#ifndef RNIC_RNIC_ONESIDED_H
#define RNIC_RNIC_ONESIDED_H

#include <stddef.h>
#include <stdint.h>

struct rnic_stream_mem;

/* What a peer may do; the numbers of enum warp_access */
#define RNIC_REMOTE_WRITE 0x2u
#define RNIC_REMOTE_READ 0x4u
#define RNIC_REMOTE_ATOMIC 0x8u

/*
 * The memory of one connection, of the process that made it alone. A provider embeds it at the
 * head of its own.
 */
struct rnic_regions {
	uint32_t sink_stag; /* of where our Reads put what they bring; its offsets are addresses */
};

enum rnic_onesided_opcode { RNIC_READ, RNIC_FETCH_ADD, RNIC_CMP_SWAP };

/* What an operation beyond Write and Send says; an RNIC_READ's sink is regions->sink_stag */
struct rnic_onesided {
	enum rnic_onesided_opcode opcode;
	uint64_t sink_to;
	uint64_t cookie; /* comes back by rnic_sink.done */
	uint64_t data, mask, compare, compare_mask;
};

struct rnic_onesided_ops {
	/*
	 * Both locks, when start-up is over: regions for @mem, and the depths of one-sided
	 * operations. -EBUSY: one is under way
	 */
	int (*create)(const struct rnic_stream_mem *mem, uint16_t ird, uint16_t ord,
		      struct rnic_regions **out);
	void (*destroy)(struct rnic_regions *regions);
	/* Both. The tagged offset of the first byte is its address. */
	int (*add)(struct rnic_regions *regions, void *addr, size_t len, unsigned int access,
		   uint32_t *stag);
	/* Both. When it returns no peer reaches the memory any more. -EINVAL: no such STag */
	int (*remove)(struct rnic_regions *regions, uint32_t stag);
	/* Both. All of them; and what our Reads still bring is thrown away */
	void (*close)(struct rnic_regions *regions);
};

#endif
