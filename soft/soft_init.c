/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The software provider: RDMA over any TCP socket, by the threads that call it.
 */
#include "rnic/rnic.h"
#include "soft/soft_stream.h"

static const struct rnic_ops soft_ops = {
	.name = "soft",
	.stream = &soft_stream_ops,
};

__attribute__((constructor)) static void soft_register(void)
{
	rnic_register(&soft_ops);
}
