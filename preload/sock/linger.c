/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SO_LINGER with a time: close() comes back when all is delivered, when the time is up, or when a
 * signal comes; what is not delivered by then goes on being attended to. As in Linux O_NONBLOCK
 * makes no difference, and the end of the process does not wait.
 *
 * Delivered is what the peer's TCP has acknowledged up to our FIN. An acknowledgement wakes
 * nobody, so it is looked for.
 */
#include "preload/sock/linger.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/point.h"
#include "preload/guard/intr_sleep.h"

#define ACKED_POLL BASE_NS_PER_MS

static bool never; /* atomic */

void linger_never(bool on)
{
	__atomic_store_n(&never, on, __ATOMIC_RELAXED);
}

/* When the time is up; 0: there is none */
static uint64_t time_limit(int seconds)
{
	if (seconds <= 0 || __atomic_load_n(&never, __ATOMIC_RELAXED))
		return 0;
	return base_deadline(base_now(), (uint64_t)seconds * BASE_NS_PER_S);
}

void linger_wait(struct sock *s)
{
	struct stream *stream = s->stream;
	uint64_t deadline = time_limit(stream->linger);
	bool safe = false;

	BASE_POINT(preload_linger_waiting);
	while (deadline && !safe && !base_deadline_passed(deadline, base_now()) &&
	       stream_close_more(stream, &safe) == -EAGAIN) {
		struct pollfd p = stream_pollfd(stream, 0);
		uint64_t again = base_deadline(base_now(), ACKED_POLL);

		if (intr_sleep(&p, 1, base_min(again, deadline), NULL, NULL) == -EINTR)
			break;
	}
}
