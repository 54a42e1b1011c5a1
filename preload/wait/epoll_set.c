/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Epoll sets: made, given a shadow, ended; sets in sets; fork.
 *
 * A set in a set stands in the program's own, as long as it has no shadow: then the kernel sees to
 * it. When it gets one, the outer sets get one too, and it moves there, for only by its shadow the
 * kernel can tell that there is something to look at.
 *
 * A child has its parent's registrations, in its own memory, and the program's descriptor, which
 * both share as they do without us. The shadow it must not touch: that is the parent's. It makes
 * one of its own when it first needs it.
 */
#include "preload/wait/epset.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "preload/sock/others.h"
#include "preload/sock/sets.h"
#include "preload/table/fork_gen.h"
#include "preload/table/internal.h"

pthread_mutex_t epset_nest = PTHREAD_MUTEX_INITIALIZER;

static struct pool sets = POOL_INIT(struct epset, members, 16);

static struct epset *set_of(struct fdent *ent)
{
	return (struct epset *)(void *)ent;
}

struct epset *epoll_get(int epfd)
{
	return set_of(fdtab_get(epfd, FD_EPOLL));
}

void epoll_put(struct epset *set)
{
	if (set)
		fdtab_put(&set->ent);
}

void epoll_hint(int epfd, int fd)
{
	struct epset *set = epoll_get(epfd);

	if (set)
		spin_place_of(&set->place, fd);
	epoll_put(set);
}

/* --- made and ended --- */

static void shadow_close(struct epset *set)
{
	int shadow = __atomic_exchange_n(&set->shadow, -1, __ATOMIC_ACQ_REL);

	if (shadow < 0)
		return;
	internal_close(shadow);
	internal_close(set->wakeup);
	set->wakeup = -1;
}

static void set_release(struct fdent *ent)
{
	struct epset *set = set_of(ent);

	/* Not before, for a thread may have slept on it */
	shadow_close(set);
	if (set->own)
		internal_close(epset_fd(set));
	pthread_mutex_destroy(&set->lock);
	pool_put(&sets, set);
}

/* nest */
static void outer_leave(struct epset_reg *r)
{
	struct epset *outer = r->set;

	pthread_mutex_lock(&outer->lock);
	if (!r->kernels)
		epset_shadow_ctl(outer, EPOLL_CTL_DEL, r);
	epset_reg_kill(r);
	epset_stack_empty(outer);
	pthread_mutex_unlock(&outer->lock);
}

static void set_end(struct fdent *ent)
{
	struct base_list *node, *next;
	struct epset *set = set_of(ent);

	pthread_mutex_lock(&epset_nest);
	base_list_foreach(node, next, &set->watches)
		outer_leave(base_list_entry(node, struct epset_reg, watch.node));
	pthread_mutex_lock(&set->lock);
	base_list_foreach(node, next, &set->members)
		epset_reg_kill(base_list_entry(node, struct epset_reg, member));
	epset_stack_empty(set);
	pthread_mutex_unlock(&set->lock);
	pthread_mutex_unlock(&epset_nest);
}

/* The shadow has the old one, and goes on to hear of it */
static int set_own(struct fdent *ent)
{
	struct epset *set = set_of(ent);
	int fd = 0;

	pthread_mutex_lock(&epset_nest);
	if (!set->own) {
		fd = internal_dup(epset_fd(set));
		if (fd >= 0) {
			set->own = true;
			__atomic_store_n(&set->fd, fd, __ATOMIC_SEQ_CST);
		}
	}
	pthread_mutex_unlock(&epset_nest);
	return fd < 0 ? fd : 0;
}

static const struct fdent_ops set_ops = { set_release, set_end, set_own };

/* With one reference, the table's */
static int set_create(int epfd, struct epset **out)
{
	struct epset *set = pool_get(&sets);
	int err;

	if (!set)
		return -ENOMEM;
	sets_made();
	*set = (struct epset){ .fd = epfd, .shadow = -1, .wakeup = -1, .heard = -1 };
	pthread_mutex_init(&set->lock, NULL);
	base_list_init(&set->members);
	base_list_init(&set->candidates);
	base_list_init(&set->starting);
	base_list_init(&set->watches);
	base_list_init(&set->program.node);
	set->program.set = set;
	set->ent.kind = FD_EPOLL;
	set->ent.numbers = 1;
	set->ent.ops = &set_ops;
	__atomic_store_n(&set->ent.refs, 1, __ATOMIC_RELEASE); /* pairs with fdtab_get() */
	err = fdtab_set(epfd, &set->ent);
	if (err) {
		set_release(&set->ent);
		return err;
	}
	*out = set;
	return 0;
}

