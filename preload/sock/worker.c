/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The worker thread: it attends to streams for which nobody may call.
 *
 * Closed streams still have the rest of their octets to send, DISCONNECT and the FIN, and to read
 * what arrives until the peer's FIN, since to close with input unread, or to be sent something
 * after the close, resets the connection. A connection that was accepted has a Request to answer,
 * and one whose connect() did not wait a Reply to take in, while its program may sleep elsewhere.
 * And what a full kernel did not take of something accepted must leave when there is room, also if
 * the program never calls again; since it mostly does, that one is left alone for a moment.
 *
 * A closed one has a descriptor, and its peer may take its time. Those of which the peer's TCP has
 * everything may have an eighth of what the process may open, and all of them a half: who comes
 * then lets others go, the oldest first. close() does not wait.
 *
 * Peers mostly end soon. So what has sent all is looked at by the next close(), which finds many of
 * them over; the thread comes later, and takes the processor from nobody for each of them.
 *
 * The thread is started by the first stream that needs it, blocks all signals, sleeps as
 * preload/sock/work_item.c says, and ends when there has been nothing for a while. At exit the
 * caller attends to the closed ones itself, and is content with an acknowledgement of all that was
 * sent (stream/life/end.c says why that is enough).
 */
#include "preload/sock/worker.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/point.h"
#include "base/sockutil.h"
#include "preload/guard/call.h"
#include "preload/guard/exiting.h"
#include "preload/guard/intr_sleep.h"
#include "preload/guard/sandbox.h"
#include "preload/guard/thread.h"
#include "preload/sock/number.h"
#include "preload/table/fork_gen.h"
#include "preload/table/internal.h"

#define BATCH 64
#define STACK (128 * 1024u)
/* Parts of the descriptors that closed ones may have: when their peers have all, and in any case */
#define PART_ACKED 8
#define PART_ALL 2
/* Where so few numbers are free, none is for those whose peers have all; and how often to look */
#define FEW 16u
#define FEW_PAUSE BASE_NS_PER_MS
/* So many are let go by one who comes, and where numbers are few */
#define LET_GO_MAX 4
#define LET_GO_FEW 64
/* Another thread may take what was given up */
#define OWN_TRIES 4
/* Descriptors beyond the limit that the program has set itself */
#define BEYOND 1024
/* So long the thread leaves a closed one alone that has sent all, and the next close() does */
#define CLOSED_ALONE (50 * BASE_NS_PER_MS)
#define CLOSED_YOUNG BASE_NS_PER_MS
/* So long the program is given to call by itself */
#define LEFT_ALONE BASE_NS_PER_MS
/* With nothing to attend to the thread stays for so long */
#define IDLE (100 * BASE_NS_PER_MS)

/* Under the lock of the work list */
static struct {
	bool there;
	bool stop;    /* it is to end */
	bool ended;   /* it has ended by itself, and nobody has joined it */
	bool retired; /* nobody joins it */
	pthread_t id;
} thread;

/* --- the thread --- */

static void sleep_until(uint64_t limit)
{
	struct pollfd fds[2] = { { .fd = work_list.wakeup, .events = POLLIN },
				 { .fd = work_list.set, .events = POLLIN } };

	base_poll(fds, 2, limit);
	if (fds[0].revents)
		base_eventfd_drain(work_list.wakeup);
}

/* Under the lock. True: there has been nothing to do since @idle, and nobody wants it to stay */
static bool is_idle(uint64_t *idle, uint64_t *limit)
{
	uint64_t now = base_now();

	/* At the end of the process nobody joins it any more */
	if (work_list_any() || __atomic_load_n(&exiting_begun, __ATOMIC_ACQUIRE)) {
		*idle = 0;
		return false;
	}
	if (!*idle)
		*idle = now;
	*limit = base_deadline(*idle, IDLE);
	return base_deadline_passed(*limit, now);
}

/* Under the lock */
static void looked_after(void)
{
	uint64_t idle = 0, limit;

	for (;;) {
		work_list.asleep = 0;
		if (thread.stop)
			return;
		work_list_hear();
		work_list_go(false, WORK_ITEM_PEER_ENDED);
		limit = work_list_arm();
		thread.ended = is_idle(&idle, &limit);
		if (thread.ended)
			return;
		work_list.asleep = limit;
		pthread_mutex_unlock(&work_list.lock);
		sleep_until(limit);
		spin_disturb();
		pthread_mutex_lock(&work_list.lock);
	}
}

