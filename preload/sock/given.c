/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What lingers is given to another process when this one's program goes: in the process that gives
 * it, and in the other one, which has a copy of the list.
 *
 * Where the states can have names again the other one executes a program that finds them
 * (preload/process/linger_handoff.c): charges.named.
 */
#include "preload/sock/attend.h"

#include <errno.h>

#include "base/point.h"
#include "base/process.h"
#include "preload/sock/charge.h"
#include "preload/sock/exec_record.h"
#include "preload/sock/fallback.h"

/* A device's connection is of use to nobody but its owner, who waits for it */
static bool is_given(struct charge *c)
{
	return c->closed && charge_sock(c)->stream->carrier < 0;
}

int attend_next(void *ctx, int from)
{
	struct base_list *node, *next;
	int least = -1;

	base_list_foreach(node, next, &charges.list) {
		int fd = stream_fd(charge_sock(base_list_entry(node, struct charge, node))->stream);

		if (fd >= from && (least < 0 || fd < least))
			least = fd;
	}
	return least;
}

/* Only those that it was given are its own, and nobody else is here */
void attend_begin_apart(void)
{
	struct base_list *node, *next;

	pthread_mutex_init(&charges.lock, NULL);
	charges.wakeup = charges.set = -1;
	charges.apart = true;
	base_list_foreach(node, next, &charges.list) {
		struct charge *c = base_list_entry(node, struct charge, node);

		pthread_mutex_init(&charge_sock(c)->lock, NULL);
		base_list_init(&charge_sock(c)->watches);
		if (is_given(c)) {
			if (charges.named)
				charge_sock(c)->stream->ops->joined(charge_sock(c)->stream);
			continue;
		}
		base_list_remove(&c->node);
		c->listed = false;
		charges.closed -= c->closed;
	}
	fallback_renew();
}

/* One that goes back to the kernel just now is its process's to finish */
static bool any_plain(void)
{
	struct base_list *node, *next;
	bool any = false;

	base_list_foreach(node, next, &charges.list) {
		any |= base_list_entry(node, struct charge, node)->plain;
	}
	return any;
}

static bool any_given(void)
{
	struct base_list *node, *next;
	bool any = false;

	base_list_foreach(node, next, &charges.list) {
		any |= is_given(base_list_entry(node, struct charge, node));
	}
	return any;
}

/* They count as this process's, which is who has closed them */
static void charges_give(void)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &charges.list) {
		struct charge *c = base_list_entry(node, struct charge, node);

		if (!is_given(c))
			continue;
		sock_report(charge_sock(c));
		charge_sock(c)->stream->ops->disown(charge_sock(c)->stream);
		charge_end(c);
		BASE_POINT(preload_attend_given);
	}
}

static void charge_name(struct charge *c, bool on)
{
	struct stream *stream = charge_sock(c)->stream;

	if (!on) {
		stream->ops->unshare(stream, STREAM_SHARE_FORK);
		stream->ops->linger_handoff(stream, false);
		return;
	}
	stream->ops->share(stream, STREAM_SHARE_FORK);
	exec_record_write(charge_sock(c));
}

/* Those before @end */
static void charges_unname(struct base_list *end)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &charges.list) {
		if (node == end)
			return;
		if (is_given(base_list_entry(node, struct charge, node)))
			charge_name(base_list_entry(node, struct charge, node), false);
	}
}

/* Can a program find all that it is given? */
static bool charges_name(void)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &charges.list) {
		struct charge *c = base_list_entry(node, struct charge, node);
		struct stream *stream = charge_sock(c)->stream;

		if (!is_given(c))
			continue;
		if (stream->ops->linger_handoff(stream, true)) {
			charges_unname(node);
			return false;
		}
		charge_name(c, true);
	}
	return true;
}

void attend_unname_apart(void)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &charges.list) {
		struct stream *stream =
			charge_sock(base_list_entry(node, struct charge, node))->stream;

		stream->ops->left(stream, base_process_self().pid);
		stream->ops->linger_handoff(stream, false);
	}
	charges.named = false;
}

bool attend_give(int (*make)(void))
{
	bool all;
	int err = 0;

	charges_lock();
	if (any_given() && any_plain()) {
		err = -EBUSY;
	} else if (any_given()) {
		charges.named = charges_name();
		err = make();
		if (err && charges.named)
			charges_unname(NULL);
		charges.named = false;
	}
	if (!err)
		charges_give();
	all = !charges.closed;
	pthread_mutex_unlock(&charges.lock);
	return all;
}