/* What stood at the number was closed behind our back */
void epoll_born(int epfd)
{
	struct epset *set = epfd >= 0 ? epoll_get(epfd) : NULL;

	if (set) {
		set_end(&set->ent);
		epoll_put(set);
	}
	if (epfd >= 0)
		set_create(epfd, &set);
}

/* Is it a set at all? One that is does not know a descriptor that was just made */
static int set_probe(int epfd)
{
	int fd, err = base_fd_is_open(epfd) ? base_eventfd_create(&fd) : -EBADF;

	if (err)
		return err;
	err = (int)epset_kernel_ctl(epfd, EPOLL_CTL_DEL, fd, 0, 0);
	base_fd_close(fd);
	return err == -ENOENT ? 0 : err;
}

int epset_adopt(int epfd, struct epset **out)
{
	struct epset *set;
	int err = 0;

	pthread_mutex_lock(&epset_nest);
	set = epoll_get(epfd);
	if (!set) {
		err = set_probe(epfd);
		err = err ? err : set_create(epfd, &set);
		if (!err)
			fdtab_hold(&set->ent);
	}
	pthread_mutex_unlock(&epset_nest);
	if (!err)
		*out = set;
	return err;
}

/* --- the shadow --- */

/* set->lock. What the shadow has from the beginning; after a fork, all that it had */
static int shadow_fill(struct epset *set)
{
	struct base_list *node, *next;
	int err = (int)epset_kernel_ctl(epset_shadow(set), EPOLL_CTL_ADD, set->wakeup,
					EPOLLIN | EPOLLET, (uintptr_t)set);

	if (!err)
		err = (int)epset_kernel_ctl(epset_shadow(set), EPOLL_CTL_ADD, epset_fd(set),
					    EPOLLIN, (uintptr_t)&set->program);
	base_list_foreach(node, next, &set->members) {
		struct epset_reg *r = base_list_entry(node, struct epset_reg, member);

		if (err)
			break;
		if (r->parked)
			epset_reg_kill(r);
		if (r->kernels || r->parked)
			continue;
		if (r->inner)
			err = epset_engage_nested(r->inner);
		if (r->inner && !err)
			r->kfd = epset_shadow(r->inner);
		if (!err)
			err = epset_shadow_ctl(set, EPOLL_CTL_ADD, r);
	}
	return err;
}

/* set->lock */
static int shadow_make(struct epset *set)
{
	int wakeup, shadow, err = base_eventfd_create(&wakeup);

	if (err)
		return err;
	shadow = (int)libc_try(syscall(SYS_epoll_create1, EPOLL_CLOEXEC));
	if (shadow < 0) {
		base_fd_close(wakeup);
		return shadow;
	}
	if (epset_has_shadow(set))
		shadow_close(set);
	set->wakeup = internal_move(wakeup);
	set->heard = -1;
	set->age = fork_gen;
	__atomic_store_n(&set->shadow, internal_move(shadow), __ATOMIC_RELEASE);
	err = shadow_fill(set);
	if (err)
		shadow_close(set);
	return err;
}

void epset_hear(struct epset *set)
{
	int wakeup = others_fd();

	if (wakeup < 0 || __atomic_load_n(&set->heard, __ATOMIC_ACQUIRE) == wakeup)
		return;
	pthread_mutex_lock(&set->lock);
	if (set->heard != wakeup && !epset_kernel_ctl(epset_shadow(set), EPOLL_CTL_ADD, wakeup,
						      EPOLLIN, (uintptr_t)&set->heard))
		__atomic_store_n(&set->heard, wakeup, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&set->lock);
}

/* --- sleepers on the program's descriptor --- */

/*
 * set->lock. Who sleeps there from before the set had a member of ours wakes by an event that is
 * none, and comes over
 */
static void native_waiters_wake(struct epset *set)
{
	if (!__atomic_load_n(&set->native_waiters, __ATOMIC_SEQ_CST) || set->woken)
		return;
	base_eventfd_notify(set->wakeup);
	set->woken = !epset_kernel_ctl(epset_fd(set), EPOLL_CTL_ADD, set->wakeup, EPOLLIN,
				       (uintptr_t)set);
}

void epset_native_waiter_enter(struct epset *set)
{
	__atomic_add_fetch(&set->native_waiters, 1, __ATOMIC_SEQ_CST);
}

