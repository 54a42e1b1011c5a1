/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where liburing was not there to build with: no ring is ever made.
 */
#include "llp/uring.h"

#include <errno.h>

#include "base/log.h"

int llp_uring_create(struct llp_uring **out)
{
	base_warn("io_uring: this libwarp was built without liburing");
	return -ENOSYS;
}

void llp_uring_destroy(struct llp_uring *u)
{
}

void llp_uring_conn_init(struct llp_uring_conn *c, int fd)
{
	llp_tcp_init(&c->llp, fd);
}

void llp_uring_receive(struct llp_uring *u, const struct llp_uring_want *w, unsigned int n)
{
}
