/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_LINK_H
#define APPS_ARFS_LINK_H

/* One connection to the server, and what a client knows while it lasts. */

#include <warp/active.h>

#include "client.h"

struct link {
	struct warp_active_client *client;
	struct warp_active_region_info region;
	struct arfs_super super; /* what never changes of it */
};

int link_open(struct link *l, const struct client_attr *attr);
void link_close(struct link *l);
/* One operation of RDMA, waited for */
int link_access(const struct link *l, struct warp_active_access *access, uint64_t *old);

/* The ways of reading by RDMA alone: -EAGAIN if something was changed meanwhile */
int one_sided_lookup(const struct link *l, uint64_t dir, const char *name, struct arfs_attr *out);
int one_sided_getattr(const struct link *l, uint64_t node, struct arfs_attr *out);
long one_sided_list(const struct link *l, uint64_t dir, uint64_t offset, void *to, size_t room);
long one_sided_read(const struct link *l, uint64_t node, uint64_t offset, void *to, size_t len);

#endif
