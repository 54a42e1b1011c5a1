/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registrations of what is ours in an epoll set: what one is ready for, and whether that is to be
 * told (level, edge, one-shot).
 *
 * A registration comes onto the ready list when
 *
 *	the kernel says something of it		it is drained before it is judged
 *	that look stops at its bound		for the kernel says nothing more
 *	a thread took in something elsewhere	the wakeup fd wakes sleepers
 *	it is added or modified, or its level was told before
 *
 * Only those on the list are looked at. They stand on a stack that anybody may push to without a
 * lock, because a push comes from inside a socket's watch list; whoever waits moves them, under the
 * set's lock, to the list of candidates (epoll_list.c).
 *
 * A registration is freed only by who holds the set's lock, and not while it is on the stack:
 * `stacked` says so, and `dead` that it is to go.
 */
#include "preload/wait/epset.h"

#include <errno.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/sockutil.h"
#include "preload/table/fork_gen.h"
#include "preload/table/internal.h"
#include "preload/wait/wait.h"

#define SHADOW_EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)
/* The kernel takes no others with EPOLLEXCLUSIVE */
#define EXCLUSIVE_EVENTS (EPOLLIN | EPOLLOUT | EPOLLET | EPOLLEXCLUSIVE)

struct pool epset_regs = POOL_INIT(struct epset_reg, data, 64);

/* --- in the shadow --- */

bool epset_is_inherited(const struct epset *set)
{
	return set->age != fork_gen;
}

int epset_shadow_ctl(const struct epset *set, int op, struct epset_reg *r)
{
	uint32_t events = r->watch.exclusive ? EXCLUSIVE_EVENTS : SHADOW_EVENTS;

	if (epset_is_inherited(set))
		return 0;
	return (int)epset_kernel_ctl(epset_shadow(set), op, r->kfd, events, (uintptr_t)r);
}

/* --- the ready list --- */

