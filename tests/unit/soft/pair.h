/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_SOFT_PAIR_H
#define TESTS_SOFT_PAIR_H

/*
 * Two ends of the stream front over TCP loopback, for tests: fd[0] is the initiator's.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rnic/rnic_stream.h"
#include "soft/soft_stream.h"
#include "tests/unit/tcp_pair.h"

#define PAIR_OPS (&soft_stream_ops)

struct pair_end {
	struct rnic_stream_mem mem;
	int fd;
};

static inline void pair_end_init(struct pair_end *e, int fd, const struct rnic_stream_param *param)
{
	e->fd = fd;
	e->mem.state = calloc(1, RNIC_STREAM_STATE);
	e->mem.rest = malloc(RNIC_STREAM_REST);
	e->mem.in = malloc(RNIC_STREAM_IN);
	cr_assert_eq(PAIR_OPS->init(&e->mem, fd, param), 0);
}

static inline void pair_end_uninit(struct pair_end *e)
{
	free(e->mem.state);
	free(e->mem.rest);
	free(e->mem.in);
	if (e->fd >= 0)
		close(e->fd);
}

static inline void pair_wait(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	cr_assert_eq(poll(&p, 1, 5000), 1, "nothing happened in 5 s");
}

/* start() until it is neither -EAGAIN nor something that poll cannot help */
static inline int pair_start(struct pair_end *e, const void *pd, size_t len)
{
	short events = 0;
	int got;

	while ((got = PAIR_OPS->start(&e->mem, e->fd, pd, len, &events)) == -EAGAIN)
		pair_wait(e->fd, events);
	return got;
}

/* Both ends up to the open state */
static inline void pair_open(struct pair_end *i, struct pair_end *r)
{
	short events;

	cr_assert_eq(PAIR_OPS->start(&i->mem, i->fd, "hi", 2, &events), -EAGAIN);
	cr_assert_eq(pair_start(r, NULL, 0), RNIC_STREAM_REQUEST);
	cr_assert_eq(PAIR_OPS->accept(&r->mem, r->fd, "hello", 5), 0);
	cr_assert_eq(pair_start(i, NULL, 0), RNIC_STREAM_OPEN);
}

#endif
