/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of the program's that the peer of a connection may write to: the device knows it, places
 * what comes, and refuses what must not be.
 */
#include <errno.h>

#include "base/map.h"
#include "base/process.h"
#include "verbs/verbs_stream.h"

#define REGIONS 128

struct regions {
	struct rnic_regions regions;
	struct verbs_stream *stream;
	bool closed;
	struct ibv_mr *mr[REGIONS]; /* NULL: free */
};

static struct regions *regions_of(struct rnic_regions *regions)
{
	return base_container_of(regions, struct regions, regions);
}

static int regions_create(const struct rnic_stream_mem *mem, uint16_t ird, uint16_t ord,
			  struct rnic_regions **out)
{
	struct regions *r;
	int err = base_map_create(sizeof(*r), (void **)&r);

	if (err)
		return err;
	r->stream = verbs_stream_of(mem);
	*out = &r->regions;
	return 0;
}

static int regions_add(struct rnic_regions *regions, void *addr, size_t len, unsigned int access,
		       uint32_t *stag)
{
	struct regions *r = regions_of(regions);
	unsigned int i = 0;

	if (access != RNIC_REMOTE_WRITE)
		return -EOPNOTSUPP;
	/* Nobody would take it back before the connection is gone */
	if (r->closed)
		return -EPIPE;
	while (i < REGIONS && r->mr[i])
		i++;
	if (i == REGIONS)
		return -ENOMEM;
	errno = 0;
	r->mr[i] = verbs_call(ibv_reg_mr)(r->stream->pd, addr, len,
					  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!r->mr[i])
		return errno ? -errno : -EIO;
	*stag = r->mr[i]->rkey;
	return 0;
}

static int regions_remove(struct rnic_regions *regions, uint32_t stag)
{
	struct regions *r = regions_of(regions);

	for (unsigned int i = 0; i < REGIONS; i++)
		if (r->mr[i] && r->mr[i]->rkey == stag) {
			verbs_call(ibv_dereg_mr)(r->mr[i]);
			r->mr[i] = NULL;
			return 0;
		}
	return -EINVAL;
}

/* In a child they are its parent's */
static void regions_close(struct rnic_regions *regions)
{
	struct regions *r = regions_of(regions);

	if (r->stream->owner != base_process_self().pid)
		return;
	r->closed = true;
	for (unsigned int i = 0; i < REGIONS; i++) {
		if (r->mr[i])
			verbs_call(ibv_dereg_mr)(r->mr[i]);
		r->mr[i] = NULL;
	}
}

static void regions_destroy(struct rnic_regions *regions)
{
	regions_close(regions);
	base_map_destroy(regions_of(regions), sizeof(struct regions));
}

const struct rnic_onesided_ops verbs_stream_regions = {
	.create = regions_create,
	.destroy = regions_destroy,
	.add = regions_add,
	.remove = regions_remove,
	.close = regions_close,
};
