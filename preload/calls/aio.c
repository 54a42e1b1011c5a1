/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * POSIX asynchronous I/O on streams.
 *
 * libc's threads would read and write the frames, unseen by us. So requests on a descriptor of
 * ours are ours: those of one descriptor are done in order by a thread, which lives as long as
 * it has some. A request is over when its __error_code says so, where libc's aio_error() and
 * aio_return() look for it. Requests on other descriptors are libc's, and a list may have both:
 * who waits for a list is woken by ours, and looks for libc's from time to time.
 */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/list.h"
#include "base/map.h"
#include "preload/calls/fork.h"
#include "preload/guard/call.h"
#include "preload/guard/intr_sleep.h"
#include "preload/guard/thread.h"
#include "preload/table/fork_gen.h"
#include "preload/table/pool.h"
#include "preload/table/user_iov.h"
#include "preload/wait/sock_io.h"
#include "preload/wait/wait.h"

#define STACK (256 * 1024u)
#define PRIORITY_MAX 20
/* Nobody tells us of the end of a request of libc's */
#define LIBC_DONE_POLL (5 * BASE_NS_PER_MS)

struct job {
	struct base_list node; /* of its queue */
	struct aiocb *cb;
};

/* A descriptor with requests, and the thread that does them */
struct queue {
	struct base_list node;
	struct base_list jobs; /* the first is under way */
	int fd;
};

struct sleeper {
	struct base_list node;
	int wakeup;
};

static struct {
	pthread_mutex_t lock;
	struct base_list queues;
	struct base_list sleepers;
} aio = { PTHREAD_MUTEX_INITIALIZER, BASE_LIST_INIT(aio.queues), BASE_LIST_INIT(aio.sleepers) };

static struct pool jobs = POOL_INIT(struct job, node, 16);
static struct pool queues = POOL_INIT(struct queue, node, 4);

static bool in_progress(const struct aiocb *cb)
{
	return __atomic_load_n(&cb->__error_code, __ATOMIC_ACQUIRE) == EINPROGRESS;
}

/* --- the end of a request --- */

static void signal_send(const struct sigevent *event)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = event->sigev_signo;
	info.si_code = SI_ASYNCIO;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value = event->sigev_value;
	syscall(SYS_rt_sigqueueinfo, info.si_pid, info.si_signo, &info);
}

