/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The thread that answers.
 *
 * The first process of a host that has a listener for DDP gets the port, and answers for all of
 * them. The others try again each second, so that one takes over when it ends. A process that is
 * stopped keeps the port, and nobody answers meanwhile: clients find silence, and are plain TCP.
 *
 * The thread begins with the first listener and ends with the last one, before the program is
 * replaced by another, and before a filter stands, behind which it never comes back. A forked child
 * closes what it has of the port and has a thread of its own, for a daemon's parent is gone soon:
 * from its first sleep on, for a child that serves one connection closes the listeners before, and
 * one that executes a program needs none.
 *
 * `answerer.lock` is a leaf but for the table and the pools. The thread takes it when it opens or
 * closes descriptors, so that whoever forks meanwhile knows which there are.
 */
#include "preload/rules/answerer.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/point.h"
#include "base/sockutil.h"
#include "preload/guard/call.h"
#include "preload/guard/intr_sleep.h"
#include "preload/guard/sandbox.h"
#include "preload/guard/thread.h"
#include "preload/rules/answer.h"
#include "preload/table/fork_gen.h"
#include "preload/table/internal.h"

#define STACK (128 * 1024u)
#define TRY_AGAIN BASE_NS_PER_S
/* Where the program's first thread has ended: are there others? */
#define THREADS_POLL (100 * BASE_NS_PER_MS)

enum phase {
	NONE,
	STARTING, /* somebody makes it */
	RUNNING,
	ENDING, /* it was told to */
	ENDED,	/* and has; it is to be joined */
};

static struct {
	pthread_mutex_t lock;
	in_port_t port;	   /* 0: nobody answers */
	int listeners;	   /* atomic */
	unsigned int held; /* by who has stopped it */
	enum phase phase;  /* atomic */
	bool warned, thread_warned;
	pthread_t id;
	int wakeup; /* atomic */
} answerer = { .lock = PTHREAD_MUTEX_INITIALIZER, .wakeup = -1 };

static struct answer answer = ANSWER_INIT; /* the thread's; under the lock where it changes fd */

/* Under the lock */
static bool is_wanted(void)
{
	return answerer.port && !answerer.held && !fork_gen_bare &&
	       __atomic_load_n(&answerer.listeners, __ATOMIC_ACQUIRE) > 0 &&
	       !__atomic_load_n(&sandbox_on, __ATOMIC_ACQUIRE);
}

/* Once, for it is tried again each second */
static void not_opened(int err)
{
	if (err == -EADDRINUSE || answerer.warned)
		return;
	answerer.warned = true;
	base_warn("questions for listeners of this host are not answered at UDP port %u: %s",
		  ntohs(answerer.port), strerror(-err));
}

/* Under the lock; looked at without it */
static void phase_set(enum phase phase)
{
	__atomic_store_n(&answerer.phase, phase, __ATOMIC_RELEASE);
}

/* False: the thread is over */
static bool go_on(void)
{
	bool starting, wanted;
	int err = 0;

	pthread_mutex_lock(&answerer.lock);
	/* Who makes the thread says that it is made, before anything else becomes of it */
	starting = answerer.phase == STARTING;
	wanted = starting || (answerer.phase != ENDING && is_wanted() && !thread_is_only_ours());
	if (wanted && !starting && !answer.port)
		err = answer_open(&answer, answerer.port);
	if (err)
		not_opened(err);
	if (!wanted) {
		answer_close(&answer);
		phase_set(ENDED);
	}
	pthread_mutex_unlock(&answerer.lock);
	return wanted;
}

/* Until there is something to be answered, or it is this process's turn to try */
static void idle(void)
{
	/* The wakeup fd is there as long as the thread */
	struct pollfd fds[2] = { { .fd = answerer.wakeup, .events = POLLIN },
				 { .fd = answer.fd, .events = POLLIN } };
	uint64_t limit = base_deadline(base_now(), TRY_AGAIN);
	unsigned int n = 1;

	if (answer.port) {
		limit = answer_serve(&answer);
		n += limit == BASE_NEVER;
	}
	if (thread_first_has_ended())
		limit = base_min(limit, base_deadline(base_now(), THREADS_POLL));
	base_poll(fds, n, limit);
	base_eventfd_drain(answerer.wakeup);
}

