/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Epoll sets that have members of ours.
 *
 * The kernel's set holds their TCP sockets, edge-triggered for all there is, and a doorbell;
 * other members stand in it as the program put them there, with the program's data. What a
 * member of ours is ready for, and whether that is to be told (level, edge, one-shot), is
 * decided here.
 *
 *	the kernel says something of a member	hot, and drained before it is judged
 *	a thread took in something elsewhere	hot, and the doorbell rings for sleepers
 *	ADD, MOD, or a level told before	hot
 *
 * Only hot members are looked at. Hot ones stand on a stack that anybody may push to without a
 * lock, because a push comes from inside a socket's watch list; whoever waits moves them, under
 * the set's lock, to the list of candidates.
 *
 * A registration is of an open file under a number, and lives as long as the file, whatever
 * becomes of the number. The kernel's is under the descriptor that the socket is worked on by; when
 * several numbers of one socket are members, one of them hears for all.
 *
 * Locks: set->lock, then a socket's. A registration is freed only by who holds set->lock, and
 * not while it is on the stack: `stacked` says so, and `dead` that it is to go.
 */
#include "preload/epoll.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "preload/internal.h"
#include "preload/libc.h"
#include "preload/pool.h"
#include "preload/process.h"
#include "preload/wait.h"

#define KERNEL_EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

struct reg {
	struct sock_watch watch; /* in the socket's list */
	struct base_list member; /* in set->members */
	struct base_list node;	 /* in set->candidates, or by itself */
	struct reg *next;	 /* on the stack */
	struct epset *set;
	struct sock *sock; /* a reference */
	int fd;		   /* the program's number */
	int key;	   /* the kernel's; atomic */
	uint32_t mask;
	epoll_data_t data;
	struct stream_edges seen;
	bool fresh;   /* ADD or MOD: an edge by itself */
	bool stacked; /* atomic */
	bool dead;    /* atomic */
	bool drain;   /* atomic: the kernel said something */
};

struct epset {
	struct fdent ent;
	int fd; /* atomic */
	bool own;
	int bell;	   /* -1 before the first member */
	unsigned int age;  /* process_age at its birth */
	int sleepers;	   /* atomic */
	struct reg *stack; /* atomic */
	pthread_mutex_t lock;
	struct base_list members;
	struct base_list candidates;
	struct sock *plain; /* a member found to be plain, with a reference */
};

static struct pool regs = POOL_INIT(struct reg, data, 64);
static struct pool sets = POOL_INIT(struct epset, members, 16);

static long kernel_ctl(int epfd, int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { .events = events, .data.u64 = data };

	return libc_try(libc.epoll_ctl(epfd, op, fd, &event));
}

/* --- hot members --- */

