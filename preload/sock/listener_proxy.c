/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What stands for a listener where it is waited for, while a device listens, too: an epoll set of
 * ours.
 *
 *	alone			proxy --- device
 *	beside			proxy --- device, socket
 *	the device no more	proxy --- socket
 *
 * A set knows its members by what stands behind a number and by the number. So where the program
 * has several numbers of one listener in sets, each but the first has a duplicate of the proxy.
 *
 * The proxy stays as long as the socket does, so the device may go while threads and sets wait.
 */
#include "preload/sock/listener_proxy.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "preload/sock/provider.h"
#include "preload/sock/sock.h"
#include "preload/table/internal.h"
#include "preload/table/libc.h"
#include "preload/table/pool.h"
#include "rnic/rnic_stream.h"

static struct pool numbers = POOL_INIT(struct listener_proxy_number, next, 64);

int listener_proxy_of(const struct sock *s)
{
	return __atomic_load_n(&s->proxy.fd, __ATOMIC_ACQUIRE);
}

bool listener_proxy_listens(const struct sock *s)
{
	return __atomic_load_n(&s->proxy.listener, __ATOMIC_ACQUIRE);
}

static long listener_proxy_ctl(int proxy, int op, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return libc_try(syscall(SYS_epoll_ctl, proxy, op, fd, &event));
}

int listener_proxy_open(struct sock *s, struct rnic_native_listener *listener)
{
	int proxy = (int)libc_try(syscall(SYS_epoll_create1, EPOLL_CLOEXEC));
	long err;

	if (proxy < 0)
		return proxy;
	err = listener_proxy_ctl(proxy, EPOLL_CTL_ADD, listener->fd);
	if (!err && s->proxy.beside)
		err = listener_proxy_ctl(proxy, EPOLL_CTL_ADD, s->fd);
	if (err) {
		base_fd_close(proxy);
		return (int)err;
	}
	/* In this order: who finds a listener goes by that to the proxy */
	__atomic_store_n(&s->proxy.fd, internal_move(proxy), __ATOMIC_RELEASE);
	__atomic_store_n(&s->proxy.listener, listener, __ATOMIC_RELEASE);
	return 0;
}

int listener_proxy_wait_fd(int fd)
{
	struct sock *s = sock_get(fd);

	/* Of one that has ended the kernel's socket says more */
	if (s && listener_proxy_listens(s))
		fd = listener_proxy_of(s);
	sock_put(s);
	return fd;
}

static struct listener_proxy_number *number_find(struct listener_proxy_number *n, int fd)
{
	while (n && n->fd != fd)
		n = n->next;
	return n;
}

static void number_put(const struct sock *s, struct listener_proxy_number *n)
{
	if (n->stands != listener_proxy_of(s))
		internal_close(n->stands);
	pool_put(&numbers, n);
}

static void numbers_drop(struct sock *s)
{
	struct listener_proxy_number *n;

	while ((n = s->proxy.numbers)) {
		s->proxy.numbers = n->next;
		number_put(s, n);
	}
}

/* It stands by a number of its own, or by the proxy's when it is the first. Not under the lock */
static int number_add(struct sock *s, int fd)
{
	struct listener_proxy_number *head = __atomic_load_n(&s->proxy.numbers, __ATOMIC_ACQUIRE);
	struct listener_proxy_number *known, *n = pool_get(&numbers);

	if (!n)
		return -ENOMEM;
	*n = (struct listener_proxy_number){ .fd = fd, .stands = listener_proxy_of(s) };
	do {
		known = number_find(head, fd);
		if (known) {
			number_put(s, n);
			return known->stands;
		}
		if (head && n->stands == listener_proxy_of(s))
			n->stands = internal_dup(listener_proxy_of(s));
		if (n->stands < 0) {
			pool_put(&numbers, n);
			return -ENOMEM;
		}
		n->next = head;
	} while (!__atomic_compare_exchange_n(&s->proxy.numbers, &head, n, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	return n->stands;
}

int listener_proxy_stands(int fd, bool enters)
{
	struct sock *s = sock_get(fd);
	struct listener_proxy_number *n;

	if (s && listener_proxy_of(s) >= 0) {
		n = number_find(__atomic_load_n(&s->proxy.numbers, __ATOMIC_ACQUIRE), fd);
		if (enters)
			__atomic_add_fetch(&s->proxy.pinned, 1, __ATOMIC_ACQ_REL);
		if (n)
			fd = n->stands;
		else if (enters)
			fd = number_add(s, fd);
	}
	sock_put(s);
	return fd;
}

/* --- its end --- */

static void listener_drop(struct sock *s)
{
	struct rnic_native_listener *listener = s->proxy.listener;

	__atomic_store_n(&s->proxy.listener, NULL, __ATOMIC_RELEASE);
	if (listener)
		provider_ops(s)->unlisten(listener);
}

void listener_proxy_leave(struct sock *s)
{
	listener_proxy_ctl(s->proxy.fd, EPOLL_CTL_DEL, s->proxy.listener->fd);
	listener_drop(s);
}

void listener_proxy_stay(struct sock *s)
{
	listener_proxy_ctl(s->proxy.fd, EPOLL_CTL_ADD, s->fd);
}

static void listener_proxy_close(struct sock *s)
{
	numbers_drop(s);
	internal_close(s->proxy.fd);
	s->proxy.fd = -1;
}

void listener_proxy_end(struct sock *s)
{
	if (s->proxy.listener)
		listener_drop(s);
	listener_proxy_close(s);
}

void listener_proxy_forget(struct sock *s)
{
	s->proxy.listener = NULL;
	listener_proxy_close(s);
}
