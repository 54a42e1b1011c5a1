/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets of the program that are ours.
 *
 * Life: new, then a listener or a stream; and from the last two it may become plain, which
 * takes it out of the table for good. The descriptor is a real TCP socket all the time, so what
 * is not about data needs no word of ours.
 */
#include "preload/sock/sock.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/point.h"
#include "base/sockutil.h"
#include "preload/rules/plain.h"
#include "preload/rules/probe.h"
#include "preload/rules/report.h"
#include "preload/sock/exec_record.h"
#include "preload/sock/fallback.h"
#include "preload/sock/info.h"
#include "preload/sock/linger.h"
#include "preload/sock/listener_proxy.h"
#include "preload/sock/listens.h"
#include "preload/sock/older.h"
#include "preload/sock/others.h"
#include "preload/sock/param.h"
#include "preload/sock/provider.h"
#include "preload/sock/sets.h"
#include "preload/sock/urgent.h"
#include "preload/sock/waited.h"
#include "preload/sock/worker.h"
#include "preload/table/fork_gen.h"
#include "preload/table/internal.h"
#include "preload/table/libc.h"
#include "preload/table/pool.h"

struct config sock_config;

/* So long the program is given to decide, by a call, what it has accepted */
#define UNDECIDED_TIME (2 * BASE_NS_PER_MS)

static struct pool socks = POOL_INIT(struct sock, watches, 64);

static enum sock_number sock_number(const struct sock *s)
{
	return (enum sock_number)__atomic_load_n(&s->number, __ATOMIC_ACQUIRE);
}

static bool sock_in_work_list(const struct sock *s)
{
	return __atomic_load_n(&s->work.listed, __ATOMIC_ACQUIRE);
}

struct sock *sock_get(int fd)
{
	struct sock *s = sock_of_entry(fdtab_get(fd, FD_SOCK));

	if (s && sock_tenure(s) == SOCK_NEW_ELSEWHERE)
		exec_record_catch_up(s, fd);
	return s;
}

struct sock *sock_get_stream(int fd)
{
	struct sock *s = sock_get(fd);

	if (s && sock_role(s) == SOCK_STREAM_ON)
		return s;
	sock_put(s);
	return NULL;
}

void sock_put(struct sock *s)
{
	if (s)
		fdtab_put(&s->ent);
}

static void report(struct sock *s)
{
	enum config_reason why = CONFIG_REASON_NONE;
	struct stream_stats stats;

	stream_stats(s->stream, &stats);
	if (stats.failed)
		why = info_end(s);
	if (stats.last)
		info_tell(s);
	report_stream(&stats, why);
}

void sock_report(struct sock *s)
{
	if (__atomic_load_n(&s->stream, __ATOMIC_ACQUIRE) &&
	    !__atomic_exchange_n(&s->reported, true, __ATOMIC_RELAXED))
		report(s);
}

/* What has ended in a process that this one was forked from is that one's */
static bool is_reported_here(const struct sock *s)
{
	unsigned int ended = __atomic_load_n(&s->ended, __ATOMIC_ACQUIRE);

	return !s->executed && (!ended || ended == fork_gen + 1);
}

static void report_object(void *object)
{
	struct sock *s = object;

	if (!fdtab_hold_living(&s->ent))
		return;
	if (is_reported_here(s))
		sock_report(s);
	sock_put(s);
}

void sock_report_all(void)
{
	pool_each(&socks, report_object);
}

static void stream_drop(struct sock *s)
{
	if (!s->stream)
		return;
	sock_report(s);
	sock_settle(s);
	older_destroy(s->stream);
	s->stream = NULL;
}

static void sock_release(struct fdent *ent)
{
	struct sock *s = sock_of_entry(ent);

	stream_drop(s);
	listener_proxy_end(s);
	listens_end(s);
	if (sock_number(s) == SOCK_NUMBER_INTERNAL)
		internal_close(s->fd);
	pthread_mutex_destroy(&s->lock);
	pool_put(&socks, s);
}

static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;

static void own_set(struct sock *s, int high)
{
	BASE_POINT(preload_sock_own_moved);
	sock_state_move(&sock_number_moves, &s->number, SOCK_NUMBER_INTERNAL);
	__atomic_store_n(&s->fd, high, __ATOMIC_SEQ_CST);
	if (s->stream)
		stream_set_fd(s->stream, high);
	sets_rekey(s);
}

/*
 * The old descriptor is still open, but may not be for long. Who was at work by it has left the
 * stream; sets know the socket by it; and who is about to sleep on it is woken.
 */
