/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets as entries of the table: their memory, and how one comes to them.
 */
#include "preload/sock/entry.h"

#include <string.h>

#include "base/sockutil.h"
#include "preload/sock/sock.h"
#include "preload/table/pool.h"

static struct pool socks = POOL_INIT(struct sock, watches, 64);

struct sock *sock_alloc(int fd, const struct sock_ops *ops)
{
	struct sock *s = pool_get(&socks);

	if (!s)
		return NULL;
	/* The entry may be looked at by a number that is out of date */
	memset((char *)s + sizeof(s->ent), 0, sizeof(*s) - sizeof(s->ent));
	s->fd = fd;
	s->proxy.fd = -1;
	s->listening.announced = -1;
	s->work.watched = -1;
	s->changes = 1;
	s->said = true;
	s->opts = sock_config.conn;
	pthread_mutex_init(&s->lock, NULL);
	base_list_init(&s->watches);
	s->ent.kind = FD_SOCK;
	s->ent.numbers = 1;
	s->ent.round = 0;
	s->ent.ops = &ops->ent;
	__atomic_store_n(&s->ent.refs, 1, __ATOMIC_RELEASE); /* pairs with fdtab_get() */
	return s;
}

void sock_free(struct sock *s)
{
	pthread_mutex_destroy(&s->lock);
	pool_put(&socks, s);
}

bool sock_ready(void)
{
	return pool_ready(&socks);
}

void sock_each(void (*fn)(void *object))
{
	pool_each(&socks, fn);
}

uint64_t sock_cookie(int fd)
{
	uint64_t cookie;

	return base_sock_cookie(fd, &cookie) ? 0 : cookie;
}

bool sock_is_behind(const struct sock *s, int fd)
{
	return s->cookie && sock_cookie(fd) == s->cookie;
}