static void *run(void *arg)
{
	call_enter(false);
	while (go_on())
		idle();
	return arg;
}

static int wakeup_create(void)
{
	int fd, err;

	if (answerer.wakeup >= 0)
		return 0;
	err = base_eventfd_create(&fd);
	if (!err)
		__atomic_store_n(&answerer.wakeup, internal_move(fd), __ATOMIC_RELEASE);
	return err;
}

static void ring(void)
{
	int wakeup = __atomic_load_n(&answerer.wakeup, __ATOMIC_ACQUIRE);

	if (wakeup >= 0)
		base_eventfd_notify(wakeup);
}

/*
 * Is it the caller's to make a thread? The one before was about to end, and is joined. What the
 * thread is short of, it tries to make itself.
 */
static bool claim(void)
{
	enum phase before;
	bool mine;

	pthread_mutex_lock(&answerer.lock);
	before = answerer.phase;
	mine = is_wanted() && (before == NONE || before == ENDED) && !wakeup_create();
	if (mine) {
		phase_set(STARTING);
		answer_make(&answer);
	}
	pthread_mutex_unlock(&answerer.lock);
	if (mine && before == ENDED)
		pthread_join(answerer.id, NULL);
	return mine;
}

/* Not under the lock: a thread takes memory of the program's malloc, which may call us */
static void start(void)
{
	int saved = errno, err;
	bool said;

	if (!sandbox_may(SYS_clone) || !sandbox_may(SYS_clone3) || !claim())
		return;
	err = thread_begin(&answerer.id, STACK, run);
	pthread_mutex_lock(&answerer.lock);
	phase_set(err ? NONE : RUNNING);
	said = answerer.thread_warned;
	answerer.thread_warned |= err != 0;
	pthread_mutex_unlock(&answerer.lock);
	if (err && !said)
		base_warn("no thread to answer questions for listeners: %s", strerror(-err));
	ring();
	errno = saved;
}

void answerer_init(uint16_t port)
{
	thread_first_ended = ring;
	answerer.port = htons(port);
}

unsigned int answerer_threads(void)
{
	enum phase phase = __atomic_load_n(&answerer.phase, __ATOMIC_ACQUIRE);

	return phase == RUNNING || phase == STARTING || phase == ENDING;
}

void answerer_look(void)
{
	if (!answerer.port || answerer_threads() ||
	    !__atomic_load_n(&answerer.listeners, __ATOMIC_ACQUIRE) || fork_gen_is_guest())
		return;
	start();
}

void answerer_listener(int more)
{
	if (__atomic_add_fetch(&answerer.listeners, more, __ATOMIC_ACQ_REL) <= 0)
		ring();
	else if (more > 0 && answerer.port && !fork_gen_is_guest())
		start();
}

/* Is there one to be joined? One that is being made comes first */
static bool end_begin(void)
{
	bool there;

	pthread_mutex_lock(&answerer.lock);
	answerer.held++;
	while (answerer.phase == STARTING) {
		pthread_mutex_unlock(&answerer.lock);
		sched_yield();
		pthread_mutex_lock(&answerer.lock);
	}
	there = answerer.phase == RUNNING || answerer.phase == ENDED;
	if (there)
		phase_set(ENDING);
	pthread_mutex_unlock(&answerer.lock);
	return there;
}

void answerer_stop(void)
{
	if (!end_begin())
		return;
	ring();
	pthread_join(answerer.id, NULL);
	pthread_mutex_lock(&answerer.lock);
	phase_set(NONE);
	pthread_mutex_unlock(&answerer.lock);
}

void answerer_resume(void)
{
	pthread_mutex_lock(&answerer.lock);
	answerer.held--;
	pthread_mutex_unlock(&answerer.lock);
	answerer_look();
}

void answerer_before_fork(void)
{
	pthread_mutex_lock(&answerer.lock);
}

void answerer_after_fork(bool child)
{
	fork_gen_lock_drop(&answerer.lock, child);
	if (!child)
		return;
	answer_close(&answer);
	internal_close(answerer.wakeup);
	answerer.wakeup = -1;
	phase_set(NONE);
	answerer.held = 0;
}

void answerer_forked(void)
{
	__atomic_store_n(&intr_sleep_first, answerer_look, __ATOMIC_RELEASE);
}
