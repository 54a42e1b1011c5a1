/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * accept() where a device listens: from the device, from the kernel, or from both in turn.
 *
 * The call does not begin in the kernel then, and sleeps at the proxy
 * (preload/sock/listener_proxy.c).
 */
#include "preload/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/process.h"
#include "base/sockutil.h"
#include "preload/guard/call.h"
#include "preload/guard/intr_sleep.h"
#include "preload/rules/choose.h"
#include "preload/sock/listener_proxy.h"
#include "preload/sock/provider.h"
#include "preload/sock/sock.h"
#include "preload/sock/worker.h"
#include "preload/table/libc.h"
#include "rnic/rnic_carrier.h"
#include "rnic/rnic_stream.h"

/*
 * Between poll() and accept() another process may have been faster, one that was forked or
 * that was given the socket. Nobody may sleep in the kernel then, with the lock and away from the
 * device: so the file, which they share, is non-blocking for that moment. O_APPEND means nothing to
 * a socket, and tells it from the program's own O_NONBLOCK.
 */
#define FOR_NOW (O_NONBLOCK | O_APPEND)
/* So long the program is given to fork for what it has accepted */
#define FORK_TIME BASE_NS_PER_S

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
	bool ready = s->proxy.beside && base_sock_ready(c->fd, POLLIN);

	return ready ? kernel_accept(c) : -EAGAIN;
}

/* As what TCP accepts has them from its listener */
static void keepalive_inherit(int listener, int fd)
{
	static const int names[] = { TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT };
	int value = base_sock_number(listener, SOL_SOCKET, SO_KEEPALIVE);

	if (value > 0)
		libc.setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof(value));
	for (unsigned int i = 0; i < base_array_size(names) && value > 0; i++) {
		value = base_sock_number(listener, IPPROTO_TCP, names[i]);
		libc.setsockopt(fd, IPPROTO_TCP, names[i], &value, sizeof(value));
	}
}

/*
 * The program's descriptor, a socket that is never connected and answers for the options. It comes
 * before the connection, which nobody can put back: where there is none, that goes on waiting. It
 * is not left open while the call sleeps: the program sees its number, and a child gets it
 */
static long device_get(struct sock *s, struct device_call *c)
{
	int fd = __atomic_load_n(&s->fd, __ATOMIC_SEQ_CST); /* pairs with own_set() in sock.c */
	int domain = base_sock_number(fd, SOL_SOCKET, SO_DOMAIN);
	long made = libc_try(libc.socket(domain, SOCK_STREAM | c->flags, 0));
	long err;

	if (made < 0)
		return made;
	err = provider_ops(s)->get(s->proxy.listener, &c->native);
	if (err)
		base_fd_close((int)made);
	else
		c->made = made;
	return err;
}

/* Of these the program is told, and comes again */
static bool may_pass(long err)
{
	return err == -EAGAIN || err == -EINTR || err == -EMFILE || err == -ENFILE ||
	       err == -ENOMEM;
}

/* Where the device gives nobody any more, as behind setuid(), it would look ready for ever */
static long device_try(struct sock *s, struct device_call *c)
{
	long err;

	if (s->proxy.listener->owner != base_process_self().pid)
		return -EXDEV;
	if (!base_sock_ready(s->proxy.listener->fd, POLLIN))
		return -EAGAIN;
	err = device_get(s, c);
	if (!err)
		__atomic_store_n(&s->proxy.served, true, __ATOMIC_RELEASE);
	if (!err || may_pass(err))
		return err;
	base_warn("descriptor %d: the device listens no more: %s", s->fd, strerror((int)-err));
	device_yield(s, CONFIG_REASON_PROVIDER_UNAVAILABLE);
	return CALL_RESTART;
}

/* Both, and who was not the last first */
static long both_try(struct sock *s, struct device_call *c)
{
	bool kernel = s->proxy.kernel_next;
	long r = kernel ? kernel_try(s, c) : device_try(s, c);

	if (r == -EAGAIN) {
		kernel = !kernel;
		r = kernel ? kernel_try(s, c) : device_try(s, c);
	}
	if (r >= 0)
		s->proxy.kernel_next = !kernel;
	return r;
}

/* When the device has gone it is a call that the kernel sleeps in */
static long take(struct sock *s, struct device_call *c)
{
	long r;

	pthread_mutex_lock(&device_lock);
	device_yield_declined(s);
	r = s->proxy.listener ? both_try(s, c) : CALL_RESTART;
	pthread_mutex_unlock(&device_lock);
	return r;
}

static long take_waiting(struct sock *s, struct device_call *c)
{
	bool never = s->option.never_in;
	uint64_t deadline =
		base_deadline(base_now(), never ? 0 : base_sock_timeout(c->fd, SO_RCVTIMEO));
	struct pollfd p = { .fd = listener_proxy_of(s), .events = POLLIN };
	long r;

	while ((r = take(s, c)) == -EAGAIN) {
		int n = is_nonblock(c->fd) ? 0 : intr_sleep(&p, 1, deadline, NULL, NULL);

		if (n == -EINTR)
			return deadline == BASE_NEVER ? CALL_RESTART : -EINTR;
		if (n <= 0)
			return -EAGAIN;
	}
	return r;
}

bool device_accepts(int fd)
{
	struct call *e = call_enter(false);
	struct sock *s = sock_get(fd);
	bool accepts = s && listener_proxy_listens(s);
	long r = 0;

	sock_put(s);
	call_leave(e, &r);
	return accepts;
}

long device_take(struct sock *s, struct device_call *c)
{
	long r;

	__atomic_add_fetch(&s->proxy.pinned, 1, __ATOMIC_ACQ_REL);
	r = take_waiting(s, c);
	__atomic_sub_fetch(&s->proxy.pinned, 1, __ATOMIC_ACQ_REL);
	return r;
}

bool device_misled(const struct sock *s, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (!s->proxy.given || is_nonblock(fd) || base_sock_timeout(fd, SO_RCVTIMEO) != BASE_NEVER)
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

	if (listener->opts.mode_set)
		return listener->opts.mode;
	provider_ops(listener)->name(native, false, &name);
	choose_server((struct sockaddr *)&name, sizeof(name), &choice);
	return choice.mode;
}

static long request_serve(struct sock *s, const struct device_call *c)
{
	enum config_transport mode = mode_of(s, c->native);

	keepalive_inherit(s->fd, (int)c->made);
	if (mode == CONFIG_USE_TCP)
		provider_refuse(s, c->native);
	else if (!sock_create_accepted((int)c->made, s, mode, c->native))
		return c->made;
	libc.close((int)c->made);
	return -ECONNABORTED;
}

long device_serve(struct sock *s, const struct device_call *c)
{
	long r = request_serve(s, c);
	struct sock *fresh = r >= 0 ? sock_get((int)r) : NULL;

	if (!fresh)
		return r;
	/* The peer waits for the answer. What can come again by TCP may be for a child yet */
	__atomic_store_n(&fresh->taker, gettid(), __ATOMIC_RELAXED);
	if (s->proxy.beside)
		worker_accepted(fresh, FORK_TIME);
	else
		sock_progress(fresh);
	if (c->addr)
		device_name_give(fresh, true, c->addr, c->len);
	sock_put(fresh);
	return r;
}
