/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits for what the kernel is to give.
 *
 * accept() sleeps in the kernel, which wakes one of all who wait for a listener: so before it there
 * is a spin and no sleep, and how long it took is noted behind it. A signal that comes during the
 * spin interrupts the call, as it would interrupt the sleep.
 */
#include "preload/wait/kernel.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "preload/guard/call.h"
#include "preload/guard/intr_sleep.h"
#include "preload/sock/listens.h"
#include "preload/sock/sock.h"
#include "preload/sock/waited.h"
#include "preload/table/libc.h"
#include "preload/table/user_iov.h"
#include "preload/wait/sock_io.h"

static uint64_t deadline_of(int fd)
{
	return base_deadline(base_now(), base_sock_timeout(fd, SO_RCVTIMEO));
}

/*
 * The kernel has one time for all that a call waits for: the rest of MSG_WAITALL, and SO_RCVLOWAT,
 * behind which it returns what there is. A wait for the first byte would make that two times
 */
static bool is_for_more(int fd, int flags)
{
	return flags & MSG_WAITALL || base_sock_lowat(fd) > 1;
}

static long input_wait(int fd, struct spin_place *place, int flags)
{
	uint64_t deadline = deadline_of(fd);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int n;

	/* Not where the wait does a thread's work */
	if (deadline != BASE_NEVER && !__atomic_load_n(&intr_sleep_chore, __ATOMIC_ACQUIRE) &&
	    is_for_more(fd, flags)) {
		intr_sleep_first_do();
		return CALL_THEIRS;
	}
	n = deadline == BASE_NEVER ? intr_sleep(&p, 1, deadline, NULL, place)
				   : intr_sleep_final(&p, 1, deadline, NULL, place);
	if (n == -EINTR)
		return call_interrupted(deadline);
	return n ? CALL_THEIRS : -EAGAIN;
}

/* What the kernel answers without waiting, whatever there is */
static bool is_at_once(const struct iovec *iov, int n, int flags)
{
	struct user_iov p;

	return flags & (MSG_DONTWAIT | MSG_ERRQUEUE | MSG_OOB) || user_iov_init(&p, iov, n) ||
	       (flags & SOCK_IO_FILE && !p.len);
}

/* A wait that sleeps at once sleeps in the program's own call, if no work of a thread's is left */
static bool rests(struct spin_place *place)
{
	if (__atomic_load_n(&intr_sleep_chore, __ATOMIC_ACQUIRE) || !spin_rests(place))
		return false;
	intr_sleep_first_do();
	return true;
}

/* Another thread may have closed the number meanwhile, which may be another file's by now */
static bool is_still(int fd, const struct waited *w)
{
	struct waited *now = waited_get(fd);

	waited_put(now);
	return now == w;
}

long kernel_input(int fd, const struct iovec *iov, int n, int flags)
{
	struct waited *w = waited_get(fd);
	long r = CALL_THEIRS;

	if (w && !__atomic_load_n(&w->listens, __ATOMIC_RELAXED) && !is_at_once(iov, n, flags) &&
	    !rests(&w->place) && !base_sock_is_nonblock(fd)) {
		r = input_wait(fd, &w->place, flags);
		if (r == CALL_THEIRS && !is_still(fd, w))
			r = -EBADF;
	}
	waited_put(w);
	return r;
}

/* --- accept() --- */

/* A listener's waits are for connections, and those for octets of one that is none */
static struct spin_place *place_of(struct sock *s, struct waited *w)
{
	if (w)
		return &w->place;
	return s && sock_role(s) == SOCK_LISTENER ? &s->places[0] : NULL;
}

static long accept_spin(int fd, struct spin_place *place, struct spin_thread *t)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	int n = -EAGAIN;

	t->accept = base_now();
	if (spin_might(place) && !base_sock_is_nonblock(fd))
		n = intr_sleep_spin(&p, 1, place);
	if (n != -EAGAIN)
		t->accept = 0; /* the spin has noted how long it took, or that is of no use */
	return n == -EINTR ? call_interrupted(deadline_of(fd)) : 0;
}

/* The kernel's sleep would leave a thread's work undone, so the wait is here as far as it goes */
static long accept_wait(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t deadline = deadline_of(fd);
	int n = base_sock_is_nonblock(fd) ? 1 : intr_sleep(&p, 1, deadline, NULL, NULL);

	if (n == -EINTR)
		return call_interrupted(deadline);
	return n ? 0 : -EAGAIN;
}

/*
 * In mode on a connection for which there is no memory would be reset, with what its client has
 * sent. So it stays with the kernel, and the call says what it says where the kernel has none.
 * In mode auto it is plain
 */
static long accept_starved(int fd, struct sock *s)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	long r;

	/* Another process may have accepted what woke this one */
	do {
		r = accept_wait(fd);
		if (r || listens_room(s))
			return r;
		r = base_poll(&p, 1, base_now());
	} while (r <= 0 && !base_sock_is_nonblock(fd));
	if (r <= 0)
		return -EAGAIN;
	base_warn("no memory for a connection, which waits to be accepted");
	return -ENOMEM;
}

static long accept_prepare(int fd, struct sock *s, struct waited *w)
{
	struct spin_thread *t = spin_self();
	struct spin_place *place = t && spin_may() ? place_of(s, w) : NULL;
	long r = place ? accept_spin(fd, place, t) : 0;

	intr_sleep_first_do();
	if (!r && s && sock_role(s) == SOCK_LISTENER && !listens_room(s) && listens_strictly(s))
		r = accept_starved(fd, s);
	return r;
}

static long accept_begin(int fd)
{
	struct sock *s = sock_get(fd);
	struct waited *w = s ? NULL : waited_get(fd);
	long r = accept_prepare(fd, s, w);

	if (!r && __atomic_load_n(&intr_sleep_chore, __ATOMIC_ACQUIRE))
		r = accept_wait(fd);
	waited_put(w);
	sock_put(s);
	return r;
}

long kernel_accept_begin(int fd)
{
	struct call *e;
	long r;

	do {
		e = call_enter(false);
		r = accept_begin(fd);
	} while (call_leave(e, &r));
	return r;
}

void kernel_accept_end(int fd, int got)
{
	struct spin_thread *t = spin_self();
	uint64_t began = t ? t->accept : 0;
	struct sock *s = began ? sock_get(fd) : NULL;
	struct waited *w = began && !s ? waited_get(fd) : NULL;
	struct spin_place *place = place_of(s, w);

	if (place && got >= 0) {
		spin_note(place, base_now() - began);
		spin_place_learn(place, got);
	}
	if (t)
		t->accept = 0;
	waited_put(w);
	sock_put(s);
}