static void *worker(void *arg)
{
	/* It never leaves: a device's libraries call libc by names that are ours, under the lock */
	call_enter(false);
	pthread_mutex_lock(&work_list.lock);
	looked_after();
	if (thread.retired)
		pthread_detach(pthread_self());
	pthread_mutex_unlock(&work_list.lock);
	return arg;
}

/* One that has ended by itself is joined before there is another, or none */
void worker_join(void)
{
	pthread_t id;
	bool ended;

	pthread_mutex_lock(&work_list.lock);
	ended = thread.ended;
	id = thread.id;
	if (ended)
		thread.ended = thread.there = false;
	pthread_mutex_unlock(&work_list.lock);
	if (ended)
		pthread_join(id, NULL);
}

static bool worker_claim(void)
{
	bool mine;

	worker_join();
	pthread_mutex_lock(&work_list.lock);
	mine = !thread.there && work_list_any();
	thread.there |= mine;
	pthread_mutex_unlock(&work_list.lock);
	return mine;
}

/* Where there is no thread, who sleeps in a call does its work. False: nothing is left to do */
static bool callers_go(void)
{
	bool more;

	pthread_mutex_lock(&work_list.lock);
	if (!thread.there)
		work_list_go(true, WORK_ITEM_PEER_ENDED);
	more = !thread.there && work_list_any();
	pthread_mutex_unlock(&work_list.lock);
	return more;
}

/* Said once, for it is tried again with the next stream that needs it */
static void not_begun(int err)
{
	static bool said; /* atomic */

	pthread_mutex_lock(&work_list.lock);
	thread.there = false;
	pthread_mutex_unlock(&work_list.lock);
	__atomic_store_n(&intr_sleep_chore, callers_go, __ATOMIC_RELEASE);
	if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		base_warn("no thread for connections that nobody calls on, which wait for calls "
			  "of the program: %s",
			  strerror(-err));
}

/* What a sandbox forbids would end the process */
static bool thread_may_be(void)
{
	return !fork_gen_bare && sandbox_may(SYS_clone) && sandbox_may(SYS_clone3);
}

/* The set is a help, and not needed */
static int set_create(void)
{
	int saved = errno, fd;

	fd = BASE_FAILS(epoll) ? -1 : (int)syscall(SYS_epoll_create1, EPOLL_CLOEXEC);
	errno = saved;
	return fd < 0 ? -1 : internal_move(fd);
}

static int wakers_create(void)
{
	int set, wakeup, err;

	if (__atomic_load_n(&work_list.wakeup, __ATOMIC_ACQUIRE) >= 0)
		return 0;
	err = base_eventfd_create(&wakeup);
	if (err)
		return err;
	wakeup = internal_move(wakeup);
	set = set_create();
	pthread_mutex_lock(&work_list.lock);
	if (work_list.wakeup < 0) {
		work_list.set = set;
		__atomic_store_n(&work_list.wakeup, wakeup, __ATOMIC_RELEASE);
		set = wakeup = -1;
	}
	pthread_mutex_unlock(&work_list.lock);
	/* Another thread was first */
	internal_close(set);
	internal_close(wakeup);
	return 0;
}

/*
 * Not under the lock: a thread takes memory of the program's malloc, which may call us. Without it
 * calls that wait do its work, on whatever they wait, and the exit the rest.
 */
static void worker_start(void)
{
	int err;

	if (!thread_may_be() || !worker_claim())
		return;
	err = wakers_create();
	if (!err)
		err = thread_begin(&thread.id, STACK, worker);
	if (err)
		not_begun(err);
	else
		__atomic_store_n(&intr_sleep_chore, NULL, __ATOMIC_RELEASE);
}

/* Descriptors that the process may have */
static unsigned int descriptors(void)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };
	int saved = errno;

	syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	errno = saved;
	return (unsigned int)base_min(limit.rlim_cur, (rlim_t)UINT_MAX);
}

/* Descriptors: all atomic */
static struct {
	unsigned int most; /* that there may be, as it was at the last close(); 0: there was none */
	bool few;	   /* the program has nearly all of them */
	uint64_t next;	   /* no look before */
} numbers;

