/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Members of epoll sets: they come, change and go; and what becomes of them when a socket changes
 * its kind or its numbers.
 *
 * A registration is known by what stands behind the descriptor and by the number, as in the
 * kernel: it lives as long as the former, also when the number is closed or another's.
 */
#include "preload/wait/epset.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "preload/sock/listener_proxy.h"
#include "preload/sock/others.h"
#include "preload/table/internal.h"
#include "preload/table/user_iov.h"

/* What the kernel allows beside EPOLLEXCLUSIVE */
#define EXCLUSIVE_OK \
	(EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE)

/* --- sockets --- */

static bool is_reg(const struct sock_watch *w)
{
	return w->wake == epset_reg_wake;
}

/* set->lock. Also one that the program has removed */
static struct epset_reg *reg_find(struct epset *set, struct sock *s, int fd)
{
	struct base_list *node, *next;
	struct epset_reg *found = NULL;

	pthread_mutex_lock(&s->lock);
	base_list_foreach(node, next, &s->watches) {
		struct sock_watch *w = base_list_entry(node, struct sock_watch, node);
		struct epset_reg *r = base_container_of(w, struct epset_reg, watch);

		if (is_reg(w) && r->set == set && r->fd == fd)
			found = r;
	}
	pthread_mutex_unlock(&s->lock);
	return found;
}

static struct epset_reg *sock_find(struct epset *set, struct sock *s, int fd)
{
	struct epset_reg *r = reg_find(set, s, fd);

	return r && !r->parked ? r : NULL;
}

static struct epset_reg *reg_create(struct epset *set, int fd, const struct epoll_event *event)
{
	struct epset_reg *r = pool_get(&epset_regs);

	if (!r)
		return NULL;
	*r = (struct epset_reg){ .set = set, .fd = fd, .kfd = fd };
	r->watch.wake = epset_reg_wake;
	r->watch.lasting = true;
	r->watch.exclusive = event->events & EPOLLEXCLUSIVE;
	base_list_init(&r->watch.node);
	base_list_init(&r->member);
	base_list_init(&r->node);
	base_list_init(&r->starting);
	return r;
}

/* Registrations of one socket need a number each */
static int number_add(struct epset_reg *r, int fd)
{
	int err;

	r->kfd = fd;
	err = epset_shadow_ctl(r->set, EPOLL_CTL_ADD, r);
	if (err != -EEXIST)
		return err;
	fd = internal_dup(r->kfd);
	if (fd < 0)
		return fd;
	r->kfd = fd;
	r->own = true;
	return epset_shadow_ctl(r->set, EPOLL_CTL_ADD, r);
}

static int reg_remove(struct epset_reg *r)
{
	int err = epset_shadow_ctl(r->set, EPOLL_CTL_DEL, r);

	epset_reg_kill(r);
	return err;
}

/*
 * Programs remove a socket and add it again for each message: then the shadow still has it, and has
 * told of all that came
 */
static bool sock_add_again(struct epset *set, struct epset_reg *r, const struct epoll_event *event,
			   struct epset_look *look)
{
	if (!r)
		return false;
	if (event->events & EPOLLEXCLUSIVE) {
		reg_remove(r);
		return false;
	}
	epset_reg_arm(r, event, false);
	epset_settle(set, r, false, look);
	return true;
}

static int sock_add(struct epset *set, int fd, struct sock *s, const struct epoll_event *event,
		    struct epset_look *look)
{
	struct epset_reg *r = reg_find(set, s, fd);
	int err;

	if (r && !r->parked)
		return -EEXIST;
	if (sock_add_again(set, r, event, look))
		return 0;
	r = reg_create(set, fd, event);
	if (!r)
		return -ENOMEM;
	err = number_add(r, sock_wait_fd(s));
	if (err) {
		if (r->own)
			internal_close(r->kfd);
		pool_put(&epset_regs, r);
		return err;
	}
	fdtab_hold(&s->ent);
	r->sock = s;
	base_list_push_back(&set->members, &r->member);
	epset_reg_arm(r, event, true);
	sock_watch(s, &r->watch);
	if (sock_role(s) == SOCK_STREAM_ON && others_have(s))
		others_await(s);
	epset_count(r);
	epset_settle(set, r, true, look);
	return 0;
}

static int sock_change(struct epset *set, int op, int fd, struct sock *s,
		       const struct epoll_event *event, struct epset_look *look)
{
	struct epset_reg *r;
	int err = 0;

	if (op == EPOLL_CTL_ADD)
		return sock_add(set, fd, s, event, look);
	if (op != EPOLL_CTL_MOD && op != EPOLL_CTL_DEL)
		return -EINVAL;
	r = sock_find(set, s, fd);
	if (!r)
		return -ENOENT;
	if (op == EPOLL_CTL_MOD && r->watch.exclusive)
		return -EINVAL;
	if (op == EPOLL_CTL_MOD) {
		epset_reg_arm(r, event, false);
		epset_settle(set, r, false, look);
		return 0;
	}
	if (sock_role(s) == SOCK_STREAM_ON && !r->watch.exclusive)
		epset_reg_park(r);
	else
		err = reg_remove(r);
	epset_stack_empty(set);
	return err;
}