static void reg_push(struct reg *r)
{
	struct epset *set = r->set;

	if (__atomic_exchange_n(&r->stacked, true, __ATOMIC_ACQ_REL))
		return;
	r->next = __atomic_load_n(&set->stack, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&set->stack, &r->next, r, true, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
	/* Pairs with kernel_wait(), which counts itself before it looks at the stack */
	if (__atomic_load_n(&set->sleepers, __ATOMIC_SEQ_CST))
		base_eventfd_ring(set->bell);
}

static void reg_wake(struct sock_watch *watch)
{
	reg_push(base_container_of(watch, struct reg, watch));
}

/* set->lock; the registration is on no stack */
static void reg_free(struct reg *r)
{
	base_list_remove(&r->node);
	base_list_remove(&r->member);
	sock_put(r->sock);
	r->set = NULL;
	pool_put(&regs, r);
}

/* set->lock */
static void stack_empty(struct epset *set)
{
	struct reg *r = __atomic_exchange_n(&set->stack, NULL, __ATOMIC_SEQ_CST), *next;

	for (; r; r = next) {
		next = r->next;
		__atomic_store_n(&r->stacked, false, __ATOMIC_RELEASE);
		if (__atomic_load_n(&r->dead, __ATOMIC_ACQUIRE))
			reg_free(r);
		else if (base_list_empty(&r->node))
			base_list_push_back(&set->candidates, &r->node);
	}
}

/* --- judging --- */

static unsigned int kernel_levels(const struct reg *r)
{
	short ready = base_sock_ready(r->sock->fd, POLLIN | POLLOUT | POLLRDHUP);
	unsigned int levels = 0;

	levels |= ready & POLLIN ? STREAM_READABLE : 0;
	levels |= ready & POLLOUT ? STREAM_WRITABLE : 0;
	levels |= ready & POLLRDHUP ? STREAM_RDHUP : 0;
	levels |= ready & POLLHUP ? STREAM_HUP : 0;
	levels |= ready & POLLERR ? STREAM_ERROR : 0;
	return levels;
}

static uint32_t levels_events(unsigned int levels)
{
	uint32_t events = 0;

	events |= levels & STREAM_READABLE ? EPOLLIN | EPOLLRDNORM : 0;
	events |= levels & STREAM_WRITABLE ? EPOLLOUT | EPOLLWRNORM : 0;
	events |= levels & STREAM_RDHUP ? EPOLLRDHUP : 0;
	events |= levels & STREAM_HUP ? EPOLLHUP : 0;
	events |= levels & STREAM_ERROR ? EPOLLERR : 0;
	return events;
}

/* The peer is plain: to be given back when the set's lock is let go, one at a time */
static uint32_t reg_plain(struct reg *r)
{
	if (!r->set->plain) {
		fdtab_hold(&r->sock->ent);
		r->set->plain = r->sock;
	} else {
		__atomic_store_n(&r->drain, true, __ATOMIC_RELEASE);
		reg_push(r);
	}
	return 0;
}

/*
 * What the member is ready for now, and the edges up to now; a new or listening socket is as
 * the kernel has it
 */
static uint32_t reg_look(struct reg *r, struct stream_edges *edges)
{
	struct sock *s = r->sock;
	bool drain = __atomic_exchange_n(&r->drain, false, __ATOMIC_ACQ_REL);

	*edges = r->seen;
	if (sock_role(s) == SOCK_STREAM_ON) {
		if (drain && s->stream->ops->progress(s->stream) == -ENOMSG)
			return reg_plain(r);
		return levels_events(s->stream->ops->levels(s->stream, edges));
	}
	edges->in += drain;
	edges->out += drain;
	return levels_events(kernel_levels(r));
}

static bool edge_new(const struct reg *r, const struct stream_edges *now, uint32_t events)
{
	if (r->fresh)
		return true;
	if (now->in != r->seen.in && events & ~(uint32_t)(EPOLLOUT | EPOLLWRNORM))
		return true;
	return now->out != r->seen.out && events & (EPOLLOUT | EPOLLWRNORM);
}

/* The events to tell of a candidate, 0 none; then it is a candidate no longer */
static uint32_t reg_judge(struct reg *r)
{
	struct stream_edges now;
	uint32_t events = reg_look(r, &now) & (r->mask | EPOLLERR | EPOLLHUP);

	if (r->mask & EPOLLONESHOT && !(r->mask & ~(uint32_t)(EPOLLONESHOT | EPOLLET)))
		events = 0; /* disarmed until MOD */
	if (events && r->mask & EPOLLET && !edge_new(r, &now, events))
		events = 0;
	if (!events || r->mask & (EPOLLET | EPOLLONESHOT))
		base_list_remove(&r->node);
	if (events) {
		r->fresh = false;
		r->seen = now;
	}
	if (events && r->mask & EPOLLONESHOT)
		r->mask &= EPOLLONESHOT | EPOLLET;
	return events;
}

/*
 * set->lock. Events of our members into @events; each candidate is looked at once, the ones
 * told go to the end
 */
static int collect(struct epset *set, struct epoll_event *events, int max)
{
	struct base_list *node, *next, told;
	int n = 0;

	base_list_init(&told);
	stack_empty(set);
	base_list_foreach(node, next, &set->candidates) {
		struct reg *r = base_list_entry(node, struct reg, node);
		uint32_t what;

		if (n == max)
			break;
		what = reg_judge(r);
		if (!what)
			continue;
		events[n++] = (struct epoll_event){ .events = what, .data = r->data };
		if (!base_list_empty(&r->node)) {
			base_list_remove(&r->node);
			base_list_push_back(&told, &r->node);
		}
	}
	while ((node = base_list_pop_front(&told)))
		base_list_push_back(&set->candidates, node);
	return n;
}

/* --- waiting --- */

static void reg_heard(struct reg *r)
{
	__atomic_store_n(&r->drain, true, __ATOMIC_RELEASE);
	reg_push(r);
}

/* set->lock. The kernel names one registration of a socket that may have several */
static void reg_hear(struct reg *r)
{
	struct base_list *node, *next;
	struct sock *s = r->sock;

	reg_heard(r);
	if (!s->own)
		return;
	pthread_mutex_lock(&s->lock);
	base_list_foreach(node, next, &s->watches) {
		struct sock_watch *w = base_list_entry(node, struct sock_watch, node);
		struct reg *other = base_container_of(w, struct reg, watch);

		if (w->wake == reg_wake && other != r && other->set == r->set)
			reg_heard(other);
	}
	pthread_mutex_unlock(&s->lock);
}

/* Of @n events of the kernel's, those of other members stay; ours become hot. How many stay. */
static int kernel_sort(struct epset *set, struct epoll_event *events, int n)
{
	int kept = 0;

	pthread_mutex_lock(&set->lock);
	for (int i = 0; i < n; i++) {
		struct reg *r = events[i].data.ptr;

		if (events[i].data.ptr == set)
			continue;
		if (!pool_owns(&regs, r)) {
			events[kept++] = events[i];
		} else if (r->set == set) { /* else it was freed since */
			reg_hear(r);
		}
	}
	pthread_mutex_unlock(&set->lock);
	return kept;
}

static bool is_hot(const struct epset *set)
{
	return __atomic_load_n(&set->stack, __ATOMIC_SEQ_CST);
}

/* Members whose start-up has taken too long become hot; when is the next? */
static uint64_t starting_look(struct epset *set, uint64_t now)
{
	struct base_list *node, *next;
	uint64_t first = BASE_NEVER, limit;

	if (!stream_starting())
		return first;
	pthread_mutex_lock(&set->lock);
	base_list_foreach(node, next, &set->members) {
		struct reg *r = base_list_entry(node, struct reg, member);

		if (sock_role(r->sock) != SOCK_STREAM_ON)
			continue;
		limit = r->sock->stream->ops->wait_deadline(r->sock->stream);
		if (base_deadline_passed(limit, now))
			reg_heard(r);
		else
			first = base_min(first, limit);
	}
	pthread_mutex_unlock(&set->lock);
	return first;
}

/*
 * What the kernel has for the program: events, 0 or -errno. Sleeps unless a member of ours is
 * hot.
 */
static int kernel_wait(struct epset *set, struct epoll_event *events, int max, uint64_t deadline,
		       const sigset_t *mask)
{
	int n;

	deadline = base_min(deadline, starting_look(set, base_now()));
	__atomic_add_fetch(&set->sleepers, 1, __ATOMIC_SEQ_CST);
	n = wait_sleep_epoll(set->fd, events, max, is_hot(set) ? 0 : deadline, mask);
	__atomic_sub_fetch(&set->sleepers, 1, __ATOMIC_SEQ_CST);
	return n > 0 ? kernel_sort(set, events, n) : n;
}

static int members_wait(struct epset *set, struct epoll_event *events, int max)
{
	struct sock *plain;
	int n;

	pthread_mutex_lock(&set->lock);
	n = collect(set, events, max);
	plain = set->plain;
	set->plain = NULL;
	pthread_mutex_unlock(&set->lock);
	if (plain)
		sock_fall_back(plain);
	sock_put(plain);
	return n;
}

/* Our members and the kernel's take turns, so that neither starves the other */
int epoll_set_wait(struct epset *set, struct epoll_event *events, int max, uint64_t deadline,
		   const sigset_t *mask)
{
	int n = 0, k = 0;
	bool asked = false;

	if (max <= 0)
		return -EINVAL;
	for (;;) {
		n = members_wait(set, events, max);
		if (n == max || (n && asked))
			return n;
		k = kernel_wait(set, events + n, max - n, n ? 0 : deadline, mask);
		if (n || k)
			return k < 0 && n ? n : n + k;
		if (!is_hot(set) && base_deadline_passed(deadline, base_now()))
			return 0;
		asked = true;
	}
}

/* --- members --- */

/* set->lock */
static struct reg *reg_find(struct epset *set, const struct sock *s, int fd)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &set->members) {
		struct reg *r = base_list_entry(node, struct reg, member);