/* @mask: the signals that it blocks. Ours all of them, the program's none */
static int thread_create(void *(*fn)(void *arg), void *arg, const sigset_t *mask, size_t stack)
{
	pthread_attr_t attr;
	sigset_t before;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (stack)
		thread_stack_set(&attr, stack);
	pthread_sigmask(SIG_SETMASK, mask, &before);
	err = pthread_create(&thread, &attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

struct notice {
	void (*fn)(union sigval value);
	union sigval value;
};

static struct pool notices = POOL_INIT(struct notice, value, 4);

static void *notice_run(void *arg)
{
	struct notice notice = *(struct notice *)arg;

	pool_put(&notices, arg);
	notice.fn(notice.value);
	return NULL;
}

static void notify(const struct sigevent *event)
{
	struct notice *notice;
	sigset_t none;

	if (event->sigev_notify == SIGEV_SIGNAL)
		signal_send(event);
	if (event->sigev_notify != SIGEV_THREAD)
		return;
	notice = pool_get(&notices);
	if (!notice)
		return;
	*notice = (struct notice){ event->sigev_notify_function, event->sigev_value };
	sigemptyset(&none);
	if (thread_create(notice_run, notice, &none, 0))
		pool_put(&notices, notice);
}

/*
 * Under the lock, with which it leaves its queue: who does not find it there finds its error. Then
 * the program may take it back. What is to be told, without the lock.
 */
static struct sigevent request_end(struct job *job, long result)
{
	struct aiocb *cb = job->cb;
	struct sigevent event = cb->aio_sigevent;
	struct base_list *node, *next;

	base_list_remove(&job->node);
	pool_put(&jobs, job);
	cb->__return_value = result < 0 ? -1 : result;
	__atomic_store_n(&cb->__error_code, result < 0 ? (int)-result : 0, __ATOMIC_RELEASE);
	base_list_foreach(node, next, &aio.sleepers)
		base_eventfd_notify(base_list_entry(node, struct sleeper, node)->wakeup);
	return event;
}

/* --- the thread --- */

static long request_do(const struct aiocb *cb)
{
	struct iovec iov = { (void *)cb->aio_buf, cb->aio_nbytes };
	bool reads = cb->aio_lio_opcode == LIO_READ;
	long r;

	if (reads)
		r = sock_recv_fd(cb->aio_fildes, &iov, 1, SOCK_IO_FILE);
	else
		r = sock_send_fd(cb->aio_fildes, &iov, 1, MSG_NOSIGNAL);
	if (r == CALL_THEIRS)
		r = libc_try(syscall(reads ? SYS_read : SYS_write, cb->aio_fildes, iov.iov_base,
				     iov.iov_len));
	return r;
}

/* Under the lock: the next request, or NULL and the queue is gone */
static struct job *queue_first(struct queue *q)
{
	if (!base_list_empty(&q->jobs))
		return base_list_entry(q->jobs.next, struct job, node);
	base_list_remove(&q->node);
	pool_put(&queues, q);
	return NULL;
}

static void *worker(void *arg)
{
	struct queue *q = arg;
	struct sigevent event;
	struct job *job;
	long result;

	call_enter(false); /* for good, as the worker thread (preload/sock/worker.c) */
	pthread_mutex_lock(&aio.lock);
	while ((job = queue_first(q))) {
		pthread_mutex_unlock(&aio.lock);
		result = request_do(job->cb);
		pthread_mutex_lock(&aio.lock);
		event = request_end(job, result);
		pthread_mutex_unlock(&aio.lock);
		notify(&event);
		pthread_mutex_lock(&aio.lock);
	}
	pthread_mutex_unlock(&aio.lock);
	return NULL;
}

/* Under the lock */
static struct queue *queue_find(int fd)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &aio.queues) {
		struct queue *q = base_list_entry(node, struct queue, node);

		if (q->fd == fd)
			return q;
	}
	return NULL;
}

/* Under the lock; without a request yet */
static int queue_create(int fd, struct queue **out)
{
	struct queue *q = pool_get(&queues);
	sigset_t all;
	int err;

	if (!q)
		return -EAGAIN;
	q->fd = fd;
	base_list_init(&q->jobs);
	base_list_push_back(&aio.queues, &q->node);
	sigfillset(&all);
	err = thread_create(worker, q, &all, STACK);
	if (err) {
		base_list_remove(&q->node);
		pool_put(&queues, q);
		return -EAGAIN;
	}
	*out = q;
	return 0;
}

/* --- requests --- */

/* A request that libc's threads must not get */
static bool is_ours(const struct aiocb *cb)
{
	struct sock *s;

	if (user_iov_wild(cb, sizeof(*cb)) || !fdtab_is_ours(cb->aio_fildes))
		return false;
	s = sock_get_stream(cb->aio_fildes);
	sock_put(s);
	return s;
}

/* Under the lock */
static int request_queue(struct aiocb *cb)
{
	struct queue *q = queue_find(cb->aio_fildes);
	struct job *job = pool_get(&jobs);
	int err = job ? 0 : -EAGAIN;

	if (!err && !q)
		err = queue_create(cb->aio_fildes, &q);
	if (err) {
		if (job)
			pool_put(&jobs, job);
		return err;
	}
	job->cb = cb;
	base_list_push_back(&q->jobs, &job->node);
	return 0;
}

static long request(struct aiocb *cb, int opcode)
{
	int err = 0;

	if (cb->aio_reqprio < 0 || cb->aio_reqprio > PRIORITY_MAX)
		err = -EINVAL;
	cb->aio_lio_opcode = opcode;
	cb->__return_value = err ? -1 : 0;
	__atomic_store_n(&cb->__error_code, err ? -err : EINPROGRESS, __ATOMIC_RELEASE);
	if (err)
		return err;
	pthread_mutex_lock(&aio.lock);
	err = request_queue(cb);
	pthread_mutex_unlock(&aio.lock);
	if (err)
		__atomic_store_n(&cb->__error_code, -err, __ATOMIC_RELEASE);
	return err;
}

