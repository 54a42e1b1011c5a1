/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * New processes with this one's memory.
 *
 * fork(): the child shares its parent's streams. Their state is in memory that both map, and
 * counts its processes; the one that closes last writes DISCONNECT. No lock of ours may be held
 * by a thread that the child does not have, so all are taken before, in their order. What libc
 * forks by itself (daemon) comes here too, by libc's handlers of fork(). From then on the two wake
 * each other (preload/sock/others.c).
 *
 * A child that nobody announced is found out later (preload/table/fork_gen.c), and made one here.
 */
#include "preload/calls/fork.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"
#include "base/point.h"
#include "base/process.h"
#include "preload/calls/files.h"
#include "preload/device/device.h"
#include "preload/guard/call.h"
#include "preload/guard/exiting.h"
#include "preload/rules/answerer.h"
#include "preload/rules/report.h"
#include "preload/sock/fallback.h"
#include "preload/sock/number.h"
#include "preload/sock/others.h"
#include "preload/sock/sock.h"
#include "preload/sock/wakeup.h"
#include "preload/sock/worker.h"
#include "preload/table/fork_gen.h"
#include "preload/table/libc.h"
#include "preload/table/pool.h"
#include "preload/table/tmp_cloexec.h"
#include "preload/wait/epoll.h"
#include "preload/wait/wait.h"

/* Entries with a reference to each */
struct held {
	struct fdent **ent;
	size_t n, room;
};

/* What is locked while a process is made. Under fallback's lock, which is held then */
static struct held held;
static unsigned int round; /* of holding */

/*
 * A fork() of the program's own comes back to us: what it shared is kept until then, since only the
 * call's result tells whether there is a child.
 */
static __thread bool returns;
static __thread struct held shared, room;
static __thread uint32_t born; /* its pid */

/* --- streams --- */

static void each(const struct held *h, void (*fn)(struct fdent *ent))
{
	for (size_t i = 0; i < h->n; i++)
		fn(h->ent[i]);
}

static void each_held(void (*fn)(struct fdent *ent))
{
	each(&held, fn);
}

static void share(struct fdent *ent)
{
	struct stream *stream = sock_stream_of_entry(ent);

	if (stream)
		stream_share(stream, STREAM_SHARE_FORK);
}

static void unshare_stream(struct fdent *ent)
{
	struct stream *stream = sock_stream_of_entry(ent);

	if (stream)
		stream_unshare(stream, STREAM_SHARE_FORK);
}

/* A child that was killed before it could say so itself counts no more, then */
static void name_child(struct fdent *ent)
{
	struct stream *stream = sock_stream_of_entry(ent);

	if (stream)
		stream_named(stream, born);
}

static void join(struct fdent *ent)
{
	struct stream *stream = sock_stream_of_entry(ent);

	if (stream)
		stream_joined(stream);
}

/* --- every socket --- */

static void count_one(int fd, struct fdent *ent, void *ctx)
{
	++*(size_t *)ctx;
}

/* Each once, however many numbers it has */
static void hold_one(int fd, struct fdent *ent, void *ctx)
{
	if (!sock_of_entry(ent) || held.n == held.room || ent->round == round)
		return;
	ent->round = round;
	fdtab_hold(ent);
	held.ent[held.n++] = ent;
}

/* What other threads open meanwhile needs room as well */
#define ROOM_MORE 256

static int room_make(struct held *h)
{
	size_t n = 0;
	int err;

	fdtab_each(count_one, &n);
	if (!n)
		return 0;
	err = base_map_create((n + ROOM_MORE) * sizeof(struct fdent *), (void **)&h->ent);
	if (!err)
		h->room = n + ROOM_MORE;
	return err;
}

/* fork() has made room before, since it can still say that there is no memory */
static void hold_all(void)
{
	held = room;
	room = (struct held){ NULL, 0, 0 };
	round++;
	if (held.room || !room_make(&held))
		fdtab_each(hold_one, NULL);
}

static void let_go(struct held *h)
{
	each(h, fdtab_put);
	base_map_destroy(h->ent, h->room * sizeof(struct fdent *));
	*h = (struct held){ NULL, 0, 0 };
}

static void lock(struct fdent *ent)
{
	pthread_mutex_lock(&sock_of_entry(ent)->lock);
}

static void unlock(struct fdent *ent)
{
	pthread_mutex_unlock(&sock_of_entry(ent)->lock);
}

