/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose turn it is.
 *
 * A request is answered by the thread that heard it if its program ends within its first turn and
 * its client has not used the processor much lately; nearly all do. What takes longer goes on in
 * the pool's workers, turn by turn: the sessions in a circle, and within a session its tasks. So a
 * client that ships endless loops has one turn of the others' waiting time, whatever it sends. The
 * workers have a lower priority than other threads of the host.
 *
 * Invariants, under pool.lock: a session is in the list `ready` just when one of its tasks can have
 * a turn; a task that has begun has the memory of an answer; session.busy counts the tasks that are
 * not IDLE, and a session is not destroyed before it is 0.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "active/pool.h"
#include "active/session.h"
#include "base/bits.h"
#include "base/clock.h"

enum {
	FIRST_TURN = 20000, /* instructions: some ten microseconds */
	TURN = 200000,
	NICE = 10,
	LIGHT_NS = 2000000, /* a client that took less than that lately */
	FORGET = 4,	    /* a quarter of the time that passes is taken off */
};

/* --- sessions and their tasks, under pool.lock -------------------------------------------- */

static struct active_pool *pool_of(const struct active_session *s)
{
	return &s->server->pool;
}

static bool can_turn(const struct active_session *s)
{
	return !base_list_empty(&s->begun) || (!base_list_empty(&s->waiting) && s->answers_free);
}

static void ready_update(struct active_session *s)
{
	struct active_pool *pool = pool_of(s);
	bool listed = !base_list_empty(&s->ready), can = can_turn(s);

	if (can && !listed) {
		base_list_push_back(&pool->ready, &s->ready);
		if (pool->idle)
			pthread_cond_signal(&pool->work);
	} else if (!can && listed) {
		base_list_remove(&s->ready);
	}
}

static void debt_add(struct active_session *s, uint64_t now, uint64_t took)
{
	uint64_t gone = (now - s->debt_at) / FORGET;

	s->debt = took + (s->debt > gone ? s->debt - gone : 0);
	s->debt_at = now;
}

/* It has all that a task needs to begin */
static void task_begin(struct active_session *s, struct active_task *task)
{
	task->answer = s->answer_free[--s->answers_free];
	task->state = ACTIVE_TASK_RUNNING;
	s->turns++;
}

static void waiting_remove(struct active_task *task)
{
	base_list_remove(&task->link);
	base_list_remove(&task->waiting);
	pool_of(task->session)->waiting--;
}

/* New ones before those that had a turn: they may be short */
static struct active_task *task_next(struct active_session *s)
{
	struct active_task *task;

	if (!base_list_empty(&s->waiting) && s->answers_free) {
		task = base_list_entry(s->waiting.next, struct active_task, link);
		waiting_remove(task);
		task_begin(s, task);
		return task;
	}
	task = base_list_entry(base_list_pop_front(&s->begun), struct active_task, link);
	task->state = ACTIVE_TASK_RUNNING;
	s->turns++;
	return task;
}

/* --- turns, without the lock -------------------------------------------------------------- */

/*
 * The task is over: its client gets the answer, and its memory is there for the next. The answer
 * goes first, for somebody waits for it.
 */
static void task_finish(struct active_task *task, const struct active_message *m, uint64_t start)
{
	struct active_session *s = task->session;
	struct active_pool *pool = pool_of(s);
	unsigned int memory = (unsigned int)task->answer;
	bool load = m->type == ACTIVE_LOADED, free_again = true;
	uint64_t end;

	/* Counted before that: who has the answer sees it counted */
	load ? active_count(s->server, loads, 1) : active_count(s->server, runs, 1);
	if (load)
		active_answer_send(s, m);
	else
		free_again = active_answer_send_output(s, m, memory);
	active_run_end(task);
	end = base_now();
	pthread_mutex_lock(&pool->lock);
	debt_add(s, end, end - start);
	s->turns--;
	task->state = ACTIVE_TASK_IDLE;
	pthread_mutex_unlock(&pool->lock);
	active_answer_receive(s, task);
	pthread_mutex_lock(&pool->lock);
	if (free_again)
		s->answer_free[s->answers_free++] = (uint8_t)memory;
	s->busy--;
	ready_update(s);
	pthread_mutex_unlock(&pool->lock);
}

