/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect().
 *
 * Rules, or the program's own DDP_MODE, say whether a Request goes out. Then connect() waits for
 * the Reply where the program waits for TCP; where it does not, start-up is part of the connection
 * that is under way. In mode on it does not wait for long: TCP's connect() needs the peer's kernel
 * alone, and the peer's program may be busy. The connection is undecided then, and writes are held
 * until the Reply comes (stream/life/undecided.c). A client that only tries, in AUTO, falls back
 * (preload/sock/fallback.c). A listener of the same process cannot answer while this thread waits
 * for it: there connect() returns at once. The Reply may come from another process all the same,
 * one without DDP.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "llp/mapper.h"
#include "preload/guard/barred.h"
#include "preload/guard/intr_sleep.h"
#include "preload/rules/connect_plan.h"
#include "preload/rules/host.h"
#include "preload/rules/plain.h"
#include "preload/rules/report.h"
#include "preload/sock/fallback.h"
#include "preload/sock/info.h"
#include "preload/sock/life.h"
#include "preload/sock/listens.h"
#include "preload/sock/older.h"
#include "preload/sock/provider.h"
#include "preload/sock/sock.h"
#include "preload/sock/worker.h"
#include "preload/table/libc.h"
#include "preload/table/user_iov.h"
#include "preload/wait/wait.h"

/* --- TCP: it is not waited for in the kernel, where a signal that was noted wakes nobody --- */

static uint64_t deadline_of(const struct sock *s, int fd)
{
	bool never = s && __atomic_load_n(&s->option.never_out, __ATOMIC_RELAXED);

	return base_deadline(base_now(), never ? 0 : base_sock_timeout(fd, SO_SNDTIMEO));
}

/* Another thread has ended it meanwhile; the kernel would begin again where it is asked */
static long severed(struct sock *s)
{
	int err = s ? __atomic_exchange_n(&s->severed, 0, __ATOMIC_ACQ_REL) : 0;

	/* The kernel's error is told by this */
	if (err == ECONNRESET)
		base_sock_error(s->fd);
	return -err;
}

/* What has become of a connect() that is under way, as the kernel tells it once */
static long tcp_wait(struct sock *s, int fd, const struct sockaddr *addr, socklen_t len)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	uint64_t deadline = deadline_of(s, fd);
	struct spin_place *place = spin_of_connects();
	int n = deadline == BASE_NEVER ? intr_sleep(&p, 1, deadline, NULL, place)
				       : intr_sleep_final(&p, 1, deadline, NULL, place);
	long r;

	if (n == -EINTR)
		return call_interrupted(deadline);
	if (n <= 0)
		return -EINPROGRESS;
	r = severed(s);
	if (r)
		return r;
	r = base_sock_connect(fd, addr, len);
	return r == -EISCONN ? 0 : r;
}

/* A call that waited in vain says what it found at first */
static long tcp_connect(struct sock *s, int fd, const struct sockaddr *addr, socklen_t len)
{
	bool nonblock;
	long first = base_sock_connect_flagged(fd, addr, len, &nonblock), r;

	if ((first != -EINPROGRESS && first != -EALREADY) || nonblock)
		return first;
	r = tcp_wait(s, fd, addr, len);
	return r == -EINPROGRESS ? first : r;
}

/* --- start-up --- */

/* As the kernel: who has asked for the error before is told that there was one */
static long start_failed(struct sock *s)
{
	int told = stream_take_error(s->stream);

	info_keep(s);
	sock_forget_stream(s);
	return told ? -told : -ECONNABORTED;
}

/* It may begin anew meanwhile, when a device has come to nothing */
static int levels_wait(struct sock *s, uint64_t deadline)
{
	struct spin_place *place = spin_of_connects(), *own = &s->places[1];
	bool device;
	int err;

	/* What the thread's last connections say counts: of this one nothing is known */
	if (place)
		spin_place_take(own, place);
	do {
		device = sock_on_device(s);
		err = wait_levels(s, STREAM_WRITABLE, deadline);
	} while (!err && device && sock_role(s) == SOCK_STREAM_ON && !sock_on_device(s));
	if (place)
		spin_place_take(place, own);
	*own = (struct spin_place){ 0 };
	return err;
}

/* Start-up goes on, and TCP's connect() would have returned */
static bool is_undecided(const struct sock *s)
{
	return stream_levels(s->stream, NULL) & STREAM_WRITABLE;
}

