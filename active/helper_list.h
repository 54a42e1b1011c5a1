/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_HELPER_LIST_H
#define ACTIVE_HELPER_LIST_H

/*
 * The functions that a server has for programs, one table for the server, for warp-activecc and for
 * whoever runs programs on this host: X(name, number, arguments, the server's function).
 */

#include <warp/active_bpf.h>

#define ACTIVE_HELPER_LIST(X)                                                 \
	X("warp_output", WARP_ACTIVE_HELPER_OUTPUT, 2, ebpf_helper_output)    \
	X("warp_alloc", WARP_ACTIVE_HELPER_ALLOC, 2, alloc)                   \
	X("warp_free", WARP_ACTIVE_HELPER_FREE, 1, release)                   \
	X("warp_region", WARP_ACTIVE_HELPER_REGION, 1, region)                \
	X("warp_region_size", WARP_ACTIVE_HELPER_REGION_SIZE, 1, region_size) \
	X("warp_copy", WARP_ACTIVE_HELPER_COPY, 3, copy)                      \
	X("warp_fill", WARP_ACTIVE_HELPER_FILL, 3, fill)                      \
	X("warp_compare", WARP_ACTIVE_HELPER_COMPARE, 3, compare)             \
	X("warp_find", WARP_ACTIVE_HELPER_FIND, 3, find)                      \
	X("warp_lock", WARP_ACTIVE_HELPER_LOCK, 1, lock)                      \
	X("warp_unlock", WARP_ACTIVE_HELPER_UNLOCK, 1, unlock)                \
	X("warp_sync", WARP_ACTIVE_HELPER_SYNC, 1, sync_back)

#endif
