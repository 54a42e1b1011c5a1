/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_REGION_H
#define ACTIVE_REGION_H

/* Regions of a server, and what one client may do with them. */

#include <stdbool.h>
#include <warp/rdma.h>

#pragma GCC visibility push(default) /* what the library exports */
#include <warp/active_server.h>
#pragma GCC visibility pop

#include "active/heap.h"
#include "active/wire.h"
#include "base/list.h"
#include "bpf/run.h"

enum { ACTIVE_REGIONS_MAX = 128 }; /* of a server, and of a client */

struct active_arena;
struct active_session;

/* A region and what stands behind it */
struct warp_active_region {
	struct base_list link;
	char name[ACTIVE_WIRE_NAME_MAX + 1];
	uint8_t *memory;
	size_t size, room, mapped; /* mapped: 0, or the bytes of our own mapping */
	unsigned int rights, flags;
	size_t heap_offset;
	struct active_heap *heap;  /* or NULL */
	struct active_call *owner; /* the run that has the lock, or NULL; atomic, active/helper.c */
	bool broken;		   /* a run ended as its owner; atomic, before owner */
	struct warp_active_server *server;
	struct active_session *client; /* that it is for alone, or NULL */
	struct active_arena *arena;    /* that it lies in, or NULL; active/kernel.c */
};

/* What one client may do with a region */
struct active_view {
	struct warp_active_region *region;
	unsigned int rights;
	struct warp_mr *mr; /* or NULL */
};

void active_region_destroy(struct warp_active_region *region);
/* The engine's region for a run with these rights */
struct ebpf_region active_region_ebpf(const struct active_view *view, unsigned int rights);

#endif
