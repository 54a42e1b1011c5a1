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

void stream_end(struct stream *s, uint32_t ends)
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
void stream_break(struct stream *s, int err)
{
	uint32_t ends = base_load(&s->state->ends);

	base_debug("stream: broken: %s, ends %#x", strerror(err), ends);
	if (!(ends & STREAM_IN_ENDED))
		base_store(&s->state->urgent.lost, 1);
	if (!(ends & STREAM_IN_ENDED) || !(ends & (STREAM_OUT_ENDED | STREAM_SHUT_WR)))
		base_store(&s->state->error, ends & STREAM_IN_ENDED ? EPIPE : (uint32_t)err);
	base_store(&s->state->broken,
		   err == ECONNRESET || err == EPROTO ? STREAM_BROKEN : STREAM_TIMED_OUT);
	stream_end(s, STREAM_IN_ENDED | STREAM_OUT_ENDED | STREAM_DRY);
}

void stream_spoilt(struct stream *s, enum stream_broken how)
{
	static const char *const why[] = {
		[STREAM_SHARER_DIED] = "a process died inside the connection",
		[STREAM_DAMAGED] = "another process has spoilt a connection",
		[STREAM_NO_MEMORY] = "there is no memory for a connection",
		[STREAM_FLOODED] = "a peer sends messages that bring nothing, and nothing else",
	};

	if (base_load(&s->state->broken))
		return;
	base_err("stream: %s, which ends now", why[how]);
	s->rnic->carrier->abort(&s->mem, stream_fd(s));
	stream_break(s, ECONNRESET);
	base_store(&s->state->broken, how);
}

/*
 * rx lock. Octets that wait for their reader may be others by now, and the peer's end may stand
 * before octets that went with the dead
 */
static void rx_forget(struct stream *s)
{
	struct stream_rx *rx = &s->state->rx;

	rx->placed = rx->consumed;
	rx->span_first = rx->span_end = 0;
	base_store(&rx->delivered, rx->placed);
	base_store(&rx->message_first, STREAM_NO_MESSAGE);
	base_store(&s->state->urgent.octet, 0);
	base_store(&s->state->error, ECONNRESET);
}

bool stream_rx_agrees(struct stream *s)
{
	const struct stream_rx *rx = &s->state->rx;
	uint64_t consumed = base_once(rx->consumed), delivered = base_once(rx->delivered),
		 placed = base_once(rx->placed);

	if (delivered - consumed <= placed - consumed && placed - consumed <= s->ring)
		return true;
	stream_spoilt(s, STREAM_DAMAGED);
	rx_forget(s);
	return false;
}

#define REST_LOOK BASE_NS_PER_MS

static bool is_resting(const struct stream *s)
{
	return __builtin_expect(__atomic_load_n(&s->resting, __ATOMIC_ACQUIRE), 0);
}

static int lock_take(struct stream *s, struct base_lock *lock)
{
	int err;

	for (;;) {
		while (is_resting(s))
			base_poll(NULL, 0, base_deadline(base_now(), REST_LOOK));
		err = base_lock_take(lock, stream_holder_may, s->state);
		if (err || !is_resting(s))
			return err;
		base_lock_drop(lock);
	}
}

/*
 * Under both locks it is said, so whoever takes one of them later knows. While another process
 * sleeps with one, no thread of this one has it
 */
void stream_rest(struct stream *s, bool on)
{
	bool rx = on && !stream_rx_sleeps(s);

	if (rx)
		stream_rx_lock(s);
	if (on)
		stream_tx_lock(s);
	__atomic_store_n(&s->resting, on, __ATOMIC_RELEASE);
	if (on)
		stream_tx_unlock(s);
	if (rx)
		stream_rx_unlock(s);
}

/* What the lock of a dead process guarded is half changed */
void stream_lock(struct stream *s, struct base_lock *lock)
{
	int err = lock_take(s, lock);

	base_point_locked(1);
	if (!err)
		return;
	stream_spoilt(s, STREAM_SHARER_DIED);
	if (lock == &s->state->rx_lock)
		rx_forget(s);
}

void stream_unlock(struct base_lock *lock)
{
	base_point_locked(-1);
	base_lock_drop(lock);
}

void stream_tell(struct stream *s, uint64_t before)
{
	if (s->changed && stream_edges(s) != before)
		s->changed(s->ctx);
}

/* The transport may have room again */
static void unblock(struct stream *s)
{
	if (!base_load(&s->state->tx.blocked) || !s->rnic->carrier->room(&s->mem, stream_fd(s)))
		return;
	stream_tx_lock(s);
	stream_push(s);
	BASE_POINT(stream_rsock_unblocked);
	stream_tx_unlock(s);
}

