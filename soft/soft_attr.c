/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the software provider can do, and what a connection asks its peer for.
 */
#include <stdio.h>

#include "soft/soft.h"

int soft_device_query(const struct warp_device *dev, struct warp_device_attr *attr)
{
	*attr = (struct warp_device_attr){
		.max_qp_wr = SOFT_WR_MAX,
		.max_sge = SOFT_SGE_MAX,
		.max_inline = SOFT_INLINE_MAX,
		.max_cqe = SOFT_CQE_MAX,
		.max_ird = SOFT_DEPTH_MAX,
		.max_ord = SOFT_DEPTH_MAX,
		.max_mr_size = SIZE_MAX,
		.max_private_data = MPA_PD_MAX - MPA_ENH_LEN,
		.features = WARP_FEATURE_IMMEDIATE | WARP_FEATURE_ATOMIC | WARP_FEATURE_MARKERS |
			    WARP_FEATURE_CRC_OFF | WARP_FEATURE_INVALIDATE,
	};
	snprintf(attr->provider, sizeof(attr->provider), "%s", dev->ops->name);
	return 0;
}

static __u16 depth_of(__u16 asked)
{
	if (asked == WARP_DEPTH_DEFAULT)
		return SOFT_DEPTH;
	if (asked == WARP_DEPTH_NONE)
		return MPA_DEPTH_ULP;
	return base_min(asked, SOFT_DEPTH_MAX);
}

static __u8 rtr_of(unsigned int flags)
{
	__u8 rtr = 0;

	if (flags & WARP_CONN_RTR_SEND)
		rtr |= MPA_RTR_SEND;
	if (flags & WARP_CONN_RTR_WRITE)
		rtr |= MPA_RTR_WRITE;
	if (flags & WARP_CONN_RTR_READ)
		rtr |= MPA_RTR_READ;
	return rtr ? rtr : MPA_RTR_WRITE | MPA_RTR_READ;
}

struct mpa_config soft_attr_config(const struct warp_conn_param *param, enum mpa_role role)
{
	unsigned int flags = param ? param->flags : 0;
	struct mpa_config c = {
		.rev = 2,
		.rtr = rtr_of(flags),
		.ird = depth_of(param ? param->ird : WARP_DEPTH_DEFAULT),
		.ord = depth_of(param ? param->ord : WARP_DEPTH_DEFAULT),
	};

	if (!(flags & WARP_CONN_NO_CRC))
		c.want |= MPA_F_CRC;
	if (flags & WARP_CONN_MARKERS)
		c.want |= MPA_F_RX_MARKERS;
	/* A responder takes what the Request has */
	if (role == MPA_INITIATOR && (flags & WARP_CONN_REV1))
		c.rev = 1;
	else
		c.want |= MPA_F_ENHANCED;
	if (c.rev == 2 && !(flags & WARP_CONN_NO_P2P))
		c.want |= MPA_F_P2P;
	return c;
}