		if (r->sock == s && r->fd == fd && !__atomic_load_n(&r->dead, __ATOMIC_ACQUIRE))
			return r;
	}
	return NULL;
}

static void reg_arm(struct reg *r, const struct epoll_event *event)
{
	r->mask = event->events;
	r->data = event->data;
	r->fresh = true;
	reg_heard(r);
}

/* set->lock. Another registration of the same socket, which the kernel has by the same key */
static struct reg *reg_sibling(const struct reg *r)
{
	struct base_list *node, *next;

	if (!r->sock->own)
		return NULL;
	base_list_foreach(node, next, &r->set->members) {
		struct reg *other = base_list_entry(node, struct reg, member);

		if (other != r && other->sock == r->sock && other->key == r->key &&
		    !__atomic_load_n(&other->dead, __ATOMIC_ACQUIRE))
			return other;
	}
	return NULL;
}

/* set->lock. Under the descriptor that the socket is worked on by */
static int reg_kernel_add(struct reg *r)
{
	int key = __atomic_load_n(&r->sock->fd, __ATOMIC_SEQ_CST);

	__atomic_store_n(&r->key, key, __ATOMIC_RELEASE);
	if (reg_sibling(r))
		return 0;
	return (int)kernel_ctl(r->set->fd, EPOLL_CTL_ADD, key, KERNEL_EVENTS, (uintptr_t)r);
}

