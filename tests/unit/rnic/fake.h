/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A provider that does nothing but remember which of its functions was called, and with which
 * arguments. Each answers FAKE_ANSWER, so that a test sees that the answer came from here.
 */
#ifndef TESTS_UNIT_RNIC_FAKE_H
#define TESTS_UNIT_RNIC_FAKE_H

#include "rnic/rnic.h"

#define FAKE_ANSWER 4711

struct fake_call {
	const char *name; /* NULL: none was called */
	const void *object;
	const void *arg;
	unsigned long number;
	struct warp_conn_param param; /* of calls that have one */
};

extern struct fake_call fake_last;
extern const struct rnic_ops fake_ops;

/* One object of each kind, all of one device; and another device with a queue pair and a queue */
extern struct warp_device fake_dev, fake_other_dev;
extern struct warp_pd fake_pd, fake_other_pd;
extern struct warp_mr fake_mr;
extern struct warp_cq fake_cq, fake_other_cq;
extern struct warp_qp fake_qp, fake_other_qp;
extern struct warp_listener fake_listener;
extern struct warp_conn fake_conn;

#endif
