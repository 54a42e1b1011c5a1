/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets that stay on TCP, and whose waits spin.
 */
#include "preload/sock/waited.h"

#include "preload/sock/sock.h"
#include "preload/table/pool.h"

static struct pool pool = POOL_INIT(struct waited, place, 64);

static void release(struct fdent *ent)
{
	pool_put(&pool, ent);
}

static void end(struct fdent *ent)
{
}

static int own(struct fdent *ent)
{
	return 0;
}

static const struct fdent_ops ops = { release, end, own };

void waited_add(int fd)
{
	struct waited *w = sock_config.tcp_spin && spin_may() ? pool_get(&pool) : NULL;

	if (!w)
		return;
	w->place = (struct spin_place){ 0 };
	spin_place_of(&w->place, fd);
	w->listens = false;
	w->ent.kind = FD_WAITED;
	w->ent.numbers = 1;
	w->ent.round = 0;
	w->ent.ops = &ops;
	__atomic_store_n(&w->ent.refs, 1, __ATOMIC_RELEASE); /* pairs with fdtab_get() */
	if (fdtab_set(fd, &w->ent))
		fdtab_put(&w->ent);
}

struct waited *waited_get(int fd)
{
	return (struct waited *)(void *)fdtab_get(fd, FD_WAITED);
}

void waited_put(struct waited *w)
{
	if (w)
		fdtab_put(&w->ent);
}

void waited_listens(int fd)
{
	struct waited *w = waited_get(fd);

	if (w)
		__atomic_store_n(&w->listens, true, __ATOMIC_RELAXED);
	waited_put(w);
}
