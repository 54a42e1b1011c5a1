/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets of the program that are ours.
 *
 * Life: new, then a listener or a stream; a new one or a stream may become plain, which
 * takes it out of the table for good. The descriptor is a real TCP socket all the time, so what
 * is not about data needs no word of ours.
 */
#include "preload/sock/sock.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/point.h"
#include "base/sockutil.h"
#include "preload/sock/catch_up.h"
#include "preload/sock/fallback.h"
#include "preload/sock/info.h"
#include "preload/sock/life.h"
#include "preload/sock/linger.h"
#include "preload/sock/listener_proxy.h"
#include "preload/sock/listens.h"
#include "preload/sock/number.h"
#include "preload/sock/others.h"
#include "preload/sock/provider.h"
#include "preload/sock/sets.h"
#include "preload/sock/single_flight.h"
#include "preload/sock/worker.h"
#include "preload/table/fork_gen.h"
#include "preload/table/internal.h"
#include "preload/table/libc.h"

/* So long the program is given to decide, by a call, what it has accepted */
#define UNDECIDED_TIME (2 * BASE_NS_PER_MS)

static void sock_release(struct fdent *ent)
{
	struct sock *s = sock_of_entry(ent);

	sock_drop_stream(s);
	listener_proxy_end(s);
	listens_end(s);
	if (sock_number(s) == SOCK_NUMBER_INTERNAL)
		internal_close(s->fd);
	sock_free(s);
}

static int entry_own(struct fdent *ent)
{
	return sock_own(sock_of_entry(ent));
}

/* A new connection's waits begin with what those of the thread's last one have come to */
static void accepted_waits(struct sock *s, bool ends)
{
	struct spin_place *last = s->accepted ? spin_of_accepted() : NULL;

	if (last)
		spin_place_take(ends ? last : &s->places[0], ends ? &s->places[0] : last);
}

static void stream_end(struct sock *s)
{
	int left;

	info_tell_close(s);
	accepted_waits(s, true);
	/* Who accepts and closes has answered */
	if (s->accepted && sock_on_device(s))
		stream_progress(s->stream);
	left = stream_close(s->stream);

	/* A thread that sleeps in a call finds its end: nothing else may come that wakes it */
	sock_tell(s);
	if (left == -ENOMSG)
		sock_fall_back(s);
	if (left != -EAGAIN) {
		/* Over, or another process's to go on with */
		worker_forget(s);
		return;
	}
	BASE_POINT(preload_sock_lingering);
	linger_wait(s);
	worker_closed(s);
}

/*
 * The number becomes free only when the connection has left it. Once: a process that could not
 * be replaced by another program closes what has ended before.
 */