/* Also one that stands there already may have been put there quietly */
void epset_reg_push(struct epset_reg *r, bool quiet)
{
	struct epset *set = r->set;

	if (!__atomic_exchange_n(&r->stacked, true, __ATOMIC_ACQ_REL)) {
		r->next = __atomic_load_n(&set->stack, __ATOMIC_RELAXED);
		while (!__atomic_compare_exchange_n(&set->stack, &r->next, r, true,
						    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			;
	}
	/* Pairs with collect_ready(), which counts itself before it looks at the stack */
	if (!quiet && (__atomic_load_n(&set->sleepers, __ATOMIC_SEQ_CST) ||
		       __atomic_load_n(&set->nested, __ATOMIC_SEQ_CST)))
		base_eventfd_notify(set->wakeup);
}

void epset_reg_mark_ready(struct epset_reg *r)
{
	__atomic_store_n(&r->drain, true, __ATOMIC_RELEASE);
	epset_reg_push(r, true);
}

void epset_reg_free(struct epset_reg *r)
{
	base_list_remove(&r->node);
	base_list_remove(&r->member);
	base_list_remove(&r->starting);
	fdtab_put((struct fdent *)(void *)r->inner);
	if (r->own)
		internal_close(r->kfd);
	sock_put(r->sock);
	r->set = NULL;
	pool_put(&epset_regs, r);
}

/* --- looking --- */

static unsigned int kernel_levels(const struct epset_reg *r)
{
	short ready = base_sock_ready(r->kfd, POLLIN | POLLOUT | POLLRDHUP);
	unsigned int levels = 0;

	levels |= ready & POLLIN ? STREAM_READABLE : 0;
	levels |= ready & POLLOUT ? STREAM_WRITABLE : 0;
	levels |= ready & POLLRDHUP ? STREAM_RDHUP : 0;
	levels |= ready & POLLHUP ? STREAM_HUP : 0;
	levels |= ready & POLLERR ? STREAM_ERROR : 0;
	return levels;
}

/* The peer is plain: to be given back when no lock is held, one at a time */
static uint32_t reg_plain(struct epset_reg *r, struct epset_look *look)
{
	if (!look->plain) {
		fdtab_hold(&r->sock->ent);
		look->plain = r->sock;
	} else {
		epset_reg_mark_ready(r);
	}
	return 0;
}

/* Somebody must look again when the Reply is overdue */
static void starting_note(struct epset_reg *r, struct stream *stream)
{
	bool starting = stream_starting() && stream_wait_deadline(stream) != BASE_NEVER;

	if (starting == !base_list_empty(&r->starting))
		return;
	base_list_remove(&r->starting);
	if (starting)
		base_list_push_back(&r->set->starting, &r->starting);
}

/*
 * `looking` spares a wake-up that this look is the answer to; it ends before the levels are read,
 * so that a change which found it true is among them. Pairs with epset_reg_wake(). A reset is told
 * once, and shows behind the octets that came before it.
 */
static uint32_t stream_look(struct epset_reg *r, bool drain, struct stream_edges *edges,
			    struct epset_look *look)
{
	struct stream *stream = r->sock->stream;
	int err = 0;

	if (drain) {
		__atomic_store_n(&r->looking, true, __ATOMIC_SEQ_CST);
		err = stream_progress(stream);
		if (!err && __atomic_load_n(&r->broken, __ATOMIC_ACQUIRE))
			err = stream_progress(stream);
		__atomic_store_n(&r->looking, false, __ATOMIC_SEQ_CST);
		/* The shadow has told all that it had to tell */
		if (stream_more(stream))
			epset_reg_mark_ready(r);
	}
	if (err == -ENOMSG)
		return reg_plain(r, look);
	sock_progressed(r->sock, err);
	starting_note(r, stream);
	return wait_level_events(stream_levels(stream, edges));
}

/* Another stream, or none any more, has edges of its own, and its numbers may be those of before */
static void of_note(struct epset_reg *r)
{
	uint32_t of = r->sock ? __atomic_load_n(&r->sock->streams, __ATOMIC_ACQUIRE) : 0;

	r->fresh |= of != r->of;
	r->of = of;
}

/*
 * What it is ready for now, and the edges up to now; a new or listening socket is as the kernel
 * has it
 */
static uint32_t reg_look(struct epset_reg *r, struct stream_edges *edges, struct epset_look *look)
{
	bool drain = __atomic_exchange_n(&r->drain, false, __ATOMIC_ACQ_REL);

	of_note(r);
	if (r->sock && sock_role(r->sock) == SOCK_STREAM_ON)
		return stream_look(r, drain, edges, look);
	r->marks += drain;
	*edges = (struct stream_edges){ r->marks, r->marks };
	if (r->inner) {
		bool ready = r->inner_ready(r->inner, look);

		if (!ready && epset_has_ready(r->inner))
			epset_reg_mark_ready(r);
		return ready ? EPOLLIN | EPOLLRDNORM : 0;
	}
	return wait_level_events(kernel_levels(r));
}

bool epset_reg_wake(struct sock_watch *watch)
{
	struct epset_reg *r = base_container_of(watch, struct epset_reg, watch);
	bool looking = __atomic_load_n(&r->looking, __ATOMIC_SEQ_CST);
	struct stream *stream = r->sock->stream;

	if (!looking && !__atomic_load_n(&r->parked, __ATOMIC_SEQ_CST))
		epset_reg_push(r, false);
	if (!watch->exclusive || !stream)
		return false;
	return (looking || __atomic_load_n(&r->set->sleepers, __ATOMIC_SEQ_CST)) &&
	       wait_level_events(stream_levels(stream, NULL)) & r->mask;
}

/* --- judging --- */

#define INPUT_EVENTS (EPOLLIN | EPOLLRDNORM | EPOLLPRI | EPOLLRDBAND)
#define OUTPUT_EVENTS (EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND)

/*
 * As the kernel wakes: octets wake who asked for input, room who asked for output, an end, which
 * is an edge both ways, everybody. Who is woken is told of all that is so now.
 */
static bool edge_new(const struct epset_reg *r, const struct stream_edges *now)
{
	bool in = now->in != r->seen.in, out = now->out != r->seen.out;

	if (r->fresh || (in && out))
		return true;
	return (in && r->mask & INPUT_EVENTS) || (out && r->mask & OUTPUT_EVENTS);
}

uint32_t epset_reg_judge(struct epset_reg *r, struct stream_edges *now, struct epset_look *look)
{
	uint32_t events = 0;

	if (r->mask & ~(uint32_t)EPSET_PRIVATE)
		events = reg_look(r, now, look) & r->mask;
	if (events && r->mask & EPOLLET && !edge_new(r, now))
		events = 0;
	if (!events)
		base_list_remove(&r->node);
	return events;
}

void epset_reg_told(struct epset_reg *r, const struct stream_edges *now)
{
	r->fresh = false;
	r->seen = *now;
	if (r->mask & (EPOLLET | EPOLLONESHOT))
		base_list_remove(&r->node);
	if (r->mask & EPOLLONESHOT)
		r->mask &= EPSET_PRIVATE;
}

/* --- its life --- */

/*
 * An error and a hang-up are always told, as the kernel does. Of what comes in for a stream the
 * shadow tells, whatever the mask is, so one that changes needs no drain
 */
void epset_reg_arm(struct epset_reg *r, const struct epoll_event *event, bool is_new)
{
	r->mask = event->events | EPOLLERR | EPOLLHUP;
	r->data = event->data;
	r->fresh = true;
	__atomic_store_n(&r->parked, false, __ATOMIC_SEQ_CST);
	if (is_new)
		__atomic_store_n(&r->drain, true, __ATOMIC_RELEASE);
	epset_reg_push(r, false);
}

void epset_reg_park(struct epset_reg *r)
{
	__atomic_store_n(&r->parked, true, __ATOMIC_SEQ_CST);
	r->mask = 0;
	base_list_remove(&r->node);
	base_list_remove(&r->starting);
}

/* Not to be told of again; its memory goes when it is off the stack */
void epset_reg_kill(struct epset_reg *r)
{
	if (r->sock)
		sock_unwatch(r->sock, &r->watch);
	else
		base_list_remove(&r->watch.node);
	if (!r->kernels) {
		__atomic_sub_fetch(&r->set->ours, 1, __ATOMIC_SEQ_CST);
		if (r->inner)
			__atomic_sub_fetch(&r->inner->nested, 1, __ATOMIC_SEQ_CST);
	}
	base_list_remove(&r->node);
	__atomic_store_n(&r->dead, true, __ATOMIC_RELEASE);
	epset_reg_push(r, true);
}
