/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two locks of a connection: rx for what comes, tx for what goes, rx before tx, neither over a
 * sleep but in stream_sleep(). They lie in the state and survive the death of their owner; whoever
 * finds a dead one ends the connection, since what the lock guarded is half changed.
 */
#include "stream/state/memory.h"

#include <errno.h>

#include "base/clock.h"
#include "base/point.h"
#include "base/sockutil.h"

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
		stream_rx_forget(s);
}

void stream_unlock(struct base_lock *lock)
{
	base_point_locked(-1);
	base_lock_drop(lock);
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