/* set->lock */
static int reg_kernel_del(struct reg *r)
{
	struct reg *other = reg_sibling(r);

	if (other)
		return (int)kernel_ctl(r->set->fd, EPOLL_CTL_MOD, r->key, KERNEL_EVENTS,
				       (uintptr_t)other);
	return (int)kernel_ctl(r->set->fd, EPOLL_CTL_DEL, r->key, 0, 0);
}

/* set->lock */
static int set_bell_create(struct epset *set)
{
	int bell, err;

	if (set->bell >= 0)
		return 0;
	err = base_eventfd_create(&bell);
	if (err)
		return err;
	bell = internal_move(bell);
	err = (int)kernel_ctl(set->fd, EPOLL_CTL_ADD, bell, EPOLLIN | EPOLLET, (uintptr_t)set);
	if (err)
		internal_close(bell);
	else
		set->bell = bell;
	return err;
}

static int member_add(struct epset *set, int fd, struct sock *s, const struct epoll_event *event)
{
	struct reg *r;
	int err;

	if (reg_find(set, s, fd))
		return -EEXIST;
	err = set_bell_create(set);
	if (err)
		return err;
	r = pool_get(&regs);
	if (!r)
		return -ENOMEM;
	*r = (struct reg){ .watch.wake = reg_wake, .set = set, .sock = s, .fd = fd };
	err = reg_kernel_add(r);
	if (err) {
		pool_put(&regs, r);
		return err;
	}
	fdtab_hold(&s->ent);
	base_list_init(&r->node);
	base_list_push_back(&set->members, &r->member);
	sock_watch(s, &r->watch);
	reg_arm(r, event);
	return 0;
}

