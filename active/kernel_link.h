/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_KERNEL_LINK_H
#define ACTIVE_KERNEL_LINK_H

/* The descriptor that holds a door at its interface, and which a child of fork() closes. */

#include <stdbool.h>

#include "base/list.h"

struct active_kernel_link {
	struct base_list list;
	int fd; /* or -1 */
};

/* As bpfkernel_attach(), in one that is new or was closed: 0, or a negative errno */
int active_kernel_link_open(struct active_kernel_link *link, int program, unsigned int interface,
			    bool native);
void active_kernel_link_close(struct active_kernel_link *link);

#endif
