/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Listeners of a device.
 *
 * Where both cannot have one port, the kernel's listener would take the device's connections or
 * the other way round: so there is the device's alone, and the program's socket stays bound. It is
 * waited for by the device's descriptor, which stands for the socket in poll() and in epoll sets.
 *
 * It belongs to the process. A fork() gives the port back to the kernel, so that parent and child
 * serve it by software; one that is in an epoll set, or that a thread waits at, cannot be
 * exchanged any more and stays the parent's.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "preload/choose.h"
#include "preload/device.h"
#include "preload/libc.h"
#include "preload/wait.h"
#include "rnic/rnic_carrier.h"

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

/* The device's own socket is bound to the same port */
static void port_share(int fd)
{
	int on = 1;

	libc.setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

int device_listen(struct sock *s, int backlog)
{
	const struct rnic_native_ops *native;
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int err = -EADDRNOTAVAIL;

	if (s->listener)
		return 0;
	if (sock_role(s) != SOCK_NEW || libc.getsockname(s->fd, (struct sockaddr *)&name, &len) ||
	    !is_wanted(s, (struct sockaddr *)&name, len))
		return -EOPNOTSUPP;
	native = device_ops(s);
	if (!native)
		return -EOPNOTSUPP;
	port_share(s->fd);
	/* At the same place in both families; one that the kernel is to choose is the socket's */
	if (((const struct sockaddr_in *)&name)->sin_port)
		err = native->listen((struct sockaddr *)&name, len, backlog, &s->listener);
	if (!err)
		return 0;
	base_debug("descriptor %d: no device listens there: %s", s->fd, strerror(-err));
	device_forgo(s, device_reason(err));
	return err;
}

void device_unlisten(struct sock *s)
{
	if (s->listener)
		device_ops(s)->unlisten(s->listener);
	s->listener = NULL;
}

void device_refuse(const struct sock *listener, struct rnic_native *native)
{
	if (native)
		device_ops(listener)->destroy(native);
}

int device_wait_fd(int fd, bool lasting)
{
	struct sock *s = sock_get(fd);

	if (s && s->listener) {
		fd = s->listener->fd;
		if (lasting)
			__atomic_add_fetch(&s->pinned, 1, __ATOMIC_ACQ_REL);
	}
	sock_put(s);
	return fd;
}

/* --- accept() --- */

static long request_wait(struct sock *s, int fd, struct rnic_native **out)
{
	bool never = s->option.never_in;
	uint64_t deadline =
		base_deadline(base_now(), never ? 0 : base_sock_timeout(fd, SO_RCVTIMEO));
	struct pollfd p = { .fd = s->listener->fd, .events = POLLIN };
	long err;

	while ((err = device_ops(s)->get(s->listener, out)) == -EAGAIN) {
		int n = base_sock_is_nonblock(fd) ? 0 : wait_sleep(&p, 1, deadline, NULL);

		if (n == -EINTR)
			return deadline == BASE_NEVER ? CALL_RESTART : -EINTR;
		if (n <= 0)
			return -EAGAIN;
	}
	return err;
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
static long request_serve(struct sock *s, struct rnic_native *native, int flags)
{
	enum config_transport mode = mode_of(s, native);
	long fd = -ECONNABORTED;

	if (mode != CONFIG_USE_TCP)
		fd = libc_try(libc.socket(s->name.ss_family, SOCK_STREAM | flags, 0));
	if (fd < 0) {
		device_refuse(s, native);
		return fd;
	}
	if (!sock_create_accepted((int)fd, s, mode, native))
		return fd;
	libc.close((int)fd);
	return -ECONNABORTED;
}

long device_accept(struct sock *s, int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct rnic_native *native;
	struct sock *fresh;
	long r;

	__atomic_add_fetch(&s->pinned, 1, __ATOMIC_ACQ_REL);
	r = request_wait(s, fd, &native);
	__atomic_sub_fetch(&s->pinned, 1, __ATOMIC_ACQ_REL);
	if (!r)
		r = request_serve(s, native, flags);
	fresh = r >= 0 ? sock_get((int)r) : NULL;
	if (!fresh)
		return r;
	/* The peer waits for the answer */
	sock_progress(fresh);
	if (addr)
		device_name_give(fresh, true, addr, len);
	sock_put(fresh);
	return r;
}

/* --- fork() --- */

static void yield(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = sock_of_entry(ent);

	if (!s || !s->listener || __atomic_load_n(&s->pinned, __ATOMIC_ACQUIRE))
		return;
	device_unlisten(s);
	if (libc.listen(s->fd, SOMAXCONN))
		base_err("descriptor %d listens no more: %s", fd, strerror(errno));
	device_forgo(s, CONFIG_REASON_FORKED);
}

void device_before_fork(void)
{
	fdtab_each(yield, NULL);
}