/*
 * Who dies in sending may have entered octets in the books that never left. No grant comes for
 * them, so who waits for room is to find that out himself
 */
static void sender_look(struct stream *s)
{
	if (!base_load(&s->state->tx_lock.word) || stream_is_foreign(s) ||
	    stream_levels(s, NULL) & STREAM_WRITABLE)
		return;
	stream_tx_lock(s);
	stream_tx_unlock(s);
}

int stream_with_both(struct stream *s, int (*fn)(struct stream *s))
{
	int err;

	stream_rx_lock(s);
	stream_tx_lock(s);
	err = fn(s);
	stream_tx_unlock(s);
	stream_rx_unlock(s);
	return err;
}

static int start(struct stream *s)
{
	if (s->mem.native && stream_is_foreign(s))
		return -EXDEV;
	return stream_with_both(s, stream_start);
}

int stream_progress(struct stream *s)
{
	uint64_t before = stream_edges(s);
	bool open = stream_is_open(s);
	int err = open ? 0 : start(s);

	/* Another process may have opened it */
	if (base_load(&s->counted) && stream_is_open(s) && !stream_write_retry_waits(s))
		stream_start_leave(s);
	if (!err) {
		stream_pump(s);
		stream_write_retry_look(s);
		unblock(s); /* of what was sent, the input may tell */
		sender_look(s);
	}
	/* That it is open somebody may wait for, edge or not */
	stream_tell(s, !err && !open ? ~stream_edges(s) : before);
	return err;
}

int stream_take_error(struct stream *s)
{
	uint32_t err = __atomic_exchange_n(&s->state->error, 0, __ATOMIC_ACQ_REL);

	return err <= STREAM_ERROR_MAX ? (int)err : ECONNRESET;
}

