/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Listeners of a device.
 *
 * Where the device leaves the kernel its port (RoCE, InfiniBand) the two listen beside each other,
 * and accept() takes from them in turn. Where it does not (iWARP) the device is alone, if that is
 * wished for, and the program's socket stays bound and unheard. Where a listener is waited for, the
 * gate stands for it, an epoll set of ours:
 *
 *	alone			gate --- device
 *	beside			gate --- device, socket
 *	the device no more	gate --- socket
 *
 * A set knows its members by what stands behind a number and by the number. So where the program
 * has several numbers of one listener in sets, each but the first has a duplicate of the gate.
 *
 * The gate stays as long as the socket does, so the device may go while threads and sets wait.
 *
 * It goes with a fork() before the first of its connections was accepted: which process will serve
 * is not known then, and software serves in all of them. Later it stays the parent's, if that
 * waits there by a set or a thread; else it goes, too, for who accepts and then forks cannot
 * serve what a device carries.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "preload/device/device.h"
#include "preload/guard/edge.h"
#include "preload/guard/nap.h"
#include "preload/guard/sandbox.h"
#include "preload/rules/choose.h"
#include "preload/table/internal.h"
#include "preload/table/libc.h"
#include "preload/table/life.h"
#include "preload/table/pool.h"
#include "rnic/rnic.h"
#include "rnic/rnic_carrier.h"
#include "rnic/rnic_stream.h"

/* Of all listeners: who takes from one, or changes it. Before all other locks of preload/ */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool numbers = POOL_INIT(struct gate_number, next, 64);

static int gate_of(const struct sock *s)
{
	return __atomic_load_n(&s->gate.fd, __ATOMIC_ACQUIRE);
}

bool device_listens(const struct sock *s)
{
	return __atomic_load_n(&s->gate.listener, __ATOMIC_ACQUIRE);
}

/* --- the gate --- */

static long gate_ctl(int gate, int op, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return libc_try(syscall(SYS_epoll_ctl, gate, op, fd, &event));
}

/* Before there is a listener to others, who go by that to the gate */
static int gate_make(struct sock *s, const struct rnic_native_listener *listener)
{
	int gate = (int)libc_try(syscall(SYS_epoll_create1, EPOLL_CLOEXEC));
	long err;

	if (gate < 0)
		return gate;
	err = gate_ctl(gate, EPOLL_CTL_ADD, listener->fd);
	if (!err && s->gate.beside)
		err = gate_ctl(gate, EPOLL_CTL_ADD, s->fd);
	if (err)
		base_fd_close(gate);
	else
		__atomic_store_n(&s->gate.fd, internal_move(gate), __ATOMIC_RELEASE);
	return (int)err;
}