/* set->lock. Not to be told of again; its memory goes when it is off the stack */
static void reg_kill(struct reg *r)
{
	sock_unwatch(r->sock, &r->watch);
	base_list_remove(&r->node);
	__atomic_store_n(&r->dead, true, __ATOMIC_RELEASE);
	reg_push(r);
}

static int member_del(struct epset *set, struct reg *r)
{
	int err = reg_kernel_del(r);

	reg_kill(r);
	stack_empty(set);
	return err;
}

static int member_change(struct epset *set, int op, int fd, struct sock *s,
			 const struct epoll_event *event)
{
	struct reg *r;

	if (op == EPOLL_CTL_ADD)
		return member_add(set, fd, s, event);
	if (op != EPOLL_CTL_MOD && op != EPOLL_CTL_DEL)
		return -EINVAL;
	r = reg_find(set, s, fd);
	if (!r)
		return -ENOENT;
	if (op == EPOLL_CTL_DEL)
		return member_del(set, r);
	reg_arm(r, event);
	return 0;
}

/* --- sets --- */

static struct epset *set_of(struct fdent *ent)
{
	return (struct epset *)(void *)ent;
}

static void set_release(struct fdent *ent)
{
	struct epset *set = set_of(ent);

	if (set->own)
		internal_close(set->fd);
	internal_close(set->bell);
	pthread_mutex_destroy(&set->lock);
	pool_put(&sets, set);
}

static void set_end(struct fdent *ent)
{
	struct epset *set = set_of(ent);
	struct base_list *node, *next;

	pthread_mutex_lock(&set->lock);
	base_list_foreach(node, next, &set->members)
		reg_kill(base_list_entry(node, struct reg, member));
	stack_empty(set);
	pthread_mutex_unlock(&set->lock);
}

static int set_own(struct fdent *ent)
{
	struct epset *set = set_of(ent);
	int high = 0;

	pthread_mutex_lock(&set->lock);
	if (!set->own) {
		high = internal_dup(set->fd);
		set->own = high >= 0;
		if (set->own)
			__atomic_store_n(&set->fd, high, __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&set->lock);
	return high < 0 ? high : 0;
}

static const struct fdent_ops set_ops = { set_release, set_end, set_own };

static int set_create(int epfd, struct epset **out)
{
	struct epset *set = pool_get(&sets);
	int err;

	if (!set)
		return -ENOMEM;
	*set = (struct epset){ .fd = epfd, .bell = -1, .age = process_age };
	pthread_mutex_init(&set->lock, NULL);
	base_list_init(&set->members);
	base_list_init(&set->candidates);
	set->ent = (struct fdent){ 2, FD_EPOLL, 1, &set_ops };
	err = fdtab_set(epfd, &set->ent);
	if (err) {
		pool_put(&sets, set);
		return err;
	}
	*out = set;
	return 0;
}

int epoll_set_create(int epfd)
{
	struct epset *set;
	int err = set_create(epfd, &set);

	if (!err)
		epoll_put(set);
	return err;
}

struct epset *epoll_get(int epfd)
{
	return (struct epset *)(void *)fdtab_get(epfd, FD_EPOLL);
}

void epoll_put(struct epset *set)
{
	if (set)
		fdtab_put(&set->ent);
}

int epoll_member_ctl(int epfd, int op, int fd, struct sock *s, const struct epoll_event *event)
{
	struct epset *set = epoll_get(epfd);
	int err;

	if (op != EPOLL_CTL_DEL && !event)
		return -EFAULT;
	if (!set && op != EPOLL_CTL_ADD)
		return (int)libc_try(libc.epoll_ctl(epfd, op, fd, (struct epoll_event *)event));
	err = set ? 0 : set_create(epfd, &set);
	if (err)
		return err;
	pthread_mutex_lock(&set->lock);
	err = member_change(set, op, fd, s, event);
	pthread_mutex_unlock(&set->lock);
	epoll_put(set);
	return err;
}

/* --- a socket leaves --- */

static bool reg_is_stale(const struct reg *r)
{
	return __atomic_load_n(&r->key, __ATOMIC_ACQUIRE) != r->sock->fd;
}

/*
 * The set of the socket's first registration, or the first that the kernel has by another
 * descriptor than it should, with a reference; NULL: none
 */
static struct epset *first_set(struct sock *s, bool stale)
{
	struct base_list *node, *next;
	struct epset *set = NULL;

	pthread_mutex_lock(&s->lock);
	base_list_foreach(node, next, &s->watches) {
		struct sock_watch *w = base_list_entry(node, struct sock_watch, node);
		struct reg *r = base_container_of(w, struct reg, watch);

		if (w->wake != reg_wake || (stale && !reg_is_stale(r)))
			continue;
		set = r->set;
		fdtab_hold(&set->ent);
		break;
	}
	pthread_mutex_unlock(&s->lock);
	return set;
}

/* set->lock. As first_set() */
static struct reg *first_reg(struct epset *set, const struct sock *s, bool stale)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &set->members) {
		struct reg *r = base_list_entry(node, struct reg, member);

