/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Atomic operations on 64-bit numbers in host order (RFC 7306 section 5.1).
 *
 * The RFC wants them atomic against each other only within a device. All processes of a machine
 * are one device here, so it takes the CPU: a compare-and-swap loop, with which they are atomic
 * against the program's own atomics too.
 */
#include "rdmap/atomic.h"

/*
 * A set bit in @mask ends a field: the carry out of it is dropped. Added without these bits, a
 * sum cannot carry out of its field; the bits themselves are then added to that carry without
 * one of their own.
 */
static __u64 masked_add(__u64 old, __u64 addend, __u64 mask)
{
	return ((old & ~mask) + (addend & ~mask)) ^ ((old ^ addend) & mask);
}

static __u64 masked_swap(__u64 old, const struct rdmap_inbound *in)
{
	if ((old ^ in->op.compare) & in->op.compare_mask)
		return old;
	return (old & ~in->op.mask) | (in->op.data & in->op.mask);
}

__u64 rdmap_atomic_execute(const struct rdmap_inbound *in, __u8 *addr)
{
	__u64 *number = (__u64 *)(void *)addr, old, new;

	/* Pairs with whatever atomic others use on this number, in this process or another */
	old = __atomic_load_n(number, __ATOMIC_SEQ_CST);
	do
		new = in->aop == RDMAP_FETCH_ADD ? masked_add(old, in->op.data, in->op.mask)
						 : masked_swap(old, in);
	while (!__atomic_compare_exchange_n(number, &old, new, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST));
	return old;
}
