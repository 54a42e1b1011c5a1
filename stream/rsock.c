/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stream: an RDMA connection of a provider's stream front, a state that holds all there is of it,
 * and the calls of a stream socket over it.
 *
 * Locks: rx for what comes, tx for what goes, rx before tx, neither over a sleep but in
 * stream_sleep(). They lie in the state and survive the death of their owner; whoever finds a dead
 * one ends the connection, since what the lock guarded is half changed.
 */
#include "stream/rsock.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wire/iwarp_fault.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/point.h"
#include "base/process.h"
#include "base/sockutil.h"
#include "rnic/rnic.h"

void rsock_end(struct rsock *s, uint32_t ends)
{
	struct stream_state *st = s->state;
	uint32_t before = __atomic_fetch_or(&st->ends, ends, __ATOMIC_ACQ_REL);

	if ((before & ends) == ends)
		return;
	__atomic_add_fetch(&st->in_edge, 1, __ATOMIC_ACQ_REL);
	__atomic_add_fetch(&st->out_edge, 1, __ATOMIC_ACQ_REL);
}

/*
 * A reset behind a DISCONNECT is only the peer's way of leaving; behind a SHUTDOWN it is, as TCP
 * has it, an error of writing
 */
void rsock_break(struct rsock *s, int err)
{
	uint32_t ends = rsock_load(&s->state->ends);

	base_debug("stream: broken: %s, ends %#x", strerror(err), ends);
	if (!(ends & STREAM_IN_ENDED))
		rsock_store(&s->state->urgent.lost, 1);
	if (!(ends & STREAM_IN_ENDED) || !(ends & (STREAM_OUT_ENDED | STREAM_SHUT_WR)))
		rsock_store(&s->state->error, ends & STREAM_IN_ENDED ? EPIPE : (uint32_t)err);
	rsock_store(&s->state->broken,
		    err == ECONNRESET || err == EPROTO ? STREAM_BROKEN : STREAM_TIMED_OUT);
	rsock_end(s, STREAM_IN_ENDED | STREAM_OUT_ENDED | STREAM_DRY);
}

void rsock_spoilt(struct rsock *s, enum stream_broken how)
{
	static const char *const why[] = {
		[STREAM_SHARER_DIED] = "a process died inside the connection",
		[STREAM_DAMAGED] = "another process has spoilt a connection",
		[STREAM_NO_MEMORY] = "there is no memory for a connection",
		[STREAM_FLOODED] = "a peer sends messages that bring nothing, and nothing else",
	};

	if (rsock_load(&s->state->broken))
		return;
	base_err("stream: %s, which ends now", why[how]);
	s->rnic->carrier->abort(&s->mem, stream_fd(&s->base));
	rsock_break(s, ECONNRESET);
	rsock_store(&s->state->broken, how);
}

/*
 * rx lock. Octets that wait for their reader may be others by now, and the peer's end may stand
 * before octets that went with the dead
 */
static void rx_forget(struct rsock *s)
{
	struct stream_rx *rx = &s->state->rx;

	rx->placed = rx->consumed;
	rx->span_first = rx->span_end = 0;
	rsock_store(&rx->delivered, rx->placed);
	rsock_store(&rx->message_first, STREAM_NO_MESSAGE);
	rsock_store(&s->state->urgent.octet, 0);
	rsock_store(&s->state->error, ECONNRESET);
}

bool rsock_rx_agrees(struct rsock *s)
{
	const struct stream_rx *rx = &s->state->rx;
	uint64_t consumed = base_once(rx->consumed), delivered = base_once(rx->delivered),
		 placed = base_once(rx->placed);

	if (delivered - consumed <= placed - consumed && placed - consumed <= s->ring)
		return true;
	rsock_spoilt(s, STREAM_DAMAGED);
	rx_forget(s);
	return false;
}

#define REST_LOOK BASE_NS_PER_MS

static bool is_resting(const struct rsock *s)
{
	return __builtin_expect(__atomic_load_n(&s->resting, __ATOMIC_ACQUIRE), 0);
}

