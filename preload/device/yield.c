/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a device's listener ends while its socket goes on: the kernel's listener stands there then,
 * and serves by software. By shutdown(); before a seccomp filter stands; before a program is
 * executed that gets the socket; and by fork().
 *
 * It goes with a fork() before the first of its connections was accepted: which process will serve
 * is not known then, and software serves in all of them. Later it stays the parent's, if that
 * waits there by a set or a thread; else it goes, too, for who accepts and then forks cannot
 * serve what a device carries. So it does where that has shown (preload/sock/decline.c). And where
 * the device gives nobody any more: behind setuid() the kernel refuses what was opened before.
 */
#include "preload/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "preload/guard/call.h"
#include "preload/sock/decline.h"
#include "preload/sock/listener_proxy.h"
#include "preload/sock/provider.h"
#include "preload/table/fork_gen.h"
#include "preload/table/libc.h"

pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Lock. The proxy is the socket's from here on, whatever that is ready for; @listens: if it was the
 * device's alone, the kernel is to listen now
 */
static void device_go(struct sock *s, bool listens)
{
	listener_proxy_leave(s);
	if (s->proxy.beside)
		return;
	if (listens && libc.listen(s->fd, SOMAXCONN))
		base_err("descriptor %d listens no more: %s", s->fd, strerror(errno));
	listener_proxy_stay(s);
}

void device_yield(struct sock *s, enum config_reason reason)
{
	device_go(s, true);
	provider_forgo(s, reason);
}

void device_yield_declined(struct sock *s)
{
	if (s->proxy.listener && s->proxy.beside && sock_has_declined())
		device_yield(s, CONFIG_REASON_FORKED);
}

static void yield_confined(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = sock_of_entry(ent);

	if (s && s->proxy.listener)
		device_yield(s, CONFIG_REASON_SANDBOXED);
}

void device_before_sandbox(void)
{
	pthread_mutex_lock(&device_lock);
	fdtab_each(yield_confined, NULL);
	pthread_mutex_unlock(&device_lock);
}

/* As of a socket that listens: nothing to send is there that could end */
long device_shutdown(struct sock *s, int fd, int how)
{
	long err = 0;

	if (s->proxy.beside)
		err = libc_try(libc.shutdown(fd, how));
	else if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		err = -EINVAL;
	if (err || how == SHUT_WR)
		return err;
	pthread_mutex_lock(&device_lock);
	if (s->proxy.listener)
		device_go(s, false);
	pthread_mutex_unlock(&device_lock);
	return 0;
}

/* --- fork() --- */

static bool stays(const struct sock *s)
{
	return !sock_has_declined() && __atomic_load_n(&s->proxy.pinned, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&s->proxy.served, __ATOMIC_ACQUIRE);
}

static void yield_forking(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = sock_of_entry(ent);

	if (s && s->proxy.listener && !stays(s))
		device_yield(s, CONFIG_REASON_FORKED);
}

/* What another thread has just accepted is not for this one's child */
static void decline(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = sock_of_entry(ent);

	if (s && __atomic_load_n(&s->taker, __ATOMIC_RELAXED) == *(const pid_t *)ctx)
		sock_decline(s);
}

void device_before_fork(void)
{
	pid_t self = gettid();

	pthread_mutex_lock(&device_lock);
	fdtab_each(decline, &self);
	fdtab_each(yield_forking, NULL);
}

/* The next program has the socket, and no device that listens for it */
static void yield_executing(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = sock_of_entry(ent);

	if (!s || libc.fcntl(fd, F_GETFD, 0) & FD_CLOEXEC)
		return;
	sock_decline(s);
	if (s->proxy.listener && !s->proxy.beside)
		device_yield(s, CONFIG_REASON_FORKED);
}

void device_before_exec(void)
{
	struct call *e = call_enter(false);
	long r = 0;

	pthread_mutex_lock(&device_lock);
	fdtab_each(yield_executing, NULL);
	pthread_mutex_unlock(&device_lock);
	call_leave(e, &r);
}

/* What stayed the parent's is; beside it the child has the kernel's */
static void leave(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = sock_of_entry(ent);

	if (!s || !s->proxy.listener || !s->proxy.beside)
		return;
	listener_proxy_forget(s);
	s->proxy.beside = false;
	s->proxy.given = true;
	provider_forgo(s, CONFIG_REASON_FORKED);
}

void device_after_fork(bool child)
{
	if (child)
		fdtab_each(leave, NULL);
	fork_gen_lock_drop(&device_lock, child);
}
