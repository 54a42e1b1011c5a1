/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef RDMAP_ATOMIC_H
#define RDMAP_ATOMIC_H

#include "rdmap/state.h"

/*
 * Does @in, an Atomic Request of a known kind, to the aligned eight octets at @addr; what was
 * there before
 */
__u64 rdmap_atomic_execute(const struct rdmap_inbound *in, __u8 *addr);

static inline bool rdmap_aop_known(unsigned int aop)
{
	return aop == RDMAP_FETCH_ADD || aop == RDMAP_CMP_SWAP;
}

#endif