/* Of a set that is not known the kernel knows whether it has the member */
static int set_get(int epfd, struct epset **out)
{
	*out = epoll_get(epfd);
	return *out ? 0 : epset_adopt(epfd, out);
}

/*
 * The kernel's questions before it looks for the member, in its order; @inner: a set, or NULL. The
 * set with a reference, which is the caller's also when there is an error
 */
static int ctl_begin(int epfd, int op, const struct epoll_event *event, const struct epset *inner,
		     struct epset **out)
{
	int err;

	if (op != EPOLL_CTL_DEL && user_iov_wild(event, sizeof(*event)))
		return -EFAULT;
	err = set_get(epfd, out);
	if (err)
		return err;
	if (*out == inner)
		return -EINVAL;
	if (op == EPOLL_CTL_DEL || !(event->events & EPOLLEXCLUSIVE))
		return 0;
	if (op == EPOLL_CTL_MOD)
		return -EINVAL;
	if (op == EPOLL_CTL_ADD && (inner || event->events & ~(uint32_t)EXCLUSIVE_OK))
		return -EINVAL;
	return 0;
}

/* What a set takes to have members of ours is the kernel's memory, to a program */
static int ctl_error(int err)
{
	return err == -EMFILE || err == -ENFILE ? -ENOMEM : err;
}

int epoll_sock_ctl(int epfd, int op, int fd, struct sock *s, const struct epoll_event *event)
{
	struct epset_look look = { NULL };
	struct epset *set = NULL;
	int err = ctl_begin(epfd, op, event, NULL, &set);

	if (!err && op == EPOLL_CTL_ADD)
		err = epset_engage(set);
	if (!err) {
		pthread_mutex_lock(&set->lock);
		err = sock_change(set, op, fd, s, event, &look);
		pthread_mutex_unlock(&set->lock);
		epset_settled(set, &look);
	}
	epoll_put(set);
	return ctl_error(err);
}

/* --- sets in sets: nest --- */

static struct epset_reg *nest_find(struct epset *set, struct epset *inner, int fd)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &inner->watches) {
		struct epset_reg *r = base_list_entry(node, struct epset_reg, watch.node);

		if (r->set == set && r->fd == fd)
			return r;
	}
	return NULL;
}

/* A place for it in the shadow, or in the program's own set; the kernel sees to cycles */
static int nest_place(struct epset_reg *r, const struct epoll_event *event)
{
	struct epset *set = r->set;
	int err;

	r->kernels = !epset_has_shadow(r->inner);
	if (r->kernels)
		return (int)epset_kernel_ctl(epset_fd(set), EPOLL_CTL_ADD, r->fd, event->events,
					     event->data.u64);
	err = epset_engage_nested(r->inner);
	err = err ? err : epset_engage_nested(set);
	r->kfd = epset_shadow(r->inner);
	return err ? err : epset_shadow_ctl(set, EPOLL_CTL_ADD, r);
}

static int nest_add(struct epset *set, int fd, struct epset *inner, const struct epoll_event *event)
{
	struct epset_reg *r;
	int err;

	if (nest_find(set, inner, fd))
		return -EEXIST;
	r = reg_create(set, fd, event);
	if (!r)
		return -ENOMEM;
	r->inner = inner;
	r->inner_ready = epset_is_ready;
	err = nest_place(r, event);
	if (err) {
		pool_put(&epset_regs, r);
		return err;
	}
	fdtab_hold((struct fdent *)(void *)inner);
	pthread_mutex_lock(&set->lock);
	base_list_push_back(&set->members, &r->member);
	base_list_push_back(&inner->watches, &r->watch.node);
	r->mask = event->events;
	r->data = event->data;
	if (!r->kernels) {
		epset_reg_arm(r, event, true);
		epset_count(r);
	}
	pthread_mutex_unlock(&set->lock);
	return 0;
}

static int nest_mod(struct epset_reg *r, const struct epoll_event *event)
{
	int err = 0;

	pthread_mutex_lock(&r->set->lock);
	if (r->kernels) {
		r->mask = event->events;
		r->data = event->data;
		err = (int)epset_kernel_ctl(epset_fd(r->set), EPOLL_CTL_MOD, r->fd, event->events,
					    event->data.u64);
	} else {
		epset_reg_arm(r, event, true);
	}
	pthread_mutex_unlock(&r->set->lock);
	return err;
}

static int nest_del(struct epset_reg *r)
{
	struct epset *set = r->set;
	int err;

	pthread_mutex_lock(&set->lock);
	err = r->kernels ? (int)epset_kernel_ctl(epset_fd(set), EPOLL_CTL_DEL, r->fd, 0, 0)
			 : epset_shadow_ctl(set, EPOLL_CTL_DEL, r);
	epset_reg_kill(r);
	epset_stack_empty(set);
	pthread_mutex_unlock(&set->lock);
	return err;
}

