/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The listeners of this process, for one who connects to it: whether what it reaches speaks DDP is
 * known here, and nobody has to be asked.
 */
#include "preload/sock/listens.h"

#include <netinet/in.h>

#include "base/address.h"
#include "preload/rules/choose.h"
#include "preload/rules/host.h"
#include "preload/sock/sets.h"
#include "preload/sock/sock.h"
#include "preload/table/libc.h"

struct search {
	const struct sockaddr *addr;
	socklen_t len;
	bool found;
};

static bool address_equals(const struct sockaddr_storage *a, const struct sockaddr *b)
{
	if (a->ss_family != b->sa_family)
		return false;
	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)a)->sin6_addr,
				  &((const struct sockaddr_in6 *)b)->sin6_addr);
}

static bool is_for_ddp(const struct sock *s, const struct search *search)
{
	struct choice choice;

	if (s->fixed)
		return s->mode != CONFIG_USE_TCP;
	choose_server(search->addr, search->len, &choice);
	return choice.mode != CONFIG_USE_TCP;
}

/* A wildcard listener has every address that is this host's */
static void search_listener(int fd, struct fdent *ent, void *ctx)
{
	struct search *search = ctx;
	struct sock *s = sock_of_entry(ent);

	if (!s || sock_role(s) != SOCK_LISTENER ||
	    base_address_port(&s->name) != base_address_port(search->addr))
		return;
	if (base_address_is_any(&s->name) || address_equals(&s->name, search->addr))
		search->found |= is_for_ddp(s, search);
}

bool listens_here(const struct sockaddr *addr, socklen_t len)
{
	struct search search = { addr, len, false };

	fdtab_each(search_listener, &search);
	return search.found && host_is_local(addr, len);
}

/* A listener at a mapped IPv4 address is one at that IPv4 address */
static void mapped_away(struct sockaddr_storage *name)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)name;
	struct sockaddr_storage four;

	if (name->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) &&
	    host_reach((struct sockaddr *)name, sizeof(*six), &four))
		*name = four;
}

void listens_begin(struct sock *s)
{
	struct sockaddr *name = (struct sockaddr *)&s->name;
	socklen_t len = sizeof(s->name);

	if (sock_role(s) != SOCK_NEW || libc.getsockname(s->fd, name, &len))
		return;
	mapped_away(&s->name);
	if (s->fixed ? s->mode != CONFIG_USE_TCP : choose_serves(name, len, NULL))
		s->announced = host_announce(name, len);
	__atomic_store_n(&s->role, SOCK_LISTENER, __ATOMIC_RELEASE);
	sets_give_back(s);
}