static void sock_end(struct fdent *ent)
{
	struct sock *s = sock_of_entry(ent);

	if (!__atomic_compare_exchange_n(&s->ended, &(unsigned int){ 0 }, fork_gen + 1, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	sets_forget(s);
	listens_end(s);
	if (sock_role(s) == SOCK_STREAM_ON)
		stream_end(s);
	if (sock_number(s) == SOCK_NUMBER_INTERNAL)
		return;
	if (sock_in_work_list(s))
		worker_forget(s); /* another process may have it still */
	sock_state_move(&sock_number_moves, &s->number, SOCK_NUMBER_NONE);
	s->fd = -1;
	if (s->stream) {
		stream_set_fd(s->stream, -1);
		sock_tell(s);
	}
}

static const struct sock_ops ops = {
	.ent = { sock_release, sock_end, entry_own },
	.catch_up = sock_catch_up,
	.progress = sock_progress,
	.fall_back = sock_fall_back,
};

int sock_create(int fd)
{
	struct sock *s = sock_alloc(fd, &ops);

	return s ? fdtab_set(fd, &s->ent) : -ENOMEM;
}

/* A Request that is here already is answered at once, and one that comes by the worker thread */
static void accepted_begin(int fd)
{
	struct sock *s = sock_get_stream(fd);

	if (s && sock_progress(s) == -EAGAIN)
		worker_accepted(s, UNDECIDED_TIME);
	sock_put(s);
}

/* In mode on a connection that fails is told of with its peer: a reset socket has none */
static void accepted_peer(struct sock *s)
{
	socklen_t len = sizeof(s->peer);

	if (s->opts.mode == CONFIG_USE_DDP && !s->native && base_log_on(BASE_LOG_WARN) &&
	    !syscall(SYS_getpeername, s->fd, &s->peer, &len))
		s->peer_len = base_min(len, (socklen_t)sizeof(s->peer));
}

int sock_create_accepted(int fd, const struct sock *listener, enum config_transport mode,
			 struct rnic_native *native)
{
	struct sock *s = sock_alloc(fd, &ops);
	int err;

	if (!s) {
		provider_refuse(listener, native);
		return -ENOMEM;
	}
	s->accepted = true;
	sock_start_set(s, SOCK_START_UNDECIDED);
	s->option = listener->option;
	s->opts = listener->opts;
	s->opts.mode = mode;
	s->opts.mode_set = s->opts.detour = false;
	s->forgone = listener->forgone;
	s->native = native;
	/* The other listener's, which is nobody's fault */
	if (!native && listener->proxy.beside)
		provider_choose(s, "soft");
	err = sock_begin(s, false, false, mode == CONFIG_USE_DDP && !native);
	accepted_waits(s, false);
	accepted_peer(s);
	if (err)
		provider_refuse(listener, native);
	else
		err = fdtab_set(fd, &s->ent);
	if (err)
		sock_put(s);
	else if (!native)
		accepted_begin(fd);
	return err;
}

int sock_create_adopted(int fd, struct sock **out)
{
	struct sock *s = sock_alloc(fd, &ops);
	int err = s ? sock_stream_find(s) : -ENOMEM;

	if (err) {
		sock_put(s);
		return err;
	}
	sock_role_set(s, SOCK_STREAM_ON);
	__atomic_add_fetch(&s->streams, 1, __ATOMIC_ACQ_REL);
	others_come(s);
	*out = s;
	return 0;
}

static bool is_tcp(int fd)
{
	int domain = base_sock_number(fd, SOL_SOCKET, SO_DOMAIN);

	return (domain == AF_INET || domain == AF_INET6) &&
	       base_sock_number(fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM &&
	       base_sock_number(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP;
}

/* A socket that no rule wanted, and which is not in the table for that */
static int adopt(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (!is_tcp(fd))
		return -ENOPROTOOPT;
	if (libc.getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return -errno;
	return info.tcpi_state == TCP_CLOSE ? sock_create(fd) : -EISCONN;
}

int sock_set_mode(int fd, enum config_transport mode)
{
	bool known = sock_of_entry(fdtab_peek(fd));
	int err = known ? 0 : adopt(fd);
	struct sock *s = err ? NULL : sock_get(fd);

	if (s && !known)
		sets_take(s, fd);
	if (!err && !s)
		err = -ENOPROTOOPT;
	if (!err && sock_role(s) != SOCK_NEW)
		err = -EISCONN;
	if (!err) {
		s->opts.mode = mode;
		s->opts.mode_set = true;
	}
	sock_put(s);
	return err;
}

/* Its connect() has returned, or will: the program may not call before it waits for the peer */
static bool is_undecided_client(const struct sock *s)
{
	unsigned int levels = stream_levels(s->stream, NULL);

	return !s->accepted && !sock_in_work_list(s) &&
	       (levels & (STREAM_WRITABLE | STREAM_STARTED)) == STREAM_WRITABLE;
}

static void start_asking(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = sock_of_entry(ent);

	if (sock_stream_of_entry(ent) && __atomic_load_n(&s->flight.asks, __ATOMIC_ACQUIRE))
		worker_starting(s);
}

static void help_asker(struct sock *s)
{
	if (__atomic_load_n(&s->flight.waits, __ATOMIC_ACQUIRE) &&
	    !__atomic_exchange_n(&s->flight.helped, true, __ATOMIC_ACQ_REL))
		fdtab_each(start_asking, NULL);
}

static void still_starting(struct sock *s)
{
	help_asker(s);
	if (is_undecided_client(s))
		worker_starting(s);
}

void sock_progressed(struct sock *s, int err)
{
	if (err == -EAGAIN)
		still_starting(s);
	else
		info_tell(s);
	if (err)
		return;
	sock_settle(s);
	if (s->accepted && sock_in_work_list(s))
		worker_decided(s);
}

int sock_progress(struct sock *s)
{
	int err = stream_progress(s->stream);

	if (err == -ENOMSG)
		sock_fall_back(s);
	else if (err && err != -EAGAIN && sock_on_device(s))
		return sock_leave_device(s, err);
	else
		sock_progressed(s, err);
	return err;
}

/* Who connects it now? */
static void note_elsewhere(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = sock_of_entry(ent);

	if (s && sock_role(s) == SOCK_NEW)
		sock_tenure_set(s, SOCK_NEW_ELSEWHERE);
}

void sock_after_fork(void)
{
	fdtab_each(note_elsewhere, NULL);
}
