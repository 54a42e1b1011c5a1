/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A build without libxdp: the AF_XDP driver that says so.
 */
#include <errno.h>

#include "am/nic.h"
#include "base/log.h"

static int fallback_create(struct am_nic **out, struct am_nic_config *config)
{
	base_warn("am: no AF_XDP: this build has no libxdp");
	return -EOPNOTSUPP;
}

const struct am_nic_ops am_xdp_ops = {
	.name = "xdp",
	.create = fallback_create,
};
