/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that make, open and end sockets.
 *
 * accept() gives what the kernel gives and never waits for a Request.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <wire/iwarp.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "preload/device/device.h"
#include "preload/guard/barred.h"
#include "preload/rules/choose.h"
#include "preload/rules/grace.h"
#include "preload/rules/plain.h"
#include "preload/rules/report.h"
#include "preload/sock/fallback.h"
#include "preload/sock/info.h"
#include "preload/sock/life.h"
#include "preload/sock/listener_proxy.h"
#include "preload/sock/listens.h"
#include "preload/sock/sock.h"
#include "preload/sock/waited.h"
#include "preload/sock/worker.h"
#include "preload/table/libc.h"
#include "preload/wait/kernel.h"

/* --- making --- */

static bool is_tcp(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) &&
	       (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

/* With a report wanted, also those that no rule can match: they are counted */
static bool is_wanted(int domain, int type, int protocol)
{
	if (!choose_may(CONFIG_CLIENT) && !choose_may(CONFIG_SERVER) && !sock_config.report[0])
		return false;
	return is_tcp(domain, type, protocol);
}

long call_socket(int domain, int type, int protocol)
{
	long fd = libc_try(libc.socket(domain, type, protocol));
	int err;

	if (fd >= 0 && !is_wanted(domain, type, protocol) && is_tcp(domain, type, protocol))
		waited_add((int)fd);
	if (fd < 0 || !is_wanted(domain, type, protocol))
		return fd;
	err = sock_create((int)fd);
	if (!err)
		return fd;
	/* On TCP it would speak to peers for whom that is rubbish, and nobody would know why */
	base_warn("no socket: %s", strerror(-err));
	libc.close((int)fd);
	return err;
}

long call_listen(int fd, int backlog)
{
	struct sock *s = sock_get(fd);
	long err = s ? device_listen(s, fd, backlog) : libc_try(libc.listen(fd, backlog));

	if (!err && s)
		listens_begin(s);
	if (!err)
		waited_listens(fd);
	sock_put(s);
	return err;
}

/* What the listener's program, or the rules, say of a new connection */
static void accepted_choose(const struct sock *listener, int fd, struct choice *out)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);

	if (listener->opts.mode_set)
		*out = (struct choice){ .mode = listener->opts.mode,
					.reason = CONFIG_REASON_MODE_OFF,
					.named = true };
	else if (libc.getsockname(fd, (struct sockaddr *)&name, &len))
		*out = (struct choice){ .mode = CONFIG_USE_TCP, .reason = CONFIG_REASON_RULE_NONE };
	else
		choose_server((struct sockaddr *)&name, len, out);
}

static long plain(long fd, enum config_reason reason)
{
	report_plain((int)fd, reason);
	plain_note((int)fd, reason);
	waited_add((int)fd);
	return fd;
}

/*
 * No connection of this process can be on DDP. A sandbox may forbid to ask for the name; the rules
 * go by the listener's then
 */
static long barred(const struct sock *listener, long fd, enum config_reason reason)
{
	struct choice choice = { .mode = listener->opts.mode,
				 .reason = CONFIG_REASON_MODE_OFF,
				 .named = true };

	if (reason != CONFIG_REASON_SANDBOXED)
		accepted_choose(listener, (int)fd, &choice);
	else if (!listener->opts.mode_set)
		choose_server((const struct sockaddr *)&listener->name, sizeof(listener->name),
			      &choice);
	if (choice.mode == CONFIG_USE_TCP)
		return plain(fd, choice.reason);
	if (choice.mode == CONFIG_USE_AUTO)
		return plain(fd, reason);
	report_failed((int)fd, reason);
	report_reason(reason, 1);
	libc.close((int)fd);
	return -ECONNABORTED;
}

/*
 * What its client says is nothing for the program; told of a reset, it comes again without DDP. Its
 * first words come behind the connection
 */
static bool asks_for_ddp(long fd)
{
	struct pollfd p = { .fd = (int)fd, .events = POLLIN };
	char key[sizeof(MPA_KEY_REQ) - 1];

	base_poll(&p, 1, base_deadline(base_now(), GRACE_LIMIT));
	return syscall(SYS_recvfrom, fd, key, sizeof(key), MSG_PEEK | MSG_DONTWAIT, NULL, NULL) ==
		       sizeof(key) &&
	       !memcmp(key, MPA_KEY_REQ, sizeof(key));
}