/* The last of them takes it away; also when the members have gone in the meantime */
void epset_native_waiter_leave(struct epset *set)
{
	unsigned int left = __atomic_sub_fetch(&set->native_waiters, 1, __ATOMIC_SEQ_CST);

	if (!epset_has_shadow(set))
		return;
	pthread_mutex_lock(&set->lock);
	if (set->woken && (!left || !set->ours)) {
		epset_kernel_ctl(epset_fd(set), EPOLL_CTL_DEL, set->wakeup, 0, 0);
		set->woken = false;
	}
	pthread_mutex_unlock(&set->lock);
}

/* --- sets in sets --- */

/* nest. The inner set of @r has a shadow now, and the outer one too */
static int outer_move(struct epset_reg *r)
{
	struct epset *outer = r->set;
	int err;

	pthread_mutex_lock(&outer->lock);
	epset_kernel_ctl(epset_fd(outer), EPOLL_CTL_DEL, r->fd, 0, 0);
	r->kfd = epset_shadow(r->inner);
	err = epset_shadow_ctl(outer, EPOLL_CTL_ADD, r);
	if (err) {
		epset_kernel_ctl(epset_fd(outer), EPOLL_CTL_ADD, r->fd, r->mask, r->data.u64);
	} else {
		r->kernels = false;
		epset_count(r);
		epset_reg_mark_ready(r);
	}
	pthread_mutex_unlock(&outer->lock);
	return err;
}

void epset_count(struct epset_reg *r)
{
	if (r->inner) {
		__atomic_add_fetch(&r->inner->nested, 1, __ATOMIC_SEQ_CST);
		base_list_push_back(&r->set->starting, &r->starting);
	}
	__atomic_add_fetch(&r->set->ours, 1, __ATOMIC_SEQ_CST);
	native_waiters_wake(r->set);
}

int epset_engage_nested(struct epset *set)
{
	struct base_list *node, *next;
	int err;

	if (epset_has_shadow(set) && !epset_is_inherited(set))
		return 0;
	pthread_mutex_lock(&set->lock);
	err = shadow_make(set);
	pthread_mutex_unlock(&set->lock);
	base_list_foreach(node, next, &set->watches) {
		struct epset_reg *r = base_list_entry(node, struct epset_reg, watch.node);

		if (err)
			break;
		if (!r->kernels)
			continue;
		err = epset_engage_nested(r->set);
		err = err ? err : outer_move(r);
	}
	return err;
}

int epset_engage(struct epset *set)
{
	int err;

	if (epset_has_shadow(set) && !epset_is_inherited(set))
		return 0;
	pthread_mutex_lock(&epset_nest);
	err = epset_engage_nested(set);
	pthread_mutex_unlock(&epset_nest);
	return err;
}

/* --- fork --- */

/*
 * What is locked, with a reference to each: another thread may take one out of the table meanwhile,
 * in close(), and wait for its lock
 */
static struct {
	struct epset *first;
	struct epset *failed; /* somebody else has this one */
} held;

/* The order of outer and inner sets is not known here: nobody is waited for with one in hand */
static void fork_lock_one(int fd, struct fdent *ent, void *ctx)
{
	struct epset *set = held.failed || ent->kind != FD_EPOLL ? NULL : set_of(ent);

	if (!set || set->fork_locked)
		return;
	if (pthread_mutex_trylock(&set->lock)) {
		held.failed = set;
		return;
	}
	fdtab_hold(ent);
	set->fork_locked = true;
	set->fork_next = held.first;
	held.first = set;
}

static void fork_unlock_all(void)
{
	struct epset *set;

	while ((set = held.first)) {
		held.first = set->fork_next;
		set->fork_locked = false;
		pthread_mutex_unlock(&set->lock);
		epoll_put(set);
	}
}

void epoll_before_fork(void)
{
	pthread_mutex_lock(&epset_nest);
	for (;;) {
		held.failed = NULL;
		fdtab_each(fork_lock_one, NULL);
		if (!held.failed)
			break;
		fork_unlock_all();
		sched_yield();
	}
}

/* The parent's threads do not sleep here */
static void inherit_one(int fd, struct fdent *ent, void *ctx)
{
	struct epset *set = ent->kind == FD_EPOLL ? set_of(ent) : NULL;

	if (set)
		set->sleepers = set->native_waiters = 0;
}

void epoll_after_fork(bool child)
{
	if (child)
		fdtab_each(inherit_one, NULL);
	fork_unlock_all();
	pthread_mutex_unlock(&epset_nest);
}