static int lock_take(struct rsock *s, struct base_lock *lock)
{
	int err;

	for (;;) {
		while (is_resting(s))
			base_poll(NULL, 0, base_deadline(base_now(), REST_LOOK));
		err = base_lock_take(lock, rsock_holder_may, s->state);
		if (err || !is_resting(s))
			return err;
		base_lock_drop(lock);
	}
}

/*
 * Under both locks it is said, so whoever takes one of them later knows. While another process
 * sleeps with one, no thread of this one has it
 */
void stream_rest(struct stream *stream, bool on)
{
	struct rsock *s = rsock_of(stream);
	bool rx = on && !rsock_rx_sleeps(s);

	if (rx)
		rsock_rx_lock(s);
	if (on)
		rsock_tx_lock(s);
	__atomic_store_n(&s->resting, on, __ATOMIC_RELEASE);
	if (on)
		rsock_tx_unlock(s);
	if (rx)
		rsock_rx_unlock(s);
}

/* What the lock of a dead process guarded is half changed */
void rsock_lock(struct rsock *s, struct base_lock *lock)
{
	int err = lock_take(s, lock);

	base_point_locked(1);
	if (!err)
		return;
	rsock_spoilt(s, STREAM_SHARER_DIED);
	if (lock == &s->state->rx_lock)
		rx_forget(s);
}

void rsock_unlock(struct base_lock *lock)
{
	base_point_locked(-1);
	base_lock_drop(lock);
}

void rsock_tell(struct rsock *s, uint64_t before)
{
	if (s->changed && rsock_edges(s) != before)
		s->changed(s->ctx);
}

/* The transport may have room again */
static void unblock(struct rsock *s)
{
	if (!rsock_load(&s->state->tx.blocked) ||
	    !s->rnic->carrier->room(&s->mem, stream_fd(&s->base)))
		return;
	rsock_tx_lock(s);
	rsock_push(s);
	BASE_POINT(stream_rsock_unblocked);
	rsock_tx_unlock(s);
}

/*
 * Who dies in sending may have entered octets in the books that never left. No grant comes for
 * them, so who waits for room is to find that out himself
 */
static void sender_look(struct rsock *s)
{
	if (!rsock_load(&s->state->tx_lock.word) || rsock_is_foreign(s) ||
	    stream_levels(&s->base, NULL) & STREAM_WRITABLE)
		return;
	rsock_tx_lock(s);
	rsock_tx_unlock(s);
}

int rsock_with_both(struct rsock *s, int (*fn)(struct rsock *s))
{
	int err;

	rsock_rx_lock(s);
	rsock_tx_lock(s);
	err = fn(s);
	rsock_tx_unlock(s);
	rsock_rx_unlock(s);
	return err;
}

static int start(struct rsock *s)
{
	if (s->mem.native && rsock_is_foreign(s))
		return -EXDEV;
	return rsock_with_both(s, rsock_start);
}

int stream_progress(struct stream *stream)
{
	struct rsock *s = rsock_of(stream);
	uint64_t before = rsock_edges(s);
	bool open = rsock_is_open(s);
	int err = open ? 0 : start(s);

	/* Another process may have opened it */
	if (rsock_load(&s->counted) && rsock_is_open(s) && !rsock_write_retry_waits(s))
		rsock_start_leave(s);
	if (!err) {
		rsock_pump(s);
		rsock_write_retry_look(s);
		unblock(s); /* of what was sent, the input may tell */
		sender_look(s);
	}
	/* That it is open somebody may wait for, edge or not */
	rsock_tell(s, !err && !open ? ~rsock_edges(s) : before);
	return err;
}

int stream_take_error(struct stream *stream)
{
	uint32_t err = __atomic_exchange_n(&rsock_of(stream)->state->error, 0, __ATOMIC_ACQ_REL);

	return err <= RSOCK_ERROR_MAX ? (int)err : ECONNRESET;
}