long call_aio_read(struct aiocb *cb)
{
	return is_ours(cb) ? request(cb, LIO_READ) : CALL_THEIRS;
}

long call_aio_read64(struct aiocb *cb)
{
	return call_aio_read(cb);
}

long call_aio_write(struct aiocb *cb)
{
	return is_ours(cb) ? request(cb, LIO_WRITE) : CALL_THEIRS;
}

long call_aio_write64(struct aiocb *cb)
{
	return call_aio_write(cb);
}

/* --- waiting --- */

struct wanted {
	const struct aiocb *const *list;
	int n;
	bool all;
};

/* Is it as it is waited for: all over, or one of them? */
static bool wanted_is_there(const struct wanted *w)
{
	int asked = 0, over = 0;

	for (int i = 0; i < w->n; i++) {
		if (!w->list[i])
			continue;
		asked++;
		over += !in_progress(w->list[i]);
	}
	return w->all || !asked ? over == asked : over > 0;
}

static void sleeper_begin(struct sleeper *s)
{
	pthread_mutex_lock(&aio.lock);
	base_list_push_back(&aio.sleepers, &s->node);
	pthread_mutex_unlock(&aio.lock);
}

static void sleeper_end(struct sleeper *s)
{
	pthread_mutex_lock(&aio.lock);
	base_list_remove(&s->node);
	pthread_mutex_unlock(&aio.lock);
}

static int wanted_sleep(const struct wanted *w, int wakeup, uint64_t deadline)
{
	int err = 0;

	while (!wanted_is_there(w)) {
		struct pollfd p = { wakeup, POLLIN, 0 };
		uint64_t again = base_deadline(base_now(), LIBC_DONE_POLL);

		if (base_deadline_passed(deadline, base_now()))
			return -EAGAIN;
		err = intr_sleep(&p, 1, base_min(deadline, again), NULL, NULL);
		if (err < 0)
			return err;
		if (err)
			base_eventfd_drain(wakeup);
	}
	return 0;
}

/* 0, -EAGAIN, -EINTR */
static int wanted_wait(const struct wanted *w, uint64_t deadline)
{
	struct sleeper sleeper;
	struct wait_wakeup wakeup;
	int err;

	wait_wakeup_get(&wakeup);
	sleeper.wakeup = wakeup.fd;
	sleeper_begin(&sleeper);
	err = wanted_sleep(w, wakeup.fd, deadline);
	sleeper_end(&sleeper);
	wait_wakeup_put(&wakeup);
	return err;
}

static bool any_ours(const struct aiocb *const *list, int n)
{
	if (n <= 0 || user_iov_wild(list, (size_t)n * sizeof(*list)))
		return false;
	for (int i = 0; i < n; i++)
		if (list[i] && is_ours(list[i]))
			return true;
	return false;
}

long call_aio_suspend(const struct aiocb *const *list, int n, const struct timespec *timeout)
{
	struct wanted w = { list, n, false };
	uint64_t deadline = BASE_NEVER;

	if (!any_ours(list, n))
		return CALL_THEIRS;
	if (timeout)
		deadline = base_deadline(base_now(), (uint64_t)timeout->tv_sec * BASE_NS_PER_S +
							     (uint64_t)timeout->tv_nsec);
	return wanted_wait(&w, deadline);
}

long call_aio_suspend64(const struct aiocb *const *list, int n, const struct timespec *timeout)
{
	return call_aio_suspend(list, n, timeout);
}

/* --- lists --- */

static long list_submit(struct aiocb *cb)
{
	if (cb->aio_lio_opcode == LIO_NOP)
		return 0;
	if (cb->aio_lio_opcode != LIO_READ && cb->aio_lio_opcode != LIO_WRITE)
		return -EINVAL;
	if (is_ours(cb))
		return request(cb, cb->aio_lio_opcode);
	return libc_try(cb->aio_lio_opcode == LIO_READ ? libc.aio_read64(cb)
						       : libc.aio_write64(cb));
}

/* The requests of a list, as long as it takes them to end */
struct batch {
	struct wanted wanted;
	struct sigevent event;
	size_t size;
	struct aiocb *list[];
};

static void *batch_run(void *arg)
{
	struct batch *b = arg;
	struct sigevent event = b->event;

	while (wanted_wait(&b->wanted, BASE_NEVER) < 0)
		;
	base_map_destroy(b, b->size);
	notify(&event);
	return NULL;
}