/* Under the lock */
static void room_make(unsigned int most)
{
	bool few = __atomic_load_n(&numbers.few, __ATOMIC_RELAXED);
	unsigned int part = few ? 1 : most / PART_ACKED, tries = few ? LET_GO_FEW : LET_GO_MAX;

	for (; tries && work_list.closed >= part; tries--)
		if (!work_list_let_go())
			break;
	if (work_list.closed >= most / PART_ALL)
		work_list_leave();
}

/*
 * The kernel gives the lowest number that is free. So a high one says that the program has all
 * below it, and may find none for a file, which it opens by a call that passes by us
 */
void worker_number(int fd)
{
	unsigned int most = __atomic_load_n(&numbers.most, __ATOMIC_RELAXED);
	bool high = most && (unsigned int)fd + FEW >= most;
	uint64_t now;

	if (high != __atomic_load_n(&numbers.few, __ATOMIC_RELAXED))
		__atomic_store_n(&numbers.few, high, __ATOMIC_RELAXED);
	if (!high)
		return;
	now = base_now();
	if (now < __atomic_load_n(&numbers.next, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&numbers.next, now + FEW_PAUSE, __ATOMIC_RELAXED);
	pthread_mutex_lock(&work_list.lock);
	room_make(most);
	pthread_mutex_unlock(&work_list.lock);
}

bool worker_room(bool acked)
{
	bool room;

	pthread_mutex_lock(&work_list.lock);
	room = work_list_let_go() || (!acked && work_list_leave());
	pthread_mutex_unlock(&work_list.lock);
	return room;
}

/* The program may have lowered its limit, and may raise it: beyond it there is room. 0, -errno */
static int own_beyond(struct sock *s)
{
	struct rlimit was, more;
	int saved = errno, err = -EMFILE;

	if (!__atomic_load_n(&sandbox_on, __ATOMIC_RELAXED) &&
	    !syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &was)) {
		more = was;
		more.rlim_cur = base_min(was.rlim_max, was.rlim_cur + BEYOND);
		syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &more, NULL);
		err = sock_own(s);
		syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &was, NULL);
	}
	errno = saved;
	return err;
}

/* Closed ones that need theirs no more give one: 0, -errno */
static int own_late(struct sock *s)
{
	int err = sock_own(s), tries = OWN_TRIES;

	while (err && tries-- && worker_room(true))
		err = sock_own(s);
	if (err)
		err = own_beyond(s);
	return err && worker_room(false) ? sock_own(s) : err;
}

static void left_alone(struct sock *s)
{
	struct stream *stream = s->stream;
	bool safe;
	int left = stream_close_more(stream, &safe);

	if (left == -ENOMSG)
		sock_ops(s)->fall_back(s);
	else if (left == -EAGAIN && !safe)
		work_list_crowded();
}

void worker_closed(struct sock *s)
{
	bool owes = stream_owes(s->stream);
	uint64_t now = base_now(), begin = owes ? 0 : base_deadline(now, CLOSED_ALONE);
	unsigned int most = descriptors();

	if (own_late(s)) {
		left_alone(s);
		return;
	}
	__atomic_store_n(&numbers.most, most, __ATOMIC_RELAXED);
	fdtab_hold(&s->ent);
	pthread_mutex_lock(&work_list.lock);
	room_make(most);
	work_item_add(s, true, false, begin);
	work_list_tidy(base_deadline(now, CLOSED_ALONE - CLOSED_YOUNG));
	pthread_mutex_unlock(&work_list.lock);
	worker_start();
}

static void worker_open(struct sock *s, bool undecided, uint64_t begin)
{
	pthread_mutex_lock(&work_list.lock);
	if (!s->work.listed || s->work.dropped) {
		fdtab_hold(&s->ent);
		work_item_add(s, false, undecided, begin);
	}
	pthread_mutex_unlock(&work_list.lock);
	worker_start();
}

void worker_starting(struct sock *s)
{
	worker_open(s, false, 0);
}

void worker_accepted(struct sock *s, uint64_t ns)
{
	worker_open(s, true, base_deadline(base_now(), ns));
}

void worker_decided(struct sock *s)
{
	pthread_mutex_lock(&work_list.lock);
	if (s->work.undecided && worker_is_awaited(s))
		work_item_decided(&s->work);
	else if (s->work.undecided && !s->work.closed && !s->work.busy)
		work_item_end(&s->work);
	pthread_mutex_unlock(&work_list.lock);
}

