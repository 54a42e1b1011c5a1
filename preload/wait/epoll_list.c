/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The list of a set's candidates: which members may be ready, in which order they are told.
 *
 * The order is Linux's. A member comes to the end of the list when it becomes ready, or comes or
 * changes and is. A wait tells from the beginning on. One that is told of and holds (level) goes to
 * the end; those that found no room in the program's array are first the next time. A member keeps
 * its place when more arrives for it, and loses it when a look finds it not ready.
 *
 * The kernel's members are a list of the kernel's, behind the program's own descriptor, which has
 * one place in ours: that of the first of them that became ready. Whether all were told nobody
 * knows when they fill the array. If that was the whole array, as many of ours as it has room for
 * go before the rest.
 */
#include "preload/wait/epset.h"

#include "base/sockutil.h"
#include "preload/guard/intr_sleep.h"

/* A stack has the last one first; the first that became ready is to be the first in the list */
static struct epset_reg *stack_turn(struct epset_reg *r)
{
	struct epset_reg *turned = NULL, *next;

	for (; r; r = next) {
		next = r->next;
		r->next = turned;
		turned = r;
	}
	return turned;
}

void epset_stack_empty(struct epset *set)
{
	struct epset_reg *r, *next;

	r = stack_turn(__atomic_exchange_n(&set->stack, NULL, __ATOMIC_SEQ_CST));
	for (; r; r = next) {
		next = r->next;
		__atomic_store_n(&r->stacked, false, __ATOMIC_RELEASE);
		if (__atomic_load_n(&r->dead, __ATOMIC_ACQUIRE))
			epset_reg_free(r);
		else if (base_list_empty(&r->node))
			base_list_push_back(&set->candidates, &r->node);
	}
}

/* The shadow tells in the order of arrival, which those on the stack need not be in */
void epset_hear_of(struct epset_reg *r)
{
	__atomic_store_n(&r->drain, true, __ATOMIC_RELEASE);
	if (r->parked) {
		epset_shadow_ctl(r->set, EPOLL_CTL_DEL, r);
		epset_reg_kill(r);
		return;
	}
	if (base_list_empty(&r->node))
		base_list_push_back(&r->set->candidates, &r->node);
}

/* --- the kernel's members --- */

static bool is_program(const struct epset_reg *r)
{
	return r == &r->set->program;
}

int epset_wakes_drop(const struct epset *set, struct epoll_event *events, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
		if (events[i].data.ptr != set)
			events[kept++] = events[i];
	return kept;
}

/* Behind so many others, or at the end */
static void move_back(struct epset *set, struct base_list *node, int places)
{
	struct base_list *at = node->next;

	base_list_remove(node);
	while (places-- && at != &set->candidates)
		at = at->next;
	base_list_push_back(at, node);
}

/* Those for which there is room; @max: in the whole array */
static int program_collect(struct epset *set, struct epoll_event *events, int room, int max,
			   struct base_list *told)
{
	struct base_list *node = &set->program.node;
	int n = intr_sleep_epoll_now(epset_fd(set), events, room);

	if (n < room)
		base_list_remove(node);
	else if (room == max)
		move_back(set, node, max);
	if (n > 0 && n < room)
		base_list_push_back(told, node);
	return n > 0 ? epset_wakes_drop(set, events, n) : 0;
}

/* --- looking and telling --- */

static bool is_ready(struct epset_reg *r, struct epset_look *look)
{
	struct stream_edges now;

	if (!is_program(r))
		return epset_reg_judge(r, &now, look);
	if (base_sock_ready(epset_fd(r->set), POLLIN) & POLLIN)
		return true;
	base_list_remove(&r->node);
	return false;
}

/* Who is about to sleep and has looked before must look again. Pairs with collect_ready() */
static void candidates_left(struct epset *set)
{
	if (!base_list_empty(&set->candidates))
		__atomic_add_fetch(&set->left, 1, __ATOMIC_SEQ_CST);
}

bool epset_peek(struct epset *set, struct epset_look *look)
{
	struct base_list *node, *next;

	epset_stack_empty(set);
	base_list_foreach(node, next, &set->candidates) {
		if (is_ready(base_list_entry(node, struct epset_reg, node), look)) {
			candidates_left(set);
			return true;
		}
	}
	return false;
}

/*
 * A look would answer the peer, and then the connection is this process's: a server that forks for
 * each connection registers it before (preload/sock/decline.c)
 */
static bool look_binds(const struct epset_reg *r)
{
	struct sock *s = r->sock;

	return s && sock_role(s) == SOCK_STREAM_ON && s->accepted && sock_on_device(s) &&
	       !(stream_levels(s->stream, NULL) & STREAM_STARTED);
}

bool epset_place(struct epset *set, struct epset_reg *r, struct epset_look *look)
{
	epset_stack_empty(set);
	if (!base_list_empty(&r->node) && !look_binds(r))
		is_ready(r, look);
	candidates_left(set);
	return !base_list_empty(&set->candidates);
}

/* One event at most; if it holds, it goes to @told */
static int reg_collect(struct epset_reg *r, struct epoll_event *event, struct base_list *told,
		       struct epset_look *look)
{
	struct stream_edges now;
	uint32_t what = epset_reg_judge(r, &now, look);

	if (!what)
		return 0;
	*event = (struct epoll_event){ .events = what, .data = r->data };
	epset_reg_told(r, &now);
	if (!base_list_empty(&r->node)) {
		base_list_remove(&r->node);
		base_list_push_back(told, &r->node);
	}
	return 1;
}

int epset_collect(struct epset *set, struct epoll_event *events, int max, struct epset_look *look)
{
	struct base_list *node, *next, told;
	int n = 0;

	base_list_init(&told);
	epset_stack_empty(set);
	base_list_foreach(node, next, &set->candidates) {
		struct epset_reg *r = base_list_entry(node, struct epset_reg, node);

		if (n == max)
			break;
		if (is_program(r))
			n += program_collect(set, events + n, max - n, max, &told);
		else
			n += reg_collect(r, &events[n], &told, look);
	}
	while ((node = base_list_pop_front(&told)))
		base_list_push_back(&set->candidates, node);
	candidates_left(set);
	return n;
}