/* levels_wait() has looked for input when it was opened */
static bool is_open(struct sock *s)
{
	struct stream_stats stats;

	stream_stats(s->stream, &stats);
	return stats.opened && sock_role(s) == SOCK_STREAM_ON;
}

/* Waits for the Reply, or for the time without one, as long as connect() may wait */
static long start_wait(struct sock *s, int fd)
{
	uint64_t deadline = deadline_of(s, fd);
	int err = levels_wait(s, deadline), state;
	long gone;

	if (err == -EINTR)
		return call_interrupted(deadline); /* and goes on, as TCP's connect() does */
	gone = severed(s);
	if (gone)
		return gone;
	state = !err && is_open(s) ? 0 : sock_progress(s);
	if (state == -ENOMSG)
		return tcp_wait(s, fd, (const struct sockaddr *)&s->peer, s->peer_len);
	if (state == -EAGAIN && !is_undecided(s))
		return -EINPROGRESS;
	if (state && state != -EAGAIN)
		return start_failed(s);
	s->connect_told = true;
	return 0;
}

/* DDP is out of the question */
static long attach_failed(struct sock *s, int fd, int err, long tcp, bool wait)
{
	if (s->opts.mode == CONFIG_USE_AUTO) {
		sock_give_back(s, sock_reason(err));
		return wait ? tcp_wait(s, fd, (const struct sockaddr *)&s->peer, s->peer_len) : tcp;
	}
	base_sock_abort(s->fd);
	return err;
}

/* TCP is connected, or goes on to be; @wait: for the end of that, and for the Reply */
static long connected(struct sock *s, int fd, long tcp, bool here, bool wait)
{
	int err = sock_connect(s, tcp != 0, here);

	if (err)
		return attach_failed(s, fd, err, tcp, wait);
	sock_tell(s);
	if (!tcp && here) {
		worker_starting(s);
		return 0;
	}
	if (wait)
		return start_wait(s, fd);
	sock_progress(s);
	/* The other end's owner may wait for that one alone */
	if (here)
		worker_starting(s);
	return tcp ? tcp : -EINPROGRESS;
}

static bool is_on_its_way(long tcp)
{
	return !tcp || tcp == -EINPROGRESS || tcp == -EINTR || tcp == CALL_RESTART;
}

static long connect_plain(struct sock *s, int fd, const struct sockaddr *addr, socklen_t len,
			  enum config_reason reason)
{
	long tcp = tcp_connect(s, fd, addr, len);

	if (is_on_its_way(tcp))
		sock_give_back(s, reason);
	return tcp;
}

static long connect_mapped(struct sock *s, int fd, const struct sockaddr *addr, socklen_t len,
			   bool *nonblock)
{
	socklen_t mapped_len = base_min(len, (socklen_t)sizeof(struct sockaddr_in6));
	struct sockaddr_in6 mapped;

	memcpy(&mapped, addr, mapped_len);
	s->opts.detour = llp_mapper_move(fd, &mapped, mapped_len, sock_config.mapper);
	if (!s->opts.detour)
		return base_sock_connect_flagged(fd, addr, len, nonblock);
	return base_sock_connect_flagged(fd, (struct sockaddr *)&mapped, mapped_len, nonblock);
}

static long connect_ddp(struct sock *s, int fd, const struct sockaddr *addr, socklen_t len,
			bool here)
{
	bool nonblock = true;
	long tcp = here ? tcp_connect(s, fd, addr, len)
			: connect_mapped(s, fd, addr, len, &nonblock);

	if (is_on_its_way(tcp))
		return connected(s, fd, tcp, here, !nonblock);
	plain_note(fd, CONFIG_REASON_UNREACHABLE);
	return tcp;
}

/* CALL_THEIRS: no device leads there, and the socket itself is to be connected */
static long connect_device(struct sock *s, int fd, const struct sockaddr *peer, socklen_t len)
{
	if (provider_reach(s, peer, len))
		return CALL_THEIRS;
	if (sock_connect(s, true, false)) {
		provider_drop(s);
		return CALL_THEIRS;
	}
	sock_tell(s);
	if (!base_sock_is_nonblock(fd))
		return start_wait(s, fd);
	sock_progress(s);
	return -EINPROGRESS;
}

/* Only DDP would do, and no connection of this process can be on it */
static long connect_refused(struct sock *s, const struct sockaddr *peer, enum config_reason reason)
{
	plain_note(s->fd, reason);
	report_reason(reason, 1);
	report_failed_at(peer, reason);
	return -EOPNOTSUPP;
}