		if (r->sock == s && !__atomic_load_n(&r->dead, __ATOMIC_ACQUIRE) &&
		    (!stale || reg_is_stale(r)))
			return r;
	}
	return NULL;
}

/*
 * The kernel gets the registration as the program made it. When its number is closed, it stays
 * under the internal descriptor, and outlives that as long as the file is open.
 */
static void reg_give_back(struct reg *r)
{
	int epfd = r->set->fd;

	if (r->key != r->fd && fdtab_peek(r->fd) == &r->sock->ent) {
		reg_kernel_del(r);
		kernel_ctl(epfd, EPOLL_CTL_ADD, r->fd, r->mask, r->data.u64);
	} else if (!reg_sibling(r)) {
		kernel_ctl(epfd, EPOLL_CTL_MOD, r->key, r->mask, r->data.u64);
	}
}

/* Each registration of @s: @plain, the kernel gets it as the program made it; else it is gone */
static void leave(struct sock *s, bool plain)
{
	struct epset *set;
	struct reg *r;

	while ((set = first_set(s, false))) {
		pthread_mutex_lock(&set->lock);
		r = first_reg(set, s, false);
		if (r && plain)
			reg_give_back(r);
		else if (r && set->age == process_age)
			reg_kernel_del(r); /* else the parent's set has it still */
		if (r)
			reg_kill(r);
		stack_empty(set);
		pthread_mutex_unlock(&set->lock);
		epoll_put(set);
	}
}

/* When the kernel does not take the new one, it still has the old */
static void reg_rekey(struct reg *r)
{
	int old = r->key;

	if (!reg_kernel_add(r))
		kernel_ctl(r->set->fd, EPOLL_CTL_DEL, old, 0, 0);
}

void epoll_rekey(struct sock *s)
{
	struct epset *set;
	struct reg *r;

	while ((set = first_set(s, true))) {
		pthread_mutex_lock(&set->lock);
		r = first_reg(set, s, true);
		if (r)
			reg_rekey(r);
		pthread_mutex_unlock(&set->lock);
		epoll_put(set);
	}
}

void epoll_rearm(struct sock *s)
{
	struct base_list *node, *next;

	pthread_mutex_lock(&s->lock);
	base_list_foreach(node, next, &s->watches) {
		struct sock_watch *w = base_list_entry(node, struct sock_watch, node);

		w->wake(w);
	}
	pthread_mutex_unlock(&s->lock);
}

void epoll_forget(struct sock *s)
{
	leave(s, false);
}

void epoll_give_back(struct sock *s)
{
	leave(s, true);
}