/* The end of a list that nobody waits for is told by a thread that does */
static long batch_start(struct aiocb *const *list, int n, const struct sigevent *event)
{
	size_t size = sizeof(struct batch) + (size_t)n * sizeof(*list);
	struct batch *b;
	sigset_t all;
	int err = base_map_create(size, (void **)&b);

	if (err)
		return -EAGAIN;
	b->wanted = (struct wanted){ (const struct aiocb *const *)b->list, n, true };
	b->event = *event;
	b->size = size;
	memcpy(b->list, list, (size_t)n * sizeof(*list));
	sigfillset(&all);
	err = thread_create(batch_run, b, &all, STACK);
	if (err)
		base_map_destroy(b, size);
	return err ? -EAGAIN : 0;
}

static bool any_failed(struct aiocb *const *list, int n)
{
	for (int i = 0; i < n; i++)
		if (list[i] && list[i]->aio_lio_opcode != LIO_NOP && list[i]->__error_code)
			return true;
	return false;
}

long call_lio_listio(int mode, struct aiocb *const *list, int n, struct sigevent *event)
{
	struct wanted w = { (const struct aiocb *const *)list, n, true };
	bool failed = false;
	long err = 0;

	if ((mode != LIO_WAIT && mode != LIO_NOWAIT) || !any_ours(w.list, n))
		return CALL_THEIRS;
	for (int i = 0; i < n; i++)
		failed |= list[i] && list_submit(list[i]);
	if (mode == LIO_WAIT)
		err = wanted_wait(&w, BASE_NEVER);
	else if (event && event->sigev_notify != SIGEV_NONE)
		err = batch_start(list, n, event);
	if (err)
		return err;
	return failed || (mode == LIO_WAIT && any_failed(list, n)) ? -EIO : 0;
}

long call_lio_listio64(int mode, struct aiocb *const *list, int n, struct sigevent *event)
{
	return call_lio_listio(mode, list, n, event);
}

/* --- cancelling --- */

/* Under the lock: one request that has not begun, of @cb or any; NULL */
static struct job *waiting_find(struct queue *q, const struct aiocb *cb)
{
	struct base_list *node, *next;
	struct job *found = NULL;
	bool first = true;

	base_list_foreach(node, next, &q->jobs) {
		struct job *job = base_list_entry(node, struct job, node);

		if (!found && !first && (!cb || cb == job->cb))
			found = job;
		first = false;
	}
	return found;
}

/* Under the lock: is it, or any, under way? */
static bool is_begun(struct queue *q, const struct aiocb *cb)
{
	if (base_list_empty(&q->jobs))
		return false;
	return !cb || base_list_entry(q->jobs.next, struct job, node)->cb == cb;
}

static long cancel(int fd, const struct aiocb *cb)
{
	long answer = AIO_ALLDONE;
	struct sigevent event;
	struct job *taken;
	struct queue *q;

	do {
		pthread_mutex_lock(&aio.lock);
		q = queue_find(fd);
		taken = q ? waiting_find(q, cb) : NULL;
		if (taken) {
			answer = AIO_CANCELED;
			event = request_end(taken, -ECANCELED);
		} else if (q && is_begun(q, cb)) {
			answer = AIO_NOTCANCELED;
		}
		pthread_mutex_unlock(&aio.lock);
		if (taken)
			notify(&event);
	} while (taken && !cb);
	return answer;
}

long call_aio_cancel(int fd, struct aiocb *cb)
{
	if (cb && cb->aio_fildes != fd)
		return CALL_THEIRS; /* EINVAL, or a descriptor that is none */
	return cancel(fd, cb);
}

long call_aio_cancel64(int fd, struct aiocb *cb)
{
	return call_aio_cancel(fd, cb);
}

/* --- processes --- */

void aio_before_fork(void)
{
	pthread_mutex_lock(&aio.lock);
}

/* The child has no threads, and no requests */
void aio_after_fork(bool child)
{
	if (child) {
		base_list_init(&aio.queues);
		base_list_init(&aio.sleepers);
	}
	fork_gen_lock_drop(&aio.lock, child);
}