void stream_give_error(struct stream *s, int err)
{
	uint32_t none = 0;

	__atomic_compare_exchange_n(&s->state->error, &none, (uint32_t)err, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
}

void stream_disown(struct stream *s)
{
	stream_slab_share(s);
	s->disowned = true;
	base_store(&s->last, false);
}

/* Nobody comes to its cell by another socket: this one is not closed before all is done */
int stream_linger_handoff(struct stream *s, bool on)
{
	uint32_t self = base_process_self().pid;
	int err;

	if (!on) {
		base_store(&s->state->closer, self);
		stream_slab_unpublish(s);
		return 0;
	}
	if (!stream_is_open(s) || !s->is_file || base_load(&s->state->owner) ||
	    s->slab->place.user != (uid_t)syscall(SYS_geteuid))
		return -EOPNOTSUPP;
	base_store(&s->state->closer, 0);
	err = stream_slab_publish(s);
	if (err)
		base_store(&s->state->closer, self);
	return err;
}

bool stream_owes(struct stream *s)
{
	const struct stream_tx *tx = &s->state->tx;

	if (base_load(&tx->hold_end))
		return true;
	if (base_load(&s->state->ends) & STREAM_OUT_ENDED)
		return false;
	if (!stream_is_open(s))
		return base_load(&tx->due);
	return stream_push_wanted(s) || stream_write_retry_waits(s);
}

static void locks_pass(struct stream *s)
{
	base_lock_pass(&s->state->rx_lock);
	base_lock_pass(&s->state->tx_lock);
}

/*
 * Under the locks it is used; the other processes have numbers of their own. Who is inside is at
 * work by a descriptor, and would break the connection without one
 */
void stream_set_fd(struct stream *s, int fd)
{
	__atomic_store_n(&s->shut, fd < 0, __ATOMIC_RELEASE);
	if (fd < 0)
		locks_pass(s);
	__atomic_store_n(&s->fd, fd, __ATOMIC_RELEASE);
	if (fd >= 0)
		locks_pass(s);
}

/* The program's. Headers are counted last, so they are read first: never more than consumed */
static uint64_t octets_read(const struct stream_rx *rx)
{
	uint64_t headers = base_load(&rx->headers);

	return base_load(&rx->consumed) - headers;
}

void stream_stats(struct stream *s, struct stream_stats *stats)
{
	struct rnic_stream_info info = { 0 };
	uint64_t octets = 0;

	/* What was held for a peer without DDP goes another way */
	if (stream_is_open(s)) {
		/* First: of what is sent meanwhile nobody is to think that nothing of it waits */
		octets = base_load(&s->state->tx.octets);
		s->rnic->info(&s->mem, &info);
	}
	*stats = (struct stream_stats){
		.tx_octets = octets,
		.rx_octets = octets_read(&s->state->rx),
		.tx_fpdus = info.tx_fpdus,
		.rx_fpdus = info.rx_fpdus,
		.queued = info.queued,
		.opened = stream_is_open(s),
		.broken = base_load(&s->state->broken),
		.failed = base_load(&s->failed),
		.device = s->mem.native,
		.probe_error = base_load(&s->probe_error),
		.last = base_load(&s->last),
	};
}

static bool both_over(uint32_t ends)
{
	return ends & STREAM_IN_ENDED && ends & (STREAM_OUT_ENDED | STREAM_SHUT_WR);
}

void stream_info(struct stream *s, struct stream_info *out)
{
	const struct stream_state *st = s->state;
	struct rnic_stream_info info = { 0 };
	bool open = stream_is_open(s);

	if (base_load(&st->stage) >= STREAM_OPEN)
		s->rnic->info(&s->mem, &info);
	*out = (struct stream_info){
		.provider = s->provider,
		.features = base_load(&st->features),
		.fault = info.fault,
		.fault_by_peer = info.fault_by_peer,
		.ring = s->ring,
		.mulpdu = info.mulpdu,
		.ird = stream_has(s, STREAM_FEATURE_ONESIDED) ? STREAM_ONESIDED_DEPTH : 0,
		.ord = open ? st->peer.ird : 0,
		.mpa_rev = info.mpa_rev,
		.open = open,
		.broken = base_load(&st->broken),
		.start_error = base_load(&s->start_error),
		.reached = base_load(&s->failed),
		.foreign = stream_is_foreign(s),
		.over = both_over(base_load(&st->ends)),
		.cut = base_load(&st->broken) == STREAM_CUT || info.fault == MPA_E_CLOSED,
		.aborted = base_load(&st->aborted),
		.crc = info.crc,
		.tx_markers = info.tx_markers,
		.rx_markers = info.rx_markers,
		.tx_octets = base_load(&st->tx.octets),
		.rx_octets = octets_read(&st->rx),
		.tx_fpdus = info.tx_fpdus,
		.rx_fpdus = info.rx_fpdus,
		.messages_sent = base_load(&st->tx.messages),
		.messages_received = base_load(&st->rx.messages),
		.jobs = stream_jobs_count(s),
	};
}

/* The program's SO_RCVLOWAT is ours from now on, and the socket is to wake for each octet */
static void options_take(struct stream *s)
{
	int lowat = base_sock_lowat(stream_fd(s));
	int in_line = base_sock_number(stream_fd(s), SOL_SOCKET, SO_OOBINLINE);

	s->state->urgent.in_line = in_line > 0;

	s->state->lowat = (uint32_t)base_max(1, base_min(lowat, (int)stream_half(s)));
	if (lowat != 1)
		base_sock_set_lowat(stream_fd(s), 1);
}

void stream_init(struct stream *s, int fd, const struct stream_param *param)
{
	s->fd = fd;
	s->carrier = -1;
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
	struct stream *s;
	int err = stream_memory_create(fd, param, &s);

	if (err)
		return err;
	options_take(s);
	*out = s;
	return 0;
}

int stream_adopt(int fd, const struct stream_param *param, struct stream **out)
{
	struct stream *s;
	int err = stream_memory_adopt(fd, param, &s);

	if (err)
		return err;
	stream_start_join(s);
	*out = s;
	return 0;
}

int stream_hand_over(struct stream *s)
{
	if (base_load(&s->state->owner) || stream_jobs_count(s))
		return -EXDEV;
	/* One that is over would take the name of its socket's next connection */
	if (!s->is_file || base_load(&s->state->closer))
		return -EOPNOTSUPP;
	if (s->slab->place.user != (uid_t)syscall(SYS_geteuid))
		return -EACCES;
	return stream_slab_publish(s);
}

void *stream_exec_record(struct stream *s)
{
	return s->state->exec_record;
}

/* Is this the last one who leaves? */
static bool is_last(struct stream *s)
{
	uint32_t nobody = 0;

	/* A device's connection is of use to nobody but its owner */
	if (s->mem.native ? stream_is_foreign(s) : stream_holder_others(s))
		return false;
	/* Two may have left at once, and seen nobody else */
	return __atomic_compare_exchange_n(&s->state->closer, &nobody, base_process_self().pid,
					   false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool stream_leave(struct stream *s)
{
	bool last;

	if (s->left || s->disowned)
		return false;
	s->left = true;
	stream_holder_leave(s);
	last = is_last(s);
	if (last)
		BASE_POINT(stream_rsock_leaving);
	stream_memory_leave(s, last);
	return last;
}

void stream_destroy(struct stream *s)
{
	bool last;

	if (!s)
		return;
	last = stream_leave(s) || base_load(&s->last);
	stream_start_leave(s);
	stream_onesided_uninit(s);
	if (s->mem.native)
		s->rnic->native->destroy(s->mem.native);
	stream_memory_destroy(s, last);
}
