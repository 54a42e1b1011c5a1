/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Octets through memory, for tests: two ends, a ring each way, and a place to tamper with what
 * passes.
 *
 * An end's descriptor is an eventfd that is readable exactly while its direction holds octets or
 * an end; it is set under the lock that guards the rings. There is no descriptor for room: a send
 * that got -EAGAIN is tried again after the other end has received.
 */
#include "tests/llp_mem.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/fdutil.h"

#define MEM_EMSS 1448

/* What one end has sent and the other not yet received */
struct mem_pipe {
	unsigned char *ring;
	size_t capacity, head, fill;
	unsigned long sent; /* since the beginning: the offset of the next octet */
	unsigned int waited;
	bool ended; /* orderly, behind the octets */
	struct llp_mem_tamper tamper;
};

struct mem_pair {
	pthread_mutex_t lock;
	struct mem_pipe pipe[2]; /* pipe[i] is written by end i */
	bool aborted;
};

struct llp_mem {
	struct llp llp;
	struct mem_pair *pair;
	int side;
	unsigned int emss;
};

static struct llp_mem *mem_of(const struct llp *l)
{
	return base_container_of(l, struct llp_mem, llp);
}

static struct mem_pipe *pipe_out(struct llp_mem *m)
{
	return &m->pair->pipe[m->side];
}

static struct mem_pipe *pipe_in(struct llp_mem *m)
{
	return &m->pair->pipe[!m->side];
}

static struct llp_mem *mem_peer(struct llp_mem *m);

static void ready_set(struct llp_mem *reader)
{
	const struct mem_pipe *p = pipe_in(reader);

	if (p->fill || p->ended || reader->pair->aborted)
		base_eventfd_notify(reader->llp.fd);
	else
		base_eventfd_drain(reader->llp.fd);
}

static void pipe_put(struct mem_pipe *p, const unsigned char *src, size_t n)
{
	for (size_t i = 0; i < n; i++, p->sent++) {
		unsigned char c = src[i];

		if (p->tamper.flip_mask && p->sent == p->tamper.flip_at)
			c ^= p->tamper.flip_mask;
		p->ring[(p->head + p->fill++) % p->capacity] = c;
	}
}

static void pipe_get(struct mem_pipe *p, unsigned char *dst, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		dst[i] = p->ring[p->head];
		p->head = (p->head + 1) % p->capacity;
	}
	p->fill -= n;
}

static ssize_t send_locked(struct llp_mem *m, const struct iovec *iov, unsigned int n)
{
	struct mem_pipe *p = pipe_out(m);
	size_t room = p->capacity - p->fill, taken = 0;

	if (m->pair->aborted)
		return -ECONNRESET;
	if (p->ended)
		return -EPIPE;
	if (p->tamper.take)
		room = base_min(room, p->tamper.take);
	for (unsigned int i = 0; i < n && room; i++) {
		size_t part = base_min(iov[i].iov_len, room);

		pipe_put(p, iov[i].iov_base, part);
		room -= part;
		taken += part;
	}
	ready_set(mem_peer(m));
	return taken ? (ssize_t)taken : -EAGAIN;
}

static ssize_t mem_send(struct llp *l, const struct iovec *iov, unsigned int n, unsigned int flags)
{
	struct llp_mem *m = mem_of(l);
	ssize_t sent;

	pthread_mutex_lock(&m->pair->lock);
	sent = send_locked(m, iov, n);
	pthread_mutex_unlock(&m->pair->lock);
	return sent;
}

static ssize_t recv_locked(struct llp_mem *m, const struct iovec *iov, unsigned int n)
{
	struct mem_pipe *p = pipe_in(m);
	size_t left = p->fill, got = 0;

	if (m->pair->aborted)
		return -ECONNRESET;
	if (!left)
		return p->ended ? 0 : -EAGAIN;
	if (p->waited++ < p->tamper.delay)
		return -EAGAIN;
	p->waited = 0;
	if (p->tamper.cut)
		left = base_min(left, p->tamper.cut);
	for (unsigned int i = 0; i < n && left; i++) {
		size_t part = base_min(iov[i].iov_len, left);

		pipe_get(p, iov[i].iov_base, part);
		left -= part;
		got += part;
	}
	ready_set(m);
	return (ssize_t)got;
}

