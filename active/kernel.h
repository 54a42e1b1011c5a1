/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_KERNEL_H
#define ACTIVE_KERNEL_H

/* A server's door in the kernel: programs of clients, and the memory that they use. */

#include "active/inside.h"

/* Memory that lies in the kernel's arena; it stays as long as the server. -ENOTCONN: no arena */
int active_kernel_memory(struct warp_active_server *server, size_t size, uint8_t **out);
/*
 * Puts the task's program into the kernel; the memory of its answer has where it is. Else @why has
 * a reason. -EBUSY: there is no place
 */
int active_kernel_install(struct active_task *task, char *why, size_t room);
/* The session ends, and what it has in the kernel goes */
void active_kernel_leave(struct active_session *s);
void active_kernel_destroy(struct active_kernel *k);

#endif