static int nest_change(struct epset *set, int op, int fd, struct epset *inner,
		       const struct epoll_event *event)
{
	struct epset_reg *r;

	if (op == EPOLL_CTL_ADD)
		return nest_add(set, fd, inner, event);
	if (op != EPOLL_CTL_MOD && op != EPOLL_CTL_DEL)
		return -EINVAL;
	r = nest_find(set, inner, fd);
	if (!r)
		return -ENOENT;
	return op == EPOLL_CTL_MOD ? nest_mod(r, event) : nest_del(r);
}

int epoll_nest_ctl(int epfd, int op, int fd, struct epset *inner, const struct epoll_event *event)
{
	struct epset *set = NULL;
	int err = ctl_begin(epfd, op, event, inner, &set);

	if (!err) {
		pthread_mutex_lock(&epset_nest);
		err = nest_change(set, op, fd, inner, event);
		pthread_mutex_unlock(&epset_nest);
	}
	epoll_put(set);
	return ctl_error(err);
}

/* --- a socket changes --- */

static bool is_any(const struct epset_reg *r)
{
	return true;
}

/* The shadow knows it by another number than the socket has now */
static bool is_stale(const struct epset_reg *r)
{
	return !r->own && r->kfd != sock_wait_fd(r->sock);
}

/*
 * The registration of a socket that is @so behind @skip others, its set with a reference; NULL:
 * none
 */
static struct epset *next_set(struct sock *s, bool (*so)(const struct epset_reg *r),
			      unsigned int skip, int *fd)
{
	struct base_list *node, *next;
	struct epset *set = NULL;

	pthread_mutex_lock(&s->lock);
	base_list_foreach(node, next, &s->watches) {
		struct sock_watch *w = base_list_entry(node, struct sock_watch, node);
		struct epset_reg *r = base_container_of(w, struct epset_reg, watch);

		if (!is_reg(w) || !so(r) || skip--)
			continue;
		set = r->set;
		*fd = r->fd;
		fdtab_hold((struct fdent *)(void *)set);
		break;
	}
	pthread_mutex_unlock(&s->lock);
	return set;
}

/*
 * The kernel gets it as the program made it. When its number is closed, it gets another, and keeps
 * it when that is closed too, as long as the file is open
 */
static void give_back(const struct epset_reg *r)
{
	bool open = fdtab_peek(r->fd) == &r->sock->ent;
	int fd = open ? listener_proxy_stands(r->fd, true) : r->kfd;
	/* As call_epoll_ctl() of a listener */
	uint32_t mask = fd == r->fd ? r->mask : r->mask & ~(uint32_t)EPOLLEXCLUSIVE;

	epset_kernel_ctl(epset_fd(r->set), EPOLL_CTL_ADD, fd, mask, r->data.u64);
}

/* Each registration of @s: @plain, the kernel gets it as the program made it; else it is gone */
static void leave(struct sock *s, bool plain)
{
	struct epset *set;
	struct epset_reg *r;
	int fd;

	while ((set = next_set(s, is_any, 0, &fd))) {
		pthread_mutex_lock(&set->lock);
		r = reg_find(set, s, fd);
		if (r) {
			epset_shadow_ctl(set, EPOLL_CTL_DEL, r);
			if (plain && !r->parked)
				give_back(r);
			epset_reg_kill(r);
		}
		epset_stack_empty(set);
		pthread_mutex_unlock(&set->lock);
		epoll_put(set);
	}
}

void epset_forget(struct sock *s)
{
	leave(s, false);
}

void epset_give_back(struct sock *s)
{
	leave(s, true);
}

void epset_rekey(struct sock *s)
{
	struct epset *set;
	struct epset_reg *r;
	int fd, err = 0;

	while (!err && (set = next_set(s, is_stale, 0, &fd))) {
		pthread_mutex_lock(&set->lock);
		r = reg_find(set, s, fd);
		if (r && r->parked) {
			reg_remove(r);
			epset_stack_empty(set);
		} else if (r) {
			epset_shadow_ctl(set, EPOLL_CTL_DEL, r);
			err = number_add(r, sock_wait_fd(s));
			epset_reg_mark_ready(r);
		}
		pthread_mutex_unlock(&set->lock);
		epoll_put(set);
	}
	if (err)
		base_err("epoll: no more events of descriptor %d: %s", fd, strerror(-err));
}

/* A look at a member is made under its set's lock */
unsigned int epset_pass(struct sock *s)
{
	unsigned int n = 0;
	struct epset *set;
	int fd;

	while ((set = next_set(s, is_any, n, &fd))) {
		pthread_mutex_lock(&set->lock);
		pthread_mutex_unlock(&set->lock);
		epoll_put(set);
		n++;
	}
	return n;
}
