/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_KERNEL_H
#define ACTIVE_KERNEL_H

/* A server's door in the kernel: programs of clients, and the memory that they use. */

#include "active/inside.h"

/*
 * Memory for the region, in the arena of its owner or of the number. -ENOTCONN: the server has no
 * door in the kernel; -EBUSY: programs are in the arena. Under server.lock
 */
int active_kernel_memory(struct warp_active_region *region, unsigned int number);
/*
 * Puts the task's program into the kernel; the memory of its answer has where it is. Else @why has
 * a reason. -EBUSY: there is no place
 */
int active_kernel_install(struct active_task *task, char *why, size_t room);
/* The session ends, and what it has in the kernel goes, its own memory too */
void active_kernel_leave(struct active_session *s);
/* What of it the kernel has, for warp_active_server_query() */
void active_kernel_query(struct active_kernel *k, struct warp_active_stats *stats);
void active_kernel_destroy(struct active_kernel *k);

#endif