static ssize_t mem_recv(struct llp *l, const struct iovec *iov, unsigned int n)
{
	struct llp_mem *m = mem_of(l);
	ssize_t got;

	pthread_mutex_lock(&m->pair->lock);
	got = recv_locked(m, iov, n);
	pthread_mutex_unlock(&m->pair->lock);
	return got;
}

static unsigned int mem_emss(const struct llp *l)
{
	return mem_of(l)->emss;
}

static int mem_shutdown(struct llp *l)
{
	struct llp_mem *m = mem_of(l);

	pthread_mutex_lock(&m->pair->lock);
	pipe_out(m)->ended = true;
	ready_set(mem_peer(m));
	pthread_mutex_unlock(&m->pair->lock);
	return 0;
}

static void mem_abort(struct llp *l)
{
	struct llp_mem *m = mem_of(l);

	pthread_mutex_lock(&m->pair->lock);
	m->pair->aborted = true;
	ready_set(m);
	ready_set(mem_peer(m));
	pthread_mutex_unlock(&m->pair->lock);
}

static const struct llp_ops mem_ops = {
	.name = "mem",
	.send = mem_send,
	.recv = mem_recv,
	.emss = mem_emss,
	.shutdown = mem_shutdown,
	.abort = mem_abort,
};

/* Both ends in one piece, so that each finds the other */
struct mem_ends {
	struct llp_mem end[2];
	struct mem_pair pair;
};

static struct llp_mem *mem_peer(struct llp_mem *m)
{
	struct mem_ends *e = base_container_of(m->pair, struct mem_ends, pair);

	return &e->end[!m->side];
}

static void ends_destroy(struct mem_ends *e)
{
	for (int i = 0; i < 2; i++) {
		base_fd_close(e->end[i].llp.fd);
		free(e->pair.pipe[i].ring);
	}
	pthread_mutex_destroy(&e->pair.lock);
	free(e);
}

static int end_init(struct mem_ends *e, int side, size_t capacity)
{
	struct llp_mem *m = &e->end[side];

	m->pair = &e->pair;
	m->side = side;
	m->emss = MEM_EMSS;
	m->llp.ops = &mem_ops;
	e->pair.pipe[side].capacity = capacity;
	e->pair.pipe[side].ring = malloc(capacity);
	if (!e->pair.pipe[side].ring)
		return -ENOMEM;
	return base_eventfd_create(&m->llp.fd);
}

int llp_mem_pair(size_t capacity, struct llp **a, struct llp **b)
{
	struct mem_ends *e;
	int err;

	if (!capacity)
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	pthread_mutex_init(&e->pair.lock, NULL);
	e->end[0].llp.fd = e->end[1].llp.fd = -1;
	err = end_init(e, 0, capacity);
	if (!err)
		err = end_init(e, 1, capacity);
	if (err)
		goto err_destroy_ends;
	*a = &e->end[0].llp;
	*b = &e->end[1].llp;
	return 0;

err_destroy_ends:
	ends_destroy(e);
	return err;
}

void llp_mem_tamper(struct llp *l, const struct llp_mem_tamper *t)
{
	struct llp_mem *m = mem_of(l);

	pthread_mutex_lock(&m->pair->lock);
	pipe_out(m)->tamper = *t;
	pipe_out(m)->waited = 0;
	pthread_mutex_unlock(&m->pair->lock);
}

void llp_mem_set_emss(struct llp *l, unsigned int emss)
{
	mem_of(l)->emss = emss;
}

void llp_mem_destroy(struct llp *a, struct llp *b)
{
	if (a)
		ends_destroy(base_container_of(mem_of(a)->pair, struct mem_ends, pair));
}