/* By DDP, over a device if one leads there */
static long connect_by(struct sock *s, int fd, const struct sockaddr *addr, socklen_t len,
		       const struct connect_facts *facts, const struct connect_plan *plan)
{
	long r = CALL_THEIRS;

	sock_remember(s, addr, len);
	option_prepare(fd, &s->option);
	s->opts.detour = false;
	s->opts.mode = connect_way_is_probe(plan->way) ? CONFIG_USE_AUTO : CONFIG_USE_DDP;
	s->way = plan->way;
	provider_wish(s, plan->provider);
	if (!facts->here)
		r = connect_device(s, fd, facts->peer, facts->len);
	return r == CALL_THEIRS ? connect_ddp(s, fd, addr, len, facts->here) : r;
}

static long connect_new(struct sock *s, int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr_storage reach;
	struct connect_facts facts = {
		.peer = (struct sockaddr *)&reach,
		.len = host_reach(addr, len, &reach),
		.opts = &s->opts,
		.barred = barred_reason(),
	};
	struct connect_plan plan;

	if (!facts.len)
		return base_sock_connect(fd, addr, len);
	facts.here = !facts.barred && listens_here(facts.peer, facts.len);
	plan = connect_plan_make(&facts);
	if (plan.way == CONNECT_REFUSED)
		return connect_refused(s, facts.peer, plan.reason);
	if (plan.way != CONNECT_PLAIN)
		return connect_by(s, fd, addr, len, &facts, &plan);
	/* What bars the process may be a filter, which our own way to connect does not suit */
	if (!facts.barred)
		return connect_plain(s, fd, addr, len, plan.reason);
	sock_give_back(s, plan.reason);
	return CALL_THEIRS;
}

/* The kernel tells once that a connection is there, and of a device's nothing */
static bool told(struct sock *s)
{
	bool before = s->connect_told;

	s->connect_told = true;
	return before;
}

/*
 * Asked again about a connection that is under way, it waits where the kernel would; and the
 * kernel's answer counts when start-up is over too
 */
static long connect_again(struct sock *s, int fd, const struct sockaddr *addr, socklen_t len)
{
	int state = sock_progress(s);
	/* Not where TCP is connected and its owner does not wait for the Reply */
	bool waits = state == -EAGAIN && !is_undecided(s);
	long r = waits && !base_sock_is_nonblock(fd) ? start_wait(s, fd) : -EINPROGRESS;

	if (waits)
		return r == -EINPROGRESS ? -EALREADY : r;
	if (state && state != -EAGAIN && state != -ENOMSG)
		return start_failed(s);
	if (!state && sock_on_device(s))
		return told(s) ? -EISCONN : 0;
	/* connect() that waited has told, and has asked the kernel without waiting */
	if (s->connect_told && state != -ENOMSG)
		return -EISCONN;
	return tcp_connect(s, fd, addr, len);
}

/*
 * To nowhere: the connection is reset, and the socket as new. The kernel's part of it knows all
 * that there is to say; of a device's connection there is none
 */
static long disconnect(struct sock *s, int fd, const struct sockaddr *addr, socklen_t len)
{
	long err = sock_on_device(s) ? -EOPNOTSUPP : base_sock_connect(fd, addr, len);

	if (!err) {
		plain_note(fd, CONFIG_REASON_ABORTED);
		sock_forget_stream(s);
		sock_tell(s);
	}
	return err;
}

/* What is no address the kernel refuses */
static bool is_sound(const struct sockaddr *addr, socklen_t len)
{
	return len >= sizeof(addr->sa_family) && len <= sizeof(struct sockaddr_storage) &&
	       !user_iov_wild(addr, len);
}

long call_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sock *s = sock_get(fd);
	bool sound = is_sound(addr, len), nowhere = sound && addr->sa_family == AF_UNSPEC;
	enum sock_role role = s && sound ? sock_role(s) : SOCK_PLAIN;
	long r;

	if (s)
		__atomic_store_n(&s->severed, nowhere ? EPIPE : 0, __ATOMIC_RELEASE);
	if (role == SOCK_NEW)
		r = connect_new(s, fd, addr, len);
	else if (role == SOCK_STREAM_ON && nowhere)
		r = disconnect(s, fd, addr, len);
	else if (role == SOCK_STREAM_ON)
		r = connect_again(s, fd, addr, len);
	else
		r = tcp_connect(s, fd, addr, len);
	if (s)
		older_drop(s);
	sock_put(s);
	return r;
}