/* Not over yet: it waits for its next turn */
static void task_pause(struct active_task *task, uint64_t start)
{
	struct active_session *s = task->session;
	struct active_pool *pool = pool_of(s);
	uint64_t end = base_now();

	pthread_mutex_lock(&pool->lock);
	debt_add(s, end, end - start);
	s->turns--;
	task->state = ACTIVE_TASK_READY;
	base_list_push_back(&s->begun, &task->link);
	ready_update(s);
	pthread_mutex_unlock(&pool->lock);
}

static void task_turn(struct active_task *task, uint64_t fuel, uint64_t start)
{
	char text[ACTIVE_WIRE_TEXT_MAX + 1];
	struct active_message m;
	bool over = false;

	task->call.brief = fuel == FIRST_TURN;
	if (task->fresh) {
		task->fresh = false;
		over = active_run_begin(task, &m, text);
	}
	if (over || active_run_turn(task, fuel, &m, text))
		task_finish(task, &m, start);
	else
		task_pause(task, start);
}

/* An answer to what never began; the task is in no list any more */
static void task_refuse(struct active_task *task, enum active_code code, const char *text)
{
	struct active_session *s = task->session;
	struct active_pool *pool = pool_of(s);
	const struct active_message m = {
		.type = task->upload ? ACTIVE_LOADED : ACTIVE_RESULT,
		.id = task->m.id,
		.code = code,
		.text = { (const uint8_t *)text, strlen(text) },
	};

	active_run_end(task);
	pthread_mutex_lock(&pool->lock);
	task->state = ACTIVE_TASK_IDLE;
	pthread_mutex_unlock(&pool->lock);
	active_answer_receive(s, task);
	active_answer_send(s, &m);
	pthread_mutex_lock(&pool->lock);
	s->busy--;
	pthread_mutex_unlock(&pool->lock);
}

/* --- what the lane calls ------------------------------------------------------------------ */

static uint64_t due_of(const struct active_task *task, uint64_t now)
{
	uint64_t most = (uint64_t)task->session->server->attr.time_ms * BASE_NS_PER_MS;
	uint64_t asked = (uint64_t)task->m.deadline * 1000;

	return now + (asked ? base_min(asked, most) : most);
}

/* Under pool.lock: true if the lane is to run it at once */
static bool task_enter(struct active_task *task, bool alone, uint64_t now)
{
	struct active_session *s = task->session;
	struct active_pool *pool = pool_of(s);

	debt_add(s, now, 0);
	if (!task->upload && task->m.type != ACTIVE_INSTALL && s->answers_free &&
	    base_list_empty(&s->waiting) && (alone || s->debt < LIGHT_NS)) {
		task_begin(s, task);
		return true;
	}
	task->state = ACTIVE_TASK_WAITING;
	base_list_push_back(&s->waiting, &task->link);
	base_list_push_back(&pool->all_waiting, &task->waiting);
	pool->waiting++;
	pool->next_due = base_min(pool->next_due, task->due);
	ready_update(s);
	return false;
}

void active_pool_submit(struct active_task *task, bool alone, uint64_t now)
{
	struct active_session *s = task->session;
	struct active_pool *pool = pool_of(s);
	bool quick = false, full;

	task->cancelled = false;
	task->fresh = true;
	task->due = due_of(task, now);
	pthread_mutex_lock(&pool->lock);
	s->busy++;
	full = pool->waiting >= s->server->attr.queue;
	if (!full)
		quick = task_enter(task, alone, now);
	pthread_mutex_unlock(&pool->lock);
	if (full) {
		active_count(s->server, refused, 1);
		task_refuse(task, ACTIVE_BUSY, "the server's queue is full");
	} else if (quick) {
		task_turn(task, FIRST_TURN, now);
	}
}

void active_pool_cancel(struct active_session *s, uint64_t id)
{
	struct active_pool *pool = pool_of(s);
	struct active_task *refused = NULL;

	pthread_mutex_lock(&pool->lock);
	for (unsigned int i = 0; i < s->task_count; i++) {
		struct active_task *task = &s->tasks[i];

		if (task->state == ACTIVE_TASK_IDLE || task->m.id != id)
			continue;
		__atomic_store_n(&task->cancelled, true, __ATOMIC_RELAXED); /* active/run.c */
		if (task->state != ACTIVE_TASK_WAITING || refused)
			continue;
		waiting_remove(task);
		task->state = ACTIVE_TASK_RUNNING;
		refused = task;
	}
	ready_update(s);
	pthread_mutex_unlock(&pool->lock);
	if (refused)
		task_refuse(refused, ACTIVE_CANCELLED, "it was cancelled before it began");
}