void stream_give_error(struct stream *stream, int err)
{
	uint32_t none = 0;

	__atomic_compare_exchange_n(&rsock_of(stream)->state->error, &none, (uint32_t)err, false,
				    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

void stream_disown(struct stream *stream)
{
	struct rsock *s = rsock_of(stream);

	rsock_slab_share(s);
	s->disowned = true;
	rsock_store(&s->last, false);
}

/* Nobody comes to its cell by another socket: this one is not closed before all is done */
int stream_linger_handoff(struct stream *stream, bool on)
{
	struct rsock *s = rsock_of(stream);
	uint32_t self = base_process_self().pid;
	int err;

	if (!on) {
		rsock_store(&s->state->closer, self);
		rsock_slab_unpublish(s);
		return 0;
	}
	if (!rsock_is_open(s) || !s->is_file || rsock_load(&s->state->owner) ||
	    s->place.user != (uid_t)syscall(SYS_geteuid))
		return -EOPNOTSUPP;
	rsock_store(&s->state->closer, 0);
	err = rsock_slab_publish(s);
	if (err)
		rsock_store(&s->state->closer, self);
	return err;
}

bool stream_owes(struct stream *stream)
{
	struct rsock *s = rsock_of(stream);
	const struct stream_tx *tx = &s->state->tx;

	if (rsock_load(&tx->hold_end))
		return true;
	if (rsock_load(&s->state->ends) & STREAM_OUT_ENDED)
		return false;
	if (!rsock_is_open(s))
		return rsock_load(&tx->due);
	return rsock_push_wanted(s) || rsock_write_retry_waits(s);
}

static void locks_pass(struct rsock *s)
{
	base_lock_pass(&s->state->rx_lock);
	base_lock_pass(&s->state->tx_lock);
}

/*
 * Under the locks it is used; the other processes have numbers of their own. Who is inside is at
 * work by a descriptor, and would break the connection without one
 */
void stream_set_fd(struct stream *stream, int fd)
{
	struct rsock *s = rsock_of(stream);

	__atomic_store_n(&s->shut, fd < 0, __ATOMIC_RELEASE);
	if (fd < 0)
		locks_pass(s);
	__atomic_store_n(&stream->fd, fd, __ATOMIC_RELEASE);
	if (fd >= 0)
		locks_pass(s);
}

/* The program's. Headers are counted last, so they are read first: never more than consumed */
static uint64_t octets_read(const struct stream_rx *rx)
{
	uint64_t headers = rsock_load(&rx->headers);

	return rsock_load(&rx->consumed) - headers;
}

void stream_stats(struct stream *stream, struct stream_stats *stats)
{
	struct rsock *s = rsock_of(stream);
	struct rnic_stream_info info = { 0 };
	uint64_t octets = 0;

	/* What was held for a peer without DDP goes another way */
	if (rsock_is_open(s)) {
		/* First: of what is sent meanwhile nobody is to think that nothing of it waits */
		octets = rsock_load(&s->state->tx.octets);
		s->rnic->info(&s->mem, &info);
	}
	*stats = (struct stream_stats){
		.tx_octets = octets,
		.rx_octets = octets_read(&s->state->rx),
		.tx_fpdus = info.tx_fpdus,
		.rx_fpdus = info.rx_fpdus,
		.queued = info.queued,
		.opened = rsock_is_open(s),
		.broken = rsock_load(&s->state->broken),
		.failed = rsock_load(&s->failed),
		.device = s->mem.native,
		.probe_error = rsock_load(&s->probe_error),
		.last = rsock_load(&s->last),
	};
}

static bool both_over(uint32_t ends)
{
	return ends & STREAM_IN_ENDED && ends & (STREAM_OUT_ENDED | STREAM_SHUT_WR);
}

void stream_info(struct stream *stream, struct stream_info *out)
{
	struct rsock *s = rsock_of(stream);
	const struct stream_state *st = s->state;
	struct rnic_stream_info info = { 0 };
	bool open = rsock_is_open(s);

	if (rsock_load(&st->stage) >= STREAM_OPEN)
		s->rnic->info(&s->mem, &info);
	*out = (struct stream_info){
		.provider = s->provider,
		.features = rsock_load(&st->features),
		.fault = info.fault,
		.fault_by_peer = info.fault_by_peer,
		.ring = s->ring,
		.mulpdu = info.mulpdu,
		.ird = rsock_has(s, STREAM_FEATURE_ONESIDED) ? RSOCK_DEPTH : 0,
		.ord = open ? st->peer.ird : 0,
		.mpa_rev = info.mpa_rev,
		.open = open,
		.broken = rsock_load(&st->broken),
		.start_error = rsock_load(&s->start_error),
		.reached = rsock_load(&s->failed),
		.foreign = rsock_is_foreign(s),
		.over = both_over(rsock_load(&st->ends)),
		.cut = rsock_load(&st->broken) == STREAM_CUT || info.fault == MPA_E_CLOSED,
		.aborted = rsock_load(&st->aborted),
		.crc = info.crc,
		.tx_markers = info.tx_markers,
		.rx_markers = info.rx_markers,
		.tx_octets = rsock_load(&st->tx.octets),
		.rx_octets = octets_read(&st->rx),
		.tx_fpdus = info.tx_fpdus,
		.rx_fpdus = info.rx_fpdus,
		.messages_sent = rsock_load(&st->tx.messages),
		.messages_received = rsock_load(&st->rx.messages),
		.jobs = rsock_jobs_count(s),
	};
}

/* The program's SO_RCVLOWAT is ours from now on, and the socket is to wake for each octet */
static void options_take(struct rsock *s)
{
	int lowat = base_sock_lowat(stream_fd(&s->base));
	int in_line = base_sock_number(stream_fd(&s->base), SOL_SOCKET, SO_OOBINLINE);

	s->state->urgent.in_line = in_line > 0;

	s->state->lowat = (uint32_t)base_max(1, base_min(lowat, (int)rsock_half(s)));
	if (lowat != 1)
		base_sock_set_lowat(stream_fd(&s->base), 1);
}

void rsock_init(struct rsock *s, int fd, const struct stream_param *param)
{
	s->base = (struct stream){ .fd = fd, .carrier = -1, .cookie = s->base.cookie };
	s->apart_limit = base_max(param->apart_limit, BASE_NS_PER_S);
	s->changed = param->changed;
	s->may_probe = param->may_probe;
	s->probed = param->probed;
	s->urgent = param->urgent;
	s->ctx = param->ctx;
	s->slot = -1;
}

int stream_attach(int fd, const struct stream_param *param, struct stream **out)
{
	struct rsock *s;
	int err = rsock_memory_create(fd, param, &s);

	if (err)
		return err;
	options_take(s);
	*out = &s->base;
	return 0;
}

int stream_adopt(int fd, const struct stream_param *param, struct stream **out)
{
	struct rsock *s;
	int err = rsock_memory_adopt(fd, param, &s);

	if (err)
		return err;
	rsock_start_join(s);
	*out = &s->base;
	return 0;
}

int stream_hand_over(struct stream *stream)
{
	struct rsock *s = rsock_of(stream);

	if (rsock_load(&s->state->owner) || rsock_jobs_count(s))
		return -EXDEV;
	/* One that is over would take the name of its socket's next connection */
	if (!s->is_file || rsock_load(&s->state->closer))
		return -EOPNOTSUPP;
	if (s->place.user != (uid_t)syscall(SYS_geteuid))
		return -EACCES;
	return rsock_slab_publish(s);
}

void *stream_exec_record(struct stream *stream)
{
	return rsock_of(stream)->state->exec_record;
}

/* Is this the last one who leaves? */
static bool is_last(struct rsock *s)
{
	uint32_t nobody = 0;

	/* A device's connection is of use to nobody but its owner */
	if (s->mem.native ? rsock_is_foreign(s) : rsock_holder_others(s))
		return false;
	/* Two may have left at once, and seen nobody else */
	return __atomic_compare_exchange_n(&s->state->closer, &nobody, base_process_self().pid,
					   false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool rsock_leave(struct rsock *s)
{
	bool last;

	if (s->left || s->disowned)
		return false;
	s->left = true;
	rsock_holder_leave(s);
	last = is_last(s);
	if (last)
		BASE_POINT(stream_rsock_leaving);
	rsock_memory_leave(s, last);
	return last;
}

void stream_destroy(struct stream *stream)
{
	struct rsock *s = rsock_of(stream);
	bool last;

	if (!stream)
		return;
	last = rsock_leave(s) || rsock_load(&s->last);
	rsock_start_leave(s);
	rsock_onesided_uninit(s);
	if (s->mem.native)
		s->rnic->native->destroy(s->mem.native);
	rsock_memory_destroy(s, last);
}
