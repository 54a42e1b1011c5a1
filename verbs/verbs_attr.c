/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the device can do, in the terms of warp/rdma.h.
 */
#include <stdio.h>

#include "verbs/verbs.h"

/*
 * iWARP: what Linux' siw takes, the least of all. InfiniBand and RoCE: what the connection
 * manager's Request has room for.
 */
#define PD_IWARP 248
#define PD_IB 56
#define DEPTH 16
#define DEPTH_MAX 128

uint32_t verbs_attr_sge(const struct verbs_device *d)
{
	return base_min((uint32_t)d->attr.max_sge, (uint32_t)VERBS_SGE_MAX);
}

uint32_t verbs_attr_private_data(const struct verbs_device *d)
{
	return d->iwarp ? PD_IWARP : PD_IB;
}

bool verbs_attr_atomics(const struct verbs_device *d)
{
	return d->attr.atomic_cap != IBV_ATOMIC_NONE;
}

/*
 * siw's is "bmt", the others' those of PCI. qedr has the peer's depths of a Reply the wrong way
 * round, which are taken for its own
 */
void verbs_attr_ways(struct verbs_device *d)
{
	enum { SIW = 0x626d74, INTEL = 0x8086, QLOGIC = 0x1077 };
	uint32_t vendor = d->attr.vendor_id;

	d->siw = vendor == SIW;
	d->own_in_request = d->iwarp && vendor == INTEL;
	d->own_in_reply = d->iwarp && (vendor == SIW || vendor == INTEL || vendor == QLOGIC);
}

/*
 * siw's library loses the STag of a Send with Invalidate: the peer would be sent 0. InfiniBand and
 * RoCE invalidate no region that a program has registered.
 */
bool verbs_attr_invalidation(const struct verbs_device *d)
{
	return d->iwarp && !d->siw && (d->attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
}

static uint32_t depth_most(int device)
{
	return base_min((uint32_t)base_max(device, 0), (uint32_t)DEPTH_MAX);
}

static uint8_t depth_of(int device, uint16_t asked)
{
	uint32_t most = depth_most(device);

	if (asked == WARP_DEPTH_DEFAULT || asked == WARP_DEPTH_NONE)
		asked = DEPTH;
	return (uint8_t)base_min(most, (uint32_t)asked);
}

uint8_t verbs_attr_ird(const struct verbs_device *d, uint16_t asked)
{
	return depth_of(d->attr.max_qp_rd_atom, asked);
}

uint8_t verbs_attr_ord(const struct verbs_device *d, uint16_t asked)
{
	return depth_of(d->attr.max_qp_init_rd_atom, asked);
}

int verbs_device_query(const struct warp_device *dev, struct warp_device_attr *attr)
{
	const struct verbs_device *d = verbs_device_of(dev);

	*attr = (struct warp_device_attr){
		.max_qp_wr = (uint32_t)d->attr.max_qp_wr / 2,
		.max_sge = verbs_attr_sge(d),
		.max_inline = VERBS_INLINE_MAX,
		.max_cqe = (uint32_t)d->attr.max_cqe,
		.max_ird = depth_most(d->attr.max_qp_rd_atom),
		.max_ord = depth_most(d->attr.max_qp_init_rd_atom),
		.max_mr_size = d->attr.max_mr_size,
		.max_private_data = verbs_attr_private_data(d),
	};
	if (verbs_attr_atomics(d))
		attr->features |= WARP_FEATURE_ATOMIC;
	if (verbs_attr_invalidation(d))
		attr->features |= WARP_FEATURE_INVALIDATE;
	snprintf(attr->provider, sizeof(attr->provider), "%s", dev->ops->name);
	return 0;
}
