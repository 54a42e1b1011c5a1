/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What stands for a listener where it is waited for, while a device listens, too: an epoll set of
 * ours.
 *
 *	alone			gate --- device
 *	beside			gate --- device, socket
 *	the device no more	gate --- socket
 *
 * A set knows its members by what stands behind a number and by the number. So where the program
 * has several numbers of one listener in sets, each but the first has a duplicate of the gate.
 *
 * The gate stays as long as the socket does, so the device may go while threads and sets wait.
 */
#include "preload/sock/gate.h"

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

static struct pool numbers = POOL_INIT(struct gate_number, next, 64);

int gate_of(const struct sock *s)
{
	return __atomic_load_n(&s->gate.fd, __ATOMIC_ACQUIRE);
}

bool gate_listens(const struct sock *s)
{
	return __atomic_load_n(&s->gate.listener, __ATOMIC_ACQUIRE);
}

static long gate_ctl(int gate, int op, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return libc_try(syscall(SYS_epoll_ctl, gate, op, fd, &event));
}

int gate_open(struct sock *s, struct rnic_native_listener *listener)
{
	int gate = (int)libc_try(syscall(SYS_epoll_create1, EPOLL_CLOEXEC));
	long err;

	if (gate < 0)
		return gate;
	err = gate_ctl(gate, EPOLL_CTL_ADD, listener->fd);
	if (!err && s->gate.beside)
		err = gate_ctl(gate, EPOLL_CTL_ADD, s->fd);
	if (err) {
		base_fd_close(gate);
		return (int)err;
	}
	/* In this order: who finds a listener goes by that to the gate */
	__atomic_store_n(&s->gate.fd, internal_move(gate), __ATOMIC_RELEASE);
	__atomic_store_n(&s->gate.listener, listener, __ATOMIC_RELEASE);
	return 0;
}

int gate_wait_fd(int fd)
{
	struct sock *s = sock_get(fd);

	/* Of one that has ended the kernel's socket says more */
	if (s && gate_listens(s))
		fd = gate_of(s);
	sock_put(s);
	return fd;
}

static struct gate_number *number_find(struct gate_number *n, int fd)
{
	while (n && n->fd != fd)
		n = n->next;
	return n;
}

static void number_put(const struct sock *s, struct gate_number *n)
{
	if (n->stands != gate_of(s))
		internal_close(n->stands);
	pool_put(&numbers, n);
}

static void numbers_drop(struct sock *s)
{
	struct gate_number *n;

	while ((n = s->gate.numbers)) {
		s->gate.numbers = n->next;
		number_put(s, n);
	}
}

/* It stands by a number of its own, or by the gate's when it is the first. Not under the lock */
static int number_add(struct sock *s, int fd)
{
	struct gate_number *head = __atomic_load_n(&s->gate.numbers, __ATOMIC_ACQUIRE);
	struct gate_number *known, *n = pool_get(&numbers);

	if (!n)
		return -ENOMEM;
	*n = (struct gate_number){ .fd = fd, .stands = gate_of(s) };
	do {
		known = number_find(head, fd);
		if (known) {
			number_put(s, n);
			return known->stands;
		}
		if (head && n->stands == gate_of(s))
			n->stands = internal_dup(gate_of(s));
		if (n->stands < 0) {
			pool_put(&numbers, n);
			return -ENOMEM;
		}
		n->next = head;
	} while (!__atomic_compare_exchange_n(&s->gate.numbers, &head, n, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	return n->stands;
}

int gate_stands(int fd, bool enters)
{
	struct sock *s = sock_get(fd);
	struct gate_number *n;

	if (s && gate_of(s) >= 0) {
		n = number_find(__atomic_load_n(&s->gate.numbers, __ATOMIC_ACQUIRE), fd);
		if (enters)
			__atomic_add_fetch(&s->gate.pinned, 1, __ATOMIC_ACQ_REL);
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
	struct rnic_native_listener *listener = s->gate.listener;

	__atomic_store_n(&s->gate.listener, NULL, __ATOMIC_RELEASE);
	if (listener)
		provider_ops(s)->unlisten(listener);
}

void gate_leave(struct sock *s)
{
	gate_ctl(s->gate.fd, EPOLL_CTL_DEL, s->gate.listener->fd);
	listener_drop(s);
}

void gate_stay(struct sock *s)
{
	gate_ctl(s->gate.fd, EPOLL_CTL_ADD, s->fd);
}

static void gate_close(struct sock *s)
{
	numbers_drop(s);
	internal_close(s->gate.fd);
	s->gate.fd = -1;
}

void gate_end(struct sock *s)
{
	if (s->gate.listener)
		listener_drop(s);
	gate_close(s);
}

void gate_forget(struct sock *s)
{
	s->gate.listener = NULL;
	gate_close(s);
}
