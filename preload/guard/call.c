/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a thread of the program is while it is inside one of our calls.
 *
 * Each thread that ever was inside has a record. Records lie in a pool, so that who looks for
 * the thread it is to cancel finds memory that is one, and what a thread leaves behind that goes
 * without its destructors is only lost.
 *
 * Cancellation is disabled inside: none of the functions of libc that we use there is a
 * cancellation point then, also for a thread of the asynchronous kind. A sleeper must be woken by
 * it all the same, so pthread_cancel() is taken: libc's marks the thread, and we end its sleep
 * (preload/guard/intr_sleep.c) by the signal that libc itself would have sent. Then the call comes
 * back as from a signal, everything is put away on the way, and libc's pthread_testcancel() at the
 * call's end ends the thread.
 */
#include "preload/guard/call.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/guard/exiting.h"
#include "preload/guard/signals.h"
#include "preload/guard/thread.h"
#include "preload/table/fork_gen.h"
#include "preload/table/pool.h"

/* libc's signal for pthread_cancel(), which no program can have a handler for */
#define SIGNAL_CANCEL 32

bool call_cancels;

static struct pool pool = POOL_INIT(struct call, node, 4);
static struct {
	pthread_mutex_t lock;
	struct base_list list;
} calls = { PTHREAD_MUTEX_INITIALIZER, BASE_LIST_INIT(calls.list) };
static pthread_key_t key;
static bool key_made;

static void call_fill(struct call *e)
{
	e->depth = 0;
	e->cancel_off = e->sleeping = e->canceled = false;
	e->noted = e->blocked = e->kept = e->muted = e->notes = e->swapped = 0;
	e->spin = (struct spin_thread){ 0 };
	e->thread = pthread_self();
	e->tid = (int)syscall(SYS_gettid);
}

/* A handler of the program must not find the locks taken by its own thread */
struct call *call_create(void)
{
	sigset_t before;
	struct call *e;

	signals_block(&before);
	e = pool_get(&pool);
	if (e) {
		call_fill(e);
		pthread_mutex_lock(&calls.lock);
		base_list_push_back(&calls.list, &e->node);
		pthread_mutex_unlock(&calls.lock);
		if (key_made)
			pthread_setspecific(key, e);
		call_self = e;
	}
	signals_restore(&before);
	return e;
}

struct spin_thread *spin_self(void)
{
	return call_self ? &call_self->spin : NULL;
}

/* The thread ends; what its later destructors call makes a new one */
static void call_destroy(void *p)
{
	struct call *e = p;
	sigset_t before;

	signals_block(&before);
	call_self = NULL;
	pthread_mutex_lock(&calls.lock);
	base_list_remove(&e->node);
	pthread_mutex_unlock(&calls.lock);
	if (e->tid == getpid())
		thread_first_ends();
	pool_put(&pool, e);
	signals_restore(&before);
}

/* --- cancellation --- */

/*
 * calls.lock, so the thread is there. Pairs with intr_sleep_begin() in preload/guard/intr_sleep.c
 */
static void intr_sleep_end(struct call *e)
{
	__atomic_store_n(&e->canceled, true, __ATOMIC_SEQ_CST);
	__atomic_store_n(&e->sleep_left.tv_sec, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&e->sleep_left.tv_nsec, 0, __ATOMIC_SEQ_CST);
	base_recv_sleep_end(&e->sleep);
	if (__atomic_load_n(&e->sleeping, __ATOMIC_SEQ_CST))
		syscall(SYS_tgkill, getpid(), e->tid, SIGNAL_CANCEL);
}

long call_pthread_cancel(pthread_t thread)
{
	struct base_list *node, *next;
	long err;

	__atomic_store_n(&call_cancels, true, __ATOMIC_RELAXED);
	err = libc.pthread_cancel(thread);
	if (err)
		return err;
	pthread_mutex_lock(&calls.lock);
	base_list_foreach(node, next, &calls.list) {
		struct call *e = base_list_entry(node, struct call, node);

		if (pthread_equal(e->thread, thread))
			intr_sleep_end(e);
	}
	pthread_mutex_unlock(&calls.lock);
	return 0;
}

/* --- after a call --- */

bool call_settle(struct call *e, long *r)
{
	bool interrupted = *r == -EINTR || *r == CALL_RESTART, restart = true;

	/* It slept while its connection was ended */
	if (exiting_halt() && *r != CALL_THEIRS)
		*r = -EPIPE;
	if (e && e->noted)
		restart = signals_deliver(e);
	if (e && interrupted && __atomic_load_n(&e->canceled, __ATOMIC_ACQUIRE))
		pthread_testcancel();
	if (*r != CALL_RESTART)
		return false;
	if (e && restart)
		return true;
	*r = -EINTR;
	return false;
}

void call_pass(void)
{
	struct call *e = call_self;

	if (!e || e->depth != 1 || !e->noted)
		return;
	e->depth = 0;
	call_order();
	signals_deliver(e);
	call_order();
	e->depth = 1;
}

/* --- processes --- */

void call_before_fork(void)
{
	pthread_mutex_lock(&calls.lock);
}

/* The child's one thread; what was noted was for the parent */
static void inherit(void)
{
	struct call *self = call_self;

	base_list_init(&calls.list);
	thread_after_fork();
	signals_after_fork(self);
	if (!self)
		return;
	self->thread = pthread_self();
	self->tid = (int)syscall(SYS_gettid);
	base_list_init(&self->node);
	base_list_push_back(&calls.list, &self->node);
}

void call_after_fork(bool child)
{
	fork_gen_lock_drop(&calls.lock, child);
	if (child)
		inherit();
}

void call_init(void)
{
	signals_init();
	thread_init();
	key_made = !pthread_key_create(&key, call_destroy);
}
