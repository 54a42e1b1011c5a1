/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The listeners of this process, for one who connects to it: whether what it reaches speaks DDP is
 * known here, and nobody has to be asked.
 *
 * Each connect() asks, so the table is searched only where there may be such a listener: they are
 * counted by port, several ports to a counter.
 */
#include "preload/sock/listens.h"

#include <netinet/in.h>

#include "base/address.h"
#include "preload/rules/answerer.h"
#include "preload/rules/choose.h"
#include "preload/rules/host.h"
#include "preload/sock/sets.h"
#include "preload/sock/sock.h"
#include "preload/sock/worker.h"
#include "preload/table/internal.h"
#include "preload/table/libc.h"
#include "stream/place.h"

#define COUNTERS 256u
/* So many closed connections are let go for one more */
#define ROOM_TRIES 64

static uint32_t ports[COUNTERS]; /* atomic: listeners */

static uint32_t *counter_of(const void *addr)
{
	return &ports[ntohs(base_address_port(addr)) % COUNTERS];
}

static void count_in(struct sock *s)
{
	if (!__atomic_exchange_n(&s->listening.counted, true, __ATOMIC_ACQ_REL))
		__atomic_add_fetch(counter_of(&s->name), 1, __ATOMIC_ACQ_REL);
}

static void count_out(struct sock *s)
{
	if (__atomic_exchange_n(&s->listening.counted, false, __ATOMIC_ACQ_REL))
		__atomic_sub_fetch(counter_of(&s->name), 1, __ATOMIC_ACQ_REL);
}

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

	if (s->opts.mode_set)
		return s->opts.mode != CONFIG_USE_TCP;
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

	if (!__atomic_load_n(counter_of(addr), __ATOMIC_ACQUIRE))
		return false;
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

static bool is_told_of(const struct sock *s)
{
	return s->listening.serves == LISTENS_TOLD;
}

/* A thread answers for it, if other hosts are to be told */
static int announce(const struct sock *s)
{
	bool told = is_told_of(s);
	int fd = host_announce((const struct sockaddr *)&s->name, sizeof(s->name), told);

	if (fd >= 0 && told)
		answerer_listener(1);
	return fd;
}

static void announced_close(const struct sock *s, int fd)
{
	if (fd >= 0 && is_told_of(s))
		answerer_listener(-1);
	internal_close(fd);
}

static bool memory_ready(const struct sock *s)
{
	return sock_ready() && !stream_memory_ask(s->opts.ring);
}

/* Nobody who comes is on DDP */
static bool is_plain(const struct sock *s)
{
	return s->opts.mode_set ? s->opts.mode == CONFIG_USE_TCP
				: s->listening.serves == LISTENS_PLAIN;
}

bool listens_room(const struct sock *s)
{
	bool ready = is_plain(s) || memory_ready(s);

	for (int i = 0; !ready && i < ROOM_TRIES && worker_room(true); i++)
		ready = memory_ready(s);
	return ready;
}

static struct choice choice_of(const struct sock *s, socklen_t len)
{
	struct choice choice = { .mode = s->opts.mode };

	if (!s->opts.mode_set)
		choose_serves((const struct sockaddr *)&s->name, len, &choice);
	return choice;
}

bool listens_strictly(const struct sock *s)
{
	return choice_of(s, sizeof(s->name)).mode == CONFIG_USE_DDP;
}

/* Is it for DDP? Then also whether other hosts are told of it */
static void serves_choose(struct sock *s, socklen_t len)
{
	struct choice choice = choice_of(s, len);

	if (choice.mode == CONFIG_USE_TCP)
		s->listening.serves = LISTENS_PLAIN;
	else
		s->listening.serves = choice.ask == CONFIG_ASK_NEVER ? LISTENS_UNTOLD
								     : LISTENS_TOLD;
}

/*
 * There are a few names for each address. Of more processes than that which listen there, one takes
 * the place of another that has ended, when it comes to its next connection
 */
void listens_again(struct sock *s)
{
	int none = -1, fd;

	if (__atomic_load_n(&s->listening.announced, __ATOMIC_ACQUIRE) >= 0) {
		answerer_look();
		return;
	}
	fd = announce(s);
	if (!__atomic_compare_exchange_n(&s->listening.announced, &none, fd, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		announced_close(s, fd);
}

void listens_end(struct sock *s)
{
	count_out(s);
	announced_close(s, __atomic_exchange_n(&s->listening.announced, -1, __ATOMIC_ACQ_REL));
}

void listens_begin(struct sock *s)
{
	struct sockaddr *name = (struct sockaddr *)&s->name;
	socklen_t len = sizeof(s->name);

	if (sock_role(s) != SOCK_NEW || libc.getsockname(s->fd, name, &len))
		return;
	mapped_away(&s->name);
	serves_choose(s, len);
	if (s->listening.serves != LISTENS_PLAIN)
		s->listening.announced = announce(s);
	/* Before it is one: who finds none counted is certain of it */
	count_in(s);
	sock_role_set(s, SOCK_LISTENER);
	sets_give_back(s);
}
