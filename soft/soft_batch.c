/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of which several have input at once.
 *
 * WARPSOCK_CARRIER=uring: one system call receives for all of them (llp/uring.h), each into the
 * place where it would have received next; then each is attended to as ever, and finds there what
 * its recv() would have returned. From the receiving until it is attended to, a connection's rx is
 * held, so that nobody comes between the bytes and their place, or between them and what follows.
 * Each rx is only tried for, so holding many of them can wait for nobody: a connection that another
 * thread has is left to that thread.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "soft/soft_conn.h"

#define OPTION "WARPSOCK_CARRIER"
/* Bytes of a receive, after which the next ones are likely to be as many */
#define MANY (16 * 1024)

static_assert(SOFT_EVENTS <= LLP_URING_BATCH, "a ring has room for all");

static bool wants_uring(void)
{
	const char *carrier = secure_getenv(OPTION);

	if (!carrier || !strcmp(carrier, "tcp"))
		return false;
	if (!strcmp(carrier, "uring"))
		return true;
	base_warn(OPTION ": expected tcp or uring, got \"%s\"", carrier);
	return false;
}

struct llp_uring *soft_batch_ring(void)
{
	struct llp_uring *ring;

	if (!wants_uring())
		return NULL;
	if (!llp_uring_create(&ring))
		return ring;
	base_warn(OPTION ": system calls receive for one connection each");
	return NULL;
}

/*
 * Under rx: what soft_stage_attend_held() is going to receive first. Many bytes are taken apart
 * while the cache has them, before the next connection's come
 */
static bool want(struct soft_conn *c, struct llp_uring_want *out)
{
	out->conn = &c->carrier;
	return c->stage == SOFT_STAGE_OPEN && c->carrier.got <= MANY &&
	       soft_rx_place(&c->io, &out->iov);
}

/* One after the other costs less where there is but one */
static void receive(struct llp_uring *ring, struct soft_conn *const *held, unsigned int n)
{
	struct llp_uring_want wants[SOFT_EVENTS];
	unsigned int wanted = 0;

	for (unsigned int i = 0; i < n; i++)
		wanted += want(held[i], &wants[wanted]);
	if (wanted > 1)
		llp_uring_receive(ring, wants, wanted);
}

static void attend_by(struct llp_uring *ring, struct soft_conn *const *conns, unsigned int n)
{
	struct soft_conn *held[SOFT_EVENTS];
	unsigned int there = 0;

	for (unsigned int i = 0; i < n; i++)
		if (!pthread_mutex_trylock(&conns[i]->rx))
			held[there++] = conns[i];
	receive(ring, held, there);
	for (unsigned int i = 0; i < there; i++) {
		soft_stage_attend_held(held[i]);
		pthread_mutex_unlock(&held[i]->rx);
	}
}

void soft_batch_attend(struct llp_uring *ring, struct soft_conn *const *conns, unsigned int n)
{
	if (ring) {
		attend_by(ring, conns, n);
		return;
	}
	for (unsigned int i = 0; i < n; i++)
		soft_stage_attend(conns[i]);
}