static void refuse(long fd)
{
	base_sock_abort((int)fd);
	libc.close((int)fd);
}

static long plain_or_none(long fd, enum config_reason reason)
{
	if (!asks_for_ddp(fd))
		return plain(fd, reason);
	report_reason(reason, 1);
	refuse(fd);
	return CALL_RESTART;
}

/* A connection that the kernel gave us */
static long accepted(struct sock *listener, long fd)
{
	enum config_reason reason;
	struct choice choice;
	int err;

	if (fd >= 0)
		worker_number((int)fd);
	if (fd >= 0 && !listener)
		waited_add((int)fd);
	if (fd < 0 || !listener || sock_role(listener) != SOCK_LISTENER)
		return fd;
	reason = barred_reason();
	if (reason)
		return barred(listener, fd, reason);
	accepted_choose(listener, (int)fd, &choice);
	if (choice.mode == CONFIG_USE_TCP)
		return plain(fd, choice.reason);
	listens_again(listener);
	err = sock_create_accepted((int)fd, listener, choice.mode, NULL);
	if (!err)
		return fd;
	if (choice.mode == CONFIG_USE_AUTO)
		return err == -ENOMEM ? plain_or_none(fd, sock_reason(err))
				      : plain(fd, sock_reason(err));
	report_failed((int)fd, sock_reason(err));
	report_reason(sock_reason(err), 1);
	refuse(fd);
	return -ECONNABORTED;
}

/* @got: what the kernel gave, or -errno; CALL_THEIRS: it was not asked */
long call_accept4(long got, int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct device_call c = { fd, addr, len, flags, NULL, -1 };
	struct sock *s = sock_get(fd);

	kernel_accept_end(fd, got);
	if ((got == -EMFILE || got == -ENFILE) && worker_room(true))
		got = CALL_RESTART;
	if (got == CALL_THEIRS)
		got = s ? device_take(s, &c) : -EBADF;
	else if (got == -EAGAIN && s && device_misled(s, fd))
		got = CALL_RESTART;
	got = c.native ? device_serve(s, &c) : accepted(s, got);
	sock_put(s);
	return got;
}

long call_accept(long got, int fd, struct sockaddr *addr, socklen_t *len)
{
	return call_accept4(got, fd, addr, len, 0);
}

/* --- ending --- */

static long shut_stream(struct sock *s, int how)
{
	long r = stream_shutdown(s->stream, how);

	if (!r)
		__atomic_or_fetch(&s->shut, (uint8_t)(how + 1), __ATOMIC_RELAXED);
	/* The end may be what decides it: nobody may call again */
	if (!r && sock_progress(s) == -ENOMSG)
		return r;
	worker_owing(s);
	return r;
}

static bool is_connecting(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	return !libc.getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_state == TCP_SYN_SENT;
}

/* Before TCP is connected it is the end of the attempt, and the socket is as new */
static long attempt_end(struct sock *s, int fd, int how)
{
	long r;

	__atomic_store_n(&s->severed, ECONNRESET, __ATOMIC_RELEASE);
	/* It would take the error that is the program's */
	worker_forget(s);
	r = libc_try(libc.shutdown(fd, how));
	if (!r && sock_role(s) == SOCK_STREAM_ON) {
		sock_forget_stream(s);
		sock_tell(s);
	}
	return r;
}

/* In the middle of start-up, TCP is connected and the program knows nothing of the rest */
static long shutdown_ours(struct sock *s, int fd, int how)
{
	int state = sock_role(s) == SOCK_STREAM_ON ? sock_progress(s) : -EAGAIN;

	if (listener_proxy_listens(s))
		return device_shutdown(s, fd, how);
	if (state == -EAGAIN && is_connecting(fd))
		return attempt_end(s, fd, how);
	if (sock_role(s) != SOCK_STREAM_ON || (state && state != -EAGAIN))
		return CALL_THEIRS;
	return shut_stream(s, how);
}

long call_shutdown(int fd, int how)
{
	struct sock *s = sock_get(fd);
	long r = s ? shutdown_ours(s, fd, how) : CALL_THEIRS;

	sock_put(s);
	return r;
}