void active_pool_answer_free(struct active_session *s, unsigned int memory)
{
	struct active_pool *pool = pool_of(s);

	pthread_mutex_lock(&pool->lock);
	s->answer_free[s->answers_free++] = (uint8_t)memory;
	ready_update(s);
	pthread_mutex_unlock(&pool->lock);
}

/* Under pool.lock: a task that waits, out of its lists */
static struct active_task *waiting_take(struct active_session *s)
{
	struct active_task *task;

	if (base_list_empty(&s->waiting))
		return NULL;
	task = base_list_entry(s->waiting.next, struct active_task, link);
	waiting_remove(task);
	task->state = ACTIVE_TASK_IDLE;
	s->busy--;
	return task;
}

bool active_pool_leave(struct active_session *s)
{
	struct active_pool *pool = pool_of(s);
	struct active_task *task;
	bool idle;

	pthread_mutex_lock(&pool->lock);
	while ((task = waiting_take(s))) {
		pthread_mutex_unlock(&pool->lock);
		active_run_end(task);
		pthread_mutex_lock(&pool->lock);
	}
	for (unsigned int i = 0; i < s->task_count; i++)
		__atomic_store_n(&s->tasks[i].cancelled, true, __ATOMIC_RELAXED);
	ready_update(s);
	idle = !s->busy;
	pthread_mutex_unlock(&pool->lock);
	return idle;
}

/* --- workers ------------------------------------------------------------------------------ */

/*
 * Under pool.lock: the first task that waited too long, out of its lists; or NULL, and next_due is
 * right again
 */
static struct active_task *late_take(struct active_pool *pool, uint64_t now)
{
	struct base_list *at, *next;

	pool->next_due = BASE_NEVER;
	base_list_foreach(at, next, &pool->all_waiting) {
		struct active_task *task = base_list_entry(at, struct active_task, waiting);

		if (task->due > now) {
			pool->next_due = base_min(pool->next_due, task->due);
			continue;
		}
		waiting_remove(task);
		task->state = ACTIVE_TASK_RUNNING;
		ready_update(task->session);
		pool->next_due = 0;
		return task;
	}
	return NULL;
}

static void work_wait(struct active_pool *pool)
{
	struct timespec until;

	pool->idle++;
	if (pool->next_due == BASE_NEVER) {
		pthread_cond_wait(&pool->work, &pool->lock);
	} else {
		until.tv_sec = (time_t)(pool->next_due / BASE_NS_PER_S);
		until.tv_nsec = (long)(pool->next_due % BASE_NS_PER_S);
		pthread_cond_timedwait(&pool->work, &pool->lock, &until);
	}
	pool->idle--;
}

/* Under pool.lock, which it gives up meanwhile */
static void work_once(struct active_pool *pool)
{
	struct active_task *late = NULL, *task = NULL;
	uint64_t now = base_now();
	struct active_session *s;

	if (pool->next_due <= now)
		late = late_take(pool, now);
	if (!late && base_list_empty(&pool->ready)) {
		work_wait(pool);
		return;
	}
	if (!late) {
		s = base_list_entry(base_list_pop_front(&pool->ready), struct active_session,
				    ready);
		task = task_next(s);
		ready_update(s);
	}
	pthread_mutex_unlock(&pool->lock);
	if (late)
		task_refuse(late, ACTIVE_FUEL, "the time was used up before it began");
	else
		task_turn(task, TURN, now);
	pthread_mutex_lock(&pool->lock);
}

static void *worker(void *arg)
{
	struct active_pool *pool = arg;

	/* Linux: of this thread alone. Without it they are as others, and no harm is done. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	pthread_mutex_lock(&pool->lock);
	while (!pool->stop)
		work_once(pool);
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

int active_pool_init(struct active_pool *pool)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&pool->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&pool->work, &attr);
	pthread_condattr_destroy(&attr);
	base_list_init(&pool->ready);
	base_list_init(&pool->all_waiting);
	pool->next_due = BASE_NEVER;
	return 0;
}

int active_pool_start(struct active_pool *pool, unsigned int workers)
{
	int ret = 0;

	while (!ret && pool->count < workers) {
		ret = -pthread_create(&pool->threads[pool->count], NULL, worker, pool);
		pool->count += !ret;
	}
	return ret;
}

void active_pool_uninit(struct active_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->stop = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	while (pool->count)
		pthread_join(pool->threads[--pool->count], NULL);
	while (pool->spares)
		ebpf_run_destroy(pool->spare[--pool->spares]);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->lock);
}
