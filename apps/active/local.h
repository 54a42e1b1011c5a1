/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ACTIVE_LOCAL_H
#define APPS_ACTIVE_LOCAL_H

/* A program on this host, with files as its regions and the functions that a server has. */

#include "active/inside.h"
#include "apps/active/active.h"

struct local {
	struct ebpf_object *object;
	struct ebpf_run *run;
	struct ebpf_params params;
	struct ebpf_region regions[REGIONS_MAX + 1];
	struct warp_active_region files[REGIONS_MAX];
	struct active_view views[REGIONS_MAX];
	struct active_call call;
	uint64_t heap_used;
	uint8_t output[OUTPUT_MAX];
};

/* Loads g->object, with @flags of enum ebpf_load, and its regions: 0, or a status */
int local_open(struct local *l, struct given *g, unsigned int flags);
void local_close(struct local *l, const struct given *g);
/* Makes it ready to begin, again and again: 0, or a status */
int local_start(struct local *l);
/* The object alone: 0, or a status */
int local_object(const char *path, unsigned int flags, struct ebpf_object **out);

#endif