int device_wait_fd(int fd)
{
	struct sock *s = sock_get(fd);

	/* Of one that has ended the kernel's socket says more */
	if (s && device_listens(s))
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

int device_stands(int fd, bool enters)
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

/* --- listen() --- */

static bool is_wanted(struct sock *s, const struct sockaddr *name, socklen_t len)
{
	const char *provider = NULL;
	bool wanted;

	if (s->fixed)
		return s->mode != CONFIG_USE_TCP;
	wanted = choose_serves(name, len, &provider);
	device_wish(s, provider);
	return wanted;
}

static socklen_t own_name(const struct sock *s, struct sockaddr_storage *out)
{
	socklen_t len = sizeof(*out);

	return libc.getsockname(s->fd, (struct sockaddr *)out, &len) ? 0 : len;
}

/* enum rnic_listens; 0: the kernel alone, as where nobody has named a device that takes its port */
static unsigned int ways(struct sock *s, const struct sockaddr *name, socklen_t len)
{
	bool by_route = !s->wish.provider[0];
	const struct rnic_ops *rnic = device_provider(s);
	int how;

	if (!rnic)
		return 0;
	/* The libraries of others make calls of their own */
	how = __atomic_load_n(&sandbox_on, __ATOMIC_ACQUIRE)
		      ? -EPERM
		      : rnic->stream->native->listens(name, len);
	if (how < 0 && !by_route)
		device_forgo(s, device_reason(how));
	if (how < 0)
		return 0;
	if (by_route)
		how &= RNIC_LISTENS_BESIDE;
	return how & RNIC_LISTENS_ALONE ? RNIC_LISTENS_ALONE : (unsigned int)how;
}

static bool is_only_six(const struct sock *s)
{
	return base_sock_number(s->fd, IPPROTO_IPV6, IPV6_V6ONLY) > 0;
}

static void listener_drop(struct sock *s)
{
	struct rnic_native_listener *listener = s->gate.listener;

	__atomic_store_n(&s->gate.listener, NULL, __ATOMIC_RELEASE);
	if (listener)
		device_ops(s)->unlisten(listener);
}

/* At the socket's name, which has a port by now */
static int open_at(struct sock *s, int backlog)
{
	struct sockaddr_storage name;
	socklen_t len = own_name(s, &name);
	struct rnic_native_address at = { (struct sockaddr *)&name, len, backlog,
					  name.ss_family == AF_INET6 && is_only_six(s),
					  s->gate.beside };
	struct rnic_native_listener *listener;
	int err = -EADDRNOTAVAIL;

	/* One that the kernel is to choose is the socket's */
	if (len && base_address_port(&name))
		err = device_ops(s)->listen(&at, &listener);
	if (!err) {
		err = gate_make(s, listener);
		if (err)
			device_ops(s)->unlisten(listener);
		else
			__atomic_store_n(&s->gate.listener, listener, __ATOMIC_RELEASE);
	}
	if (err)
		base_debug("descriptor %d: no device listens there: %s", s->fd, strerror(-err));
	return err;
}

/* The device's own socket is bound to the same port */
static void port_share(int fd)
{
	int on = 1;

	libc.setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

/* In the kernel's place: 0 */
static int alone(struct sock *s, int fd, int backlog)
{
	int err;

	port_share(fd);
	err = open_at(s, backlog);
	if (err)
		device_forgo(s, device_reason(err));
	return err;
}

static void beside(struct sock *s, int backlog)
{
	bool by_route = !s->wish.provider[0];

	if (by_route)
		device_choose(s, device_provider(s)->name);
	s->gate.beside = true;
	if (!open_at(s, backlog))
		return;
	s->gate.beside = false;
	/* Another listener may have the device's port, and that nobody has asked for */
	if (by_route)
		device_choose(s, "");
	else
		device_forgo(s, CONFIG_REASON_PROVIDER_UNAVAILABLE);
}

long device_listen(struct sock *s, int fd, int backlog)
{
	struct sockaddr_storage name;
	unsigned int how = 0;
	socklen_t len;
	long err;

	/* It is connected, though not by the kernel */
	if (device_carries(s))
		return -EINVAL;
	if (device_listens(s) && !s->gate.beside)
		return 0;
	len = sock_role(s) == SOCK_NEW ? own_name(s, &name) : 0;
	if (len && is_wanted(s, (struct sockaddr *)&name, len))
		how = ways(s, (struct sockaddr *)&name, len);
	if (how == RNIC_LISTENS_ALONE && !alone(s, fd, backlog))
		return 0;
	err = libc_try(libc.listen(fd, backlog));
	if (!err && how == RNIC_LISTENS_BESIDE)
		beside(s, backlog);
	return err;
}

/* --- its end --- */

/*
 * Lock. The gate is the socket's from here on, whatever that is ready for; @listens: if it was the
 * device's alone, the kernel is to listen now
 */
static void device_go(struct sock *s, bool listens)
{
	gate_ctl(s->gate.fd, EPOLL_CTL_DEL, s->gate.listener->fd);
	listener_drop(s);
	if (s->gate.beside)
		return;
	if (listens && libc.listen(s->fd, SOMAXCONN))
		base_err("descriptor %d listens no more: %s", s->fd, strerror(errno));
	gate_ctl(s->gate.fd, EPOLL_CTL_ADD, s->fd);
}

/* Lock. To the kernel's listener, and to software */
static void yield(struct sock *s, enum config_reason reason)
{
	device_go(s, true);
	device_forgo(s, reason);
}

static void yield_confined(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = sock_of_entry(ent);

	if (s && s->gate.listener)
		yield(s, CONFIG_REASON_SANDBOXED);
}

void device_before_sandbox(void)
{
	pthread_mutex_lock(&lock);
	fdtab_each(yield_confined, NULL);
	pthread_mutex_unlock(&lock);
}

void device_unlisten(struct sock *s)
{
	if (s->gate.listener)
		listener_drop(s);
	numbers_drop(s);
	internal_close(s->gate.fd);
	s->gate.fd = -1;
}

void device_refuse(const struct sock *listener, struct rnic_native *native)
{
	if (native)
		device_ops(listener)->destroy(native);
}

/* As of a socket that listens: nothing to send is there that could end */
long device_shutdown(struct sock *s, int fd, int how)
{
	long err = 0;

	if (s->gate.beside)
		err = libc_try(libc.shutdown(fd, how));
	else if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		err = -EINVAL;
	if (err || how == SHUT_WR)
		return err;
	pthread_mutex_lock(&lock);
	if (s->gate.listener)
		device_go(s, false);
	pthread_mutex_unlock(&lock);
	return 0;
}

/* --- accept() --- */

/*
 * Between poll() and accept() another process may have been faster, one that was forked or
 * that was given the socket. Nobody may sleep in the kernel then, with the lock and away from the
 * device: so the file, which they share, is non-blocking for that moment. O_APPEND means nothing to
 * a socket, and tells it from the program's own O_NONBLOCK.
 */
#define FOR_NOW (O_NONBLOCK | O_APPEND)

/* Also where a filter forbids to ask */
static bool is_nonblock(int fd)
{
	long flags = libc_try(syscall(SYS_fcntl, fd, F_GETFL, 0));

	return flags < 0 || (flags & FOR_NOW) == O_NONBLOCK;
}

static long kernel_accept(struct device_call *c)
{
	int flags = libc.fcntl(c->fd, F_GETFL, 0);
	long fd;

	if (!(flags & O_NONBLOCK))
		libc.fcntl(c->fd, F_SETFL, flags | FOR_NOW);
	fd = libc_try(libc.accept4(c->fd, c->addr, c->len, c->flags));
	if (!(flags & O_NONBLOCK))
		libc.fcntl(c->fd, F_SETFL, flags);
	return fd;
}

static long kernel_try(struct sock *s, struct device_call *c)
{
	bool ready = s->gate.beside && base_sock_ready(c->fd, POLLIN);

	return ready ? kernel_accept(c) : -EAGAIN;
}

static long device_try(struct sock *s, struct device_call *c)
{
	long err = device_ops(s)->get(s->gate.listener, &c->native);

	if (!err)
		__atomic_store_n(&s->gate.served, true, __ATOMIC_RELEASE);
	return err;
}

/* Both, and who was not the last first */
static long both_try(struct sock *s, struct device_call *c)
{
	bool kernel = s->gate.kernel_next;
	long r = kernel ? kernel_try(s, c) : device_try(s, c);

	if (r == -EAGAIN) {
		kernel = !kernel;
		r = kernel ? kernel_try(s, c) : device_try(s, c);
	}
	if (r >= 0)
		s->gate.kernel_next = !kernel;
	return r;
}

/* When the device has gone it is a call that the kernel sleeps in */
static long take(struct sock *s, struct device_call *c)
{
	long r;

	pthread_mutex_lock(&lock);
	r = s->gate.listener ? both_try(s, c) : CALL_RESTART;
	pthread_mutex_unlock(&lock);
	return r;
}

static long take_waiting(struct sock *s, struct device_call *c)
{
	bool never = s->option.never_in;
	uint64_t deadline =
		base_deadline(base_now(), never ? 0 : base_sock_timeout(c->fd, SO_RCVTIMEO));
	struct pollfd p = { .fd = gate_of(s), .events = POLLIN };
	long r;

	while ((r = take(s, c)) == -EAGAIN) {
		int n = is_nonblock(c->fd) ? 0 : nap_sleep(&p, 1, deadline, NULL);

		if (n == -EINTR)
			return deadline == BASE_NEVER ? CALL_RESTART : -EINTR;
		if (n <= 0)
			return -EAGAIN;
	}
	return r;
}

bool device_accepts(int fd)
{
	struct edge *e = edge_enter(false);
	struct sock *s = sock_get(fd);
	bool accepts = s && device_listens(s);
	long r = 0;

	sock_put(s);
	edge_leave(e, &r);
	return accepts;
}

long device_take(struct sock *s, struct device_call *c)
{
	long r;

	__atomic_add_fetch(&s->gate.pinned, 1, __ATOMIC_ACQ_REL);
	r = take_waiting(s, c);
	__atomic_sub_fetch(&s->gate.pinned, 1, __ATOMIC_ACQ_REL);
	return r;
}

bool device_misled(const struct sock *s, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (!s->gate.given || is_nonblock(fd) || base_sock_timeout(fd, SO_RCVTIMEO) != BASE_NEVER)
		return false;
	/* Who was at it may have been killed there */
	base_poll(&p, 1, base_deadline(base_now(), BASE_NS_PER_MS));
	return true;
}

/* What the rules say of the end that was asked for */
static enum config_transport mode_of(const struct sock *listener, const struct rnic_native *native)
{
	struct sockaddr_storage name;
	struct choice choice;

	if (listener->fixed)
		return listener->mode;
	device_ops(listener)->name(native, false, &name);
	choose_server((struct sockaddr *)&name, sizeof(name), &choice);
	return choice.mode;
}

/* The program's descriptor is a socket that is never connected, and answers for the options */
static long request_serve(struct sock *s, const struct device_call *c)
{
	enum config_transport mode = mode_of(s, c->native);
	int domain = base_sock_number(s->fd, SOL_SOCKET, SO_DOMAIN);
	long fd = -ECONNABORTED;

	if (mode != CONFIG_USE_TCP)
		fd = libc_try(libc.socket(domain, SOCK_STREAM | c->flags, 0));
	if (fd < 0) {
		device_refuse(s, c->native);
		return fd;
	}
	if (!sock_create_accepted((int)fd, s, mode, c->native))
		return fd;
	libc.close((int)fd);
	return -ECONNABORTED;
}

long device_serve(struct sock *s, const struct device_call *c)
{
	long r = request_serve(s, c);
	struct sock *fresh = r >= 0 ? sock_get((int)r) : NULL;

	if (!fresh)
		return r;
	/* The peer waits for the answer */
	sock_progress(fresh);
	if (c->addr)
		device_name_give(fresh, true, c->addr, c->len);
	sock_put(fresh);
	return r;
}

/* --- fork() --- */

static bool stays(const struct sock *s)
{
	return __atomic_load_n(&s->gate.pinned, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&s->gate.served, __ATOMIC_ACQUIRE);
}

static void yield_forking(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = sock_of_entry(ent);

	if (!s || !s->gate.listener)
		return;
	if (!stays(s))
		yield(s, CONFIG_REASON_FORKED);
}

void device_before_fork(void)
{
	pthread_mutex_lock(&lock);
	fdtab_each(yield_forking, NULL);
}

/* The next program has the socket, and no device that listens for it */
static void yield_executing(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = sock_of_entry(ent);

	if (s && s->gate.listener && !s->gate.beside && !(libc.fcntl(fd, F_GETFD, 0) & FD_CLOEXEC))
		yield(s, CONFIG_REASON_FORKED);
}

void device_before_exec(void)
{
	struct edge *e = edge_enter(false);
	long r = 0;

	pthread_mutex_lock(&lock);
	fdtab_each(yield_executing, NULL);
	pthread_mutex_unlock(&lock);
	edge_leave(e, &r);
}

/* What stayed the parent's is; beside it the child has the kernel's */
static void leave(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = sock_of_entry(ent);

	if (!s || !s->gate.listener || !s->gate.beside)
		return;
	s->gate.listener = NULL;
	numbers_drop(s);
	internal_close(s->gate.fd);
	s->gate.fd = -1;
	s->gate.beside = false;
	s->gate.given = true;
	device_forgo(s, CONFIG_REASON_FORKED);
}

void device_after_fork(bool child)
{
	if (child)
		fdtab_each(leave, NULL);
	life_lock_drop(&lock, child);
}
