/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes of many TCP sockets by one system call.
 *
 * Invariant: nothing is under way in a ring when llp_uring_receive() returns. Every request is a
 * receive that does not wait (MSG_DONTWAIT), so the kernel completes it while it takes it in. So no
 * request outlives a connection, its descriptor or its memory, no byte is held by a ring that its
 * connection has not got, and no completion ever waits for the thread that made the request: any
 * thread may use a ring, one after the other.
 *
 * That is also why no multishot receive stays armed here, though the kernel has it. The kernel
 * completes one in the thread that armed it, and interrupts the sleep of that thread: an
 * epoll_wait() of the program's returns EINTR, without any signal. A ring that does not interrupt
 * (IORING_SETUP_DEFER_TASKRUN) completes nothing before the same thread enters the kernel by it,
 * and that thread may never poll again.
 *
 * Bytes leave as over TCP (llp/tcp.c): who posts a message may never call again, so it cannot wait
 * for others.
 *
 * liburing is not linked with but loaded, as libwarp and the interposer come into every program.
 */
#include "llp/uring.h"

#include <dlfcn.h>
#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bits.h"
#include "base/fdutil.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/process.h"

#define LIBRARY "liburing.so.2"

struct llp_uring {
	struct io_uring ring;
	uint32_t owner;
	bool broken; /* it does not receive any more: a filter forbids it, its number was closed */
};

static struct {
	__typeof__(io_uring_queue_init) *queue_init;
	__typeof__(io_uring_queue_exit) *queue_exit;
	__typeof__(io_uring_submit_and_wait) *submit_and_wait;
} calls;

/* --- the library --- */

static int call_find(void *library, const char *name, void *out)
{
	void *found = dlsym(library, name);

	if (!found) {
		base_warn("io_uring: %s", dlerror());
		return -ENOPKG;
	}
	/* POSIX gives pointers to functions this form, C does not */
	memcpy(out, &found, sizeof(found));
	return 0;
}

static int library_load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	int err;

	if (!library) {
		base_warn("io_uring: %s", dlerror());
		return -ENOPKG;
	}
	err = call_find(library, "io_uring_queue_init", &calls.queue_init);
	if (!err)
		err = call_find(library, "io_uring_queue_exit", &calls.queue_exit);
	if (!err)
		err = call_find(library, "io_uring_submit_and_wait", &calls.submit_and_wait);
	return err;
}

/* Once, and for good */
static int library_get(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int loaded = -EAGAIN;
	int err;

	pthread_mutex_lock(&lock);
	if (loaded == -EAGAIN)
		loaded = library_load();
	err = loaded;
	pthread_mutex_unlock(&lock);
	return err;
}

/* --- a ring --- */

/* At a low number the interposer would take it for the program's */
static void ring_move(struct io_uring *ring)
{
	int high = base_fd_dup_high(ring->ring_fd);

	if (high < 0)
		return;
	base_fd_close(ring->ring_fd);
	ring->ring_fd = ring->enter_ring_fd = high;
}

int llp_uring_create(struct llp_uring **out)
{
	struct llp_uring *u;
	int err = library_get();

	if (err)
		return err;
	u = base_heap_array(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	err = calls.queue_init(LLP_URING_BATCH, &u->ring, 0);
	if (err) {
		base_warn("io_uring: the kernel gives no ring: %s", strerror(-err));
		free(u);
		return err;
	}
	/* liburing before 2.3 leaves that to 0, by which the inline functions of this one go */
	if (!u->ring.sq.ring_entries) {
		base_warn("io_uring: %s is too old", LIBRARY);
		llp_uring_destroy(u);
		return -ENOPKG;
	}
	ring_move(&u->ring);
	u->owner = base_process_self().pid;
	*out = u;
	return 0;
}

void llp_uring_destroy(struct llp_uring *u)
{
	if (!u)
		return;
	calls.queue_exit(&u->ring);
	free(u);
}

/* --- a connection --- */

static ssize_t conn_recv(struct llp *l, const struct iovec *iov, unsigned int n)
{
	struct llp_uring_conn *c = base_container_of(l, struct llp_uring_conn, llp);

	if (c->there)
		l->empty = false;
	else
		c->got = c->tcp->recv(l, iov, n);
	c->there = false;
	return c->got;
}

void llp_uring_conn_init(struct llp_uring_conn *c, int fd)
{
	llp_tcp_init(&c->llp, fd);
	c->tcp = c->llp.ops;
	c->ops = *c->tcp;
	c->ops.name = "uring";
	c->ops.recv = conn_recv;
	c->llp.ops = &c->ops;
	c->there = false;
}

/* --- receiving --- */

static void request(struct llp_uring *u, const struct llp_uring_want *w, __u64 index)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	io_uring_prep_recv(sqe, w->conn->llp.fd, w->iov.iov_base, w->iov.iov_len, MSG_DONTWAIT);
	io_uring_sqe_set_data64(sqe, index);
}

/* False: not all of the @n requests have been taken. Those that were are complete all the same */
static bool submit(struct llp_uring *u, unsigned int n)
{
	while (io_uring_cq_ready(&u->ring) < n) {
		int taken = calls.submit_and_wait(&u->ring, n);

		if (taken < 0 && taken != -EINTR)
			return false;
	}
	return true;
}

/* One that was interrupted is made again by recv() */
static void complete(struct llp_uring_conn *c, int result)
{
	c->there = result != -EINTR;
	c->got = result;
}

void llp_uring_receive(struct llp_uring *u, const struct llp_uring_want *w, unsigned int n)
{
	struct io_uring_cqe *cqe;
	unsigned int head, done = 0;

	if (u->broken || u->owner != base_process_self().pid)
		return;
	for (unsigned int i = 0; i < n; i++)
		request(u, &w[i], i);
	u->broken = !submit(u, n);
	if (u->broken)
		base_warn("io_uring: the ring is not to be used any more");
	io_uring_for_each_cqe(&u->ring, head, cqe)
	{
		complete(w[cqe->user_data].conn, cqe->res);
		done++;
	}
	io_uring_cq_advance(&u->ring, done);
}