int sock_own(struct sock *s)
{
	int high = 0;

	pthread_mutex_lock(&own_lock);
	if (sock_number(s) != SOCK_NUMBER_INTERNAL)
		high = internal_dup(s->fd);
	if (high > 0)
		own_set(s, high);
	pthread_mutex_unlock(&own_lock);
	if (high <= 0)
		return high;
	sock_tell(s);
	worker_moved(s);
	return 0;
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

static const struct fdent_ops sock_ops = { sock_release, sock_end, entry_own };

static struct sock *sock_alloc(int fd)
{
	struct sock *s = pool_get(&socks);

	if (!s)
		return NULL;
	/* The entry may be looked at by a number that is out of date */
	memset((char *)s + sizeof(s->ent), 0, sizeof(*s) - sizeof(s->ent));
	s->fd = fd;
	s->proxy.fd = -1;
	s->listening.announced = -1;
	s->work.watched = -1;
	s->changes = 1;
	s->said = true;
	s->opts = sock_config.conn;
	pthread_mutex_init(&s->lock, NULL);
	base_list_init(&s->watches);
	s->ent.kind = FD_SOCK;
	s->ent.numbers = 1;
	s->ent.round = 0;
	s->ent.ops = &sock_ops;
	__atomic_store_n(&s->ent.refs, 1, __ATOMIC_RELEASE); /* pairs with fdtab_get() */
	return s;
}

int sock_create(int fd)
{
	struct sock *s = sock_alloc(fd);

	return s ? fdtab_set(fd, &s->ent) : -ENOMEM;
}

/* An edge has moved: of all that an octet passes, others cost this one question */
static void changed(void *ctx)
{
	struct sock *s = ctx;

	info_tell(s);
	sock_tell(s);
	if (others_have(s))
		others_tell(s);
}

uint64_t sock_cookie(int fd)
{
	uint64_t cookie;

	return base_sock_cookie(fd, &cookie) ? 0 : cookie;
}

bool sock_is_behind(const struct sock *s, int fd)
{
	return s->cookie && sock_cookie(fd) == s->cookie;
}

/* No other process had a stream of it, nor this one */
static bool is_fresh(const struct sock *s)
{
	return !s->streams && (s->accepted || (sock_tenure(s) != SOCK_NEW_ELSEWHERE &&
					       !exec_record_is_marked(s->fd)));
}

static int stream_make(struct sock *s, bool initiator, bool connecting, bool hold)
{
	struct stream_param param = {
		.changed = changed,
		.older = s->stream,
		.fresh = is_fresh(s),
	};
	struct stream *fresh;
	int err;

	sock_param_init(&param, s);
	param.initiator = initiator;
	param.connecting = connecting;
	param.hold = hold;
	sock_param_made(&param, s);
	s->flight = (struct single_flight){ 0 };
	s->places[0] = s->places[1] = (struct spin_place){ 0 };
	option_prepare(s->fd, &s->option);
	err = stream_attach(s->fd, &param, &fresh);
	if (err)
		return err;
	exec_record_mark(s->fd, true);
	BASE_POINT(preload_sock_attached);
	older_replace(s, fresh);
	__atomic_add_fetch(&fdtab_streams, 1, __ATOMIC_RELAXED);
	s->cookie = fresh->cookie ? fresh->cookie : sock_cookie(s->fd);
	s->reported = s->said = false;
	/* A dup() meanwhile has not seen the stream */
	stream_set_fd(s->stream, __atomic_load_n(&s->fd, __ATOMIC_SEQ_CST));
	/* In this order: a set may see an edge too many, and none too few */
	sock_role_set(s, SOCK_STREAM_ON);
	__atomic_add_fetch(&s->streams, 1, __ATOMIC_ACQ_REL);
	if (s->native) {
		provider_keepalive(s);
		sets_rekey(s);
	}
	/* Who has it from before will find it */
	if (sock_tenure(s) == SOCK_NEW_ELSEWHERE) {
		exec_record_write(s);
		others_come(s);
	}
	return 0;
}

static int stream_begin(struct sock *s, bool initiator, bool connecting, bool hold)
{
	/* The socket itself is connected */
	if (!s->native && provider_ops(s))
		provider_forgo(s, CONFIG_REASON_PROVIDER_UNAVAILABLE);
	return stream_make(s, initiator, connecting, hold);
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
	struct sock *s = sock_alloc(fd);
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
	err = stream_begin(s, false, false, mode == CONFIG_USE_DDP && !native);
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

bool sock_ready(void)
{
	return pool_ready(&socks);
}

/* What the stream's user has kept, and that it is one, is the caller's to see to */
static int stream_find(struct sock *s)
{
	struct stream_param param = { .changed = changed };
	struct stream *stream;
	int err;

	sock_param_init(&param, s);
	err = stream_adopt(s->fd, &param, &stream);
	/* A program that was executed behind our back, or a child's connection, has no name */
	param.search = err == -ENOENT && exec_record_is_marked(s->fd);
	if (param.search)
		err = stream_adopt(s->fd, &param, &stream);
	if (err)
		return err;
	s->stream = stream;
	s->cookie = stream->cookie;
	s->reported = false;
	urgent_owner_find(s);
	__atomic_add_fetch(&fdtab_streams, 1, __ATOMIC_RELAXED);
	return 0;
}

int sock_create_adopted(int fd, struct sock **out)
{
	struct sock *s = sock_alloc(fd);
	int err = s ? stream_find(s) : -ENOMEM;

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

int sock_overtake(struct sock *s)
{
	int err = 0;

	pthread_mutex_lock(&own_lock);
	if (sock_role(s) == SOCK_NEW && sock_tenure(s) == SOCK_NEW_ELSEWHERE) {
		err = stream_find(s);
		if (!err)
			exec_record_read(s);
		if (!err)
			sock_role_set(s, SOCK_STREAM_ON);
		__atomic_add_fetch(&s->streams, 1, __ATOMIC_ACQ_REL);
		sock_tenure_set(s, SOCK_OF_ONE);
	}
	pthread_mutex_unlock(&own_lock);
	return err;
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

int sock_connect(struct sock *s, bool connecting, bool hold)
{
	int err;

	sock_start_set(s, SOCK_START_CONNECTING);
	err = stream_begin(s, true, connecting, hold);
	if (err)
		sock_start_set(s, SOCK_START_NEW);
	return err;
}

void sock_forget_stream(struct sock *s)
{
	if (!sock_role_set(s, SOCK_NEW))
		return;
	__atomic_add_fetch(&s->streams, 1, __ATOMIC_ACQ_REL);
	worker_forget(s);
	sock_report(s);
	sock_settle(s);
	sock_start_set(s, SOCK_START_NEW);
	exec_record_mark(s->fd, false);
	s->native = NULL; /* the stream's to destroy */
	/* Who is inside must not get at what the descriptor becomes */
	stream_set_fd(s->stream, -1);
	s->shut = 0;
}

static void number_take(int fd, struct fdent *ent, void *ctx)
{
	if (ent != ctx)
		return;
	fdtab_put(fdtab_take(fd, ent, NULL));
	waited_add(fd);
}

/* What start-up has set goes back to what the program set */
void sock_give_back(struct sock *s, enum config_reason reason)
{
	if (!sock_role_set(s, SOCK_PLAIN))
		return;
	worker_forget(s);
	if (s->stream) {
		exec_record_mark(s->fd, false);
		option_restore(s->fd, &s->option);
		base_sock_set_lowat(s->fd, (int)stream_lowat(s->stream));
	}
	if (s->shut && s->accepted)
		libc.shutdown(s->fd, s->shut - 1);
	/* Of one that spoke first it is told already */
	if (sock_start(s) != SOCK_START_SPOKEN) {
		report_plain(s->fd, reason);
		plain_note(s->fd, reason);
	}
	sets_give_back(s);
	if (sock_number(s) == SOCK_NUMBER_INTERNAL)
		fdtab_each(number_take, &s->ent);
	else
		number_take(s->fd, &s->ent, &s->ent);
}

/* Its connect() has returned, or will: the program may not call before it waits for the peer */
static bool is_undecided_client(const struct sock *s)
{
	unsigned int levels = stream_levels(s->stream, NULL);

	return !s->accepted && !sock_in_work_list(s) &&
	       (levels & (STREAM_WRITABLE | STREAM_STARTED)) == STREAM_WRITABLE;
}

static void still_starting(struct sock *s)
{
	single_flight_help(s);
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

void sock_before_fork(void)
{
	pthread_mutex_lock(&own_lock);
}

/* Who connects it now? */
static void go_abroad(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = sock_of_entry(ent);

	if (s && sock_role(s) == SOCK_NEW)
		sock_tenure_set(s, SOCK_NEW_ELSEWHERE);
}

void sock_after_fork(bool child)
{
	fork_gen_lock_drop(&own_lock, child);
	fdtab_each(go_abroad, NULL);
}