/* Where there is no thread, those who come by see to what was closed */
static void closed_go(void)
{
	pthread_mutex_lock(&work_list.lock);
	if (work_list.closed && !thread.there)
		work_list_go(true, WORK_ITEM_PEER_ENDED);
	pthread_mutex_unlock(&work_list.lock);
}

void worker_urgent_owner(struct sock *s)
{
	urgent_owner_set(s);
	if (sock_role(s) == SOCK_STREAM_ON)
		worker_owing(s);
}

void worker_look_after(struct sock *s)
{
	if (__atomic_load_n(&sandbox_on, __ATOMIC_RELAXED))
		closed_go();
	if (worker_is_awaited(s))
		worker_open(s, false, 0);
	else if (stream_owes(s->stream))
		worker_open(s, false, base_deadline(base_now(), LEFT_ALONE));
}

void worker_forget(struct sock *s)
{
	pthread_mutex_lock(&work_list.lock);
	if (s->work.listed)
		work_item_drop(&s->work);
	pthread_mutex_unlock(&work_list.lock);
}

unsigned int worker_finish(uint64_t deadline)
{
	struct pollfd fds[BATCH];
	unsigned int n, left;
	uint64_t limit;

	for (;;) {
		pthread_mutex_lock(&work_list.lock);
		work_list_go(true, WORK_ITEM_ALL_ACKED);
		BASE_POINT(preload_worker_finishing);
		n = work_list_poll_list(fds, BATCH, &limit);
		left = work_list.closed;
		pthread_mutex_unlock(&work_list.lock);
		if (!left || base_deadline_passed(deadline, base_now()))
			return left;
		call_pass();
		/* An acknowledgement wakes nobody */
		base_poll(fds, n, base_deadline(base_now(), BASE_NS_PER_MS));
	}
}

void worker_prepare(void)
{
	wakers_create();
}

void worker_stop(void)
{
	bool there;

	worker_join();
	work_list_lock();
	there = thread.there;
	thread.stop = there;
	pthread_mutex_unlock(&work_list.lock);
	if (!there)
		return;
	base_eventfd_notify(work_list.wakeup);
	pthread_join(thread.id, NULL);
	pthread_mutex_lock(&work_list.lock);
	thread.there = thread.stop = thread.ended = false;
	pthread_mutex_unlock(&work_list.lock);
}

/* What lingers still has had its time */
void worker_retire(void)
{
	struct base_list *node, *next;

	work_list_lock();
	work_list.over = thread.stop = thread.retired = true;
	base_list_foreach(node, next, &work_list.list) {
		struct work_item *c = base_list_entry(node, struct work_item, node);

		if (c->closed)
			work_item_end(c);
	}
	pthread_mutex_unlock(&work_list.lock);
}

void worker_resume(void)
{
	worker_start();
}

void worker_confine(void)
{
	struct base_list *node, *next;

	work_list_lock();
	base_list_foreach(node, next, &work_list.list) {
		struct work_item *c = base_list_entry(node, struct work_item, node);

		if (c->closed)
			base_fd_set_nonblock(stream_fd(work_item_sock(c)->stream), true);
	}
	pthread_mutex_unlock(&work_list.lock);
}

unsigned int worker_threads(void)
{
	bool there;

	worker_join();
	pthread_mutex_lock(&work_list.lock);
	there = thread.there;
	pthread_mutex_unlock(&work_list.lock);
	return there;
}

void worker_before_fork(void)
{
	work_list_lock();
}

/* The set is one with the parent's, and its entries are the parent's */
static void work_list_inherit(void)
{
	struct base_list *node, *next;

	thread.there = thread.stop = thread.ended = thread.retired = false;
	internal_close(work_list.wakeup);
	internal_close(work_list.set);
	work_list.wakeup = work_list.set = -1;
	work_list.asleep = 0;
	base_list_foreach(node, next, &work_list.list) {
		struct work_item *c = base_list_entry(node, struct work_item, node);

		c->plain = c->busy = c->dropped = false;
		c->watched = -1;
		c->ready = true;
		if (!c->closed)
			continue;
		stream_disown(work_item_sock(c)->stream);
		work_item_end(c);
	}
	worker_start();
}

void worker_after_fork(bool child)
{
	fork_gen_lock_drop(&work_list.lock, child);
	if (child)
		work_list_inherit();
}