static void lock_again(struct fdent *ent)
{
	fork_gen_lock_drop(&sock_of_entry(ent)->lock, true);
}

/* --- fork() --- */

static void before(void)
{
	device_before_fork();
	aio_before_fork();
	spawn_before_fork();
	fallback_before_fork();
	number_before_fork();
	epoll_before_fork();
	worker_before_fork();
	answerer_before_fork();
	hold_all();
	each_held(lock);
	wait_before_fork();
	wakeup_before_fork();
	each_held(share);
	BASE_POINT(preload_fork_shared);
	files_before_fork();
	call_before_fork();
	tmp_cloexec_before_fork();
	pool_before_fork();
	stream_before_fork();
}

/* Two processes have it now: threads that sleep on it must hear of that */
static void come(struct fdent *ent)
{
	if (sock_stream_of_entry(ent))
		others_come(sock_of_entry(ent));
}

static void after(bool child)
{
	struct held mine = held;

	held = (struct held){ NULL, 0, 0 };
	stream_after_fork(child);
	pool_after_fork(child);
	tmp_cloexec_after_fork(child);
	call_after_fork(child);
	files_after_fork(child);
	wakeup_after_fork(child);
	wait_after_fork(child);
	each(&mine, child ? lock_again : unlock);
	answerer_after_fork(child);
	worker_after_fork(child);
	epoll_after_fork(child);
	number_after_fork(child);
	sock_after_fork();
	fallback_after_fork();
	spawn_after_fork(child);
	aio_after_fork(child);
	device_after_fork(child);
	if (child)
		others_after_fork();
	each(&mine, come);
	if (returns && !child)
		shared = mine;
	else
		let_go(&mine);
}

static void after_in_parent(void)
{
	after(false);
}

static void forget_sleepers(struct fdent *ent)
{
	sock_forget_sleepers(sock_of_entry(ent));
}

static void come_to_life(void)
{
	BASE_POINT(preload_fork_born);
	fork_gen++;
	exiting_after_fork();
	report_reset();
	each_held(forget_sleepers);
	each_held(join);
	BASE_POINT(preload_fork_child);
	after(true);
}

/* @bare: libc has not made its own locks new */
static void after_in_child(bool bare)
{
	fork_gen_born();
	fork_gen_bare = bare;
	come_to_life();
}

/* libc's own fork(), whoever calls it */
static void before_libc(void)
{
	files_list_lock();
	before();
}

static void after_libc(void)
{
	after_in_parent();
	files_list_unlock();
}

static void after_libc_in_child(void)
{
	after_in_child(false);
	answerer_forked();
}

/* fork() came back: to the parent with a child, or without */
static long returned(long pid)
{
	returns = false;
	born = (uint32_t)pid;
	/* Elsewhere it has another number, and gives itself that */
	if (pid < 0 || (pid && shared.n && !base_process_is_elsewhere(born)))
		each(&shared, pid < 0 ? unshare_stream : name_child);
	let_go(&shared);
	let_go(&room); /* unless it was used */
	return pid;
}

long call_fork(void)
{
	if (room_make(&room))
		return -ENOMEM;
	returns = true;
	return returned(libc_try(libc.fork()));
}

long fork_by(long (*make)(void *ctx), void *ctx)
{
	long pid;

	if (!fork_gen_is_known())
		return make(ctx);
	if (room_make(&room))
		return -ENOMEM;
	returns = true;
	before();
	pid = make(ctx);
	if (!pid)
		after_in_child(true);
	else
		after_in_parent();
	return returned(pid);
}

void fork_child(void)
{
	after_in_child(true);
	returned(0);
}

static long make_alike(void *ctx)
{
	return libc_try(libc._Fork());
}

/* The same without handlers */
long call__Fork(void)
{
	return fork_by(make_alike, NULL);
}

/* --- processes that nobody announced --- */

/* Nothing was locked for this child: it takes what it finds */
static void adopt(void)
{
	base_debug("this process was forked behind our back");
	fork_gen_bare = true;
	hold_all();
	each_held(share);
	come_to_life();
}

/*
 * pthread_atfork() of no library: libc forgets a library's own before the destructors of others,
 * which may fork, and before the process's end is ours (preload/calls/exit.c)
 */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
		      void *library);

void fork_init(void)
{
	fork_gen_init(adopt);
	__register_atfork(before_libc, after_libc, after_libc_in_child, NULL);
}
