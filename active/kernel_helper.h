/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_KERNEL_HELPER_H
#define ACTIVE_KERNEL_HELPER_H

/*
 * The functions that programs in the kernel have, of those in active/helper_list.h: X(number, what
 * stands for it there). The last two choose among the run's regions.
 */

#include <warp/active_bpf.h>

#include "bpfkernel/library.h"

#define ACTIVE_KERNEL_HELPER_LIST(X)                     \
	X(WARP_ACTIVE_HELPER_OUTPUT, BPFKERNEL_OUTPUT)   \
	X(WARP_ACTIVE_HELPER_COPY, BPFKERNEL_COPY)       \
	X(WARP_ACTIVE_HELPER_FILL, BPFKERNEL_FILL)       \
	X(WARP_ACTIVE_HELPER_COMPARE, BPFKERNEL_COMPARE) \
	X(WARP_ACTIVE_HELPER_FIND, BPFKERNEL_FIND)       \
	X(WARP_ACTIVE_HELPER_REGION, BPFKERNEL_CHOOSE)   \
	X(WARP_ACTIVE_HELPER_REGION_SIZE, BPFKERNEL_CHOOSE)

#define ACTIVE_KERNEL_HELPER_ROW(id, what) { id, what },

static const struct active_kernel_helper {
	uint32_t id;
	enum bpfkernel_function what;
} active_kernel_helpers[] = { ACTIVE_KERNEL_HELPER_LIST(ACTIVE_KERNEL_HELPER_ROW) };

#endif
