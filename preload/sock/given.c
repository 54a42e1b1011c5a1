/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What lingers is given to another process when this one's program goes: in the process that gives
 * it, and in the other one, which has a copy of the list.
 *
 * Where the states can have names again the other one executes a program that finds them
 * (preload/process/linger_handoff.c): work_list.named.
 */
#include "preload/sock/worker.h"

#include <errno.h>

#include "base/point.h"
#include "base/process.h"
#include "preload/sock/exec_record.h"
#include "preload/sock/fallback.h"
#include "preload/sock/info.h"
#include "preload/sock/work_item.h"

/* A device's connection is of use to nobody but its owner, who waits for it */
static bool is_given(struct work_item *c)
{
	return c->closed && work_item_sock(c)->stream->carrier < 0;
}

int worker_next(void *ctx, int from)
{
	struct base_list *node, *next;
	int least = -1;

	base_list_foreach(node, next, &work_list.list) {
		int fd = stream_fd(
			work_item_sock(base_list_entry(node, struct work_item, node))->stream);

		if (fd >= from && (least < 0 || fd < least))
			least = fd;
	}
	return least;
}

/* Only those that it was given are its own, and nobody else is here */
void worker_begin_in_helper(void)
{
	struct base_list *node, *next;

	pthread_mutex_init(&work_list.lock, NULL);
	work_list.wakeup = work_list.set = -1;
	work_list.in_helper = true;
	base_list_foreach(node, next, &work_list.list) {
		struct work_item *c = base_list_entry(node, struct work_item, node);

		pthread_mutex_init(&work_item_sock(c)->lock, NULL);
		base_list_init(&work_item_sock(c)->watches);
		if (is_given(c)) {
			if (work_list.named)
				stream_joined(work_item_sock(c)->stream);
			continue;
		}
		base_list_remove(&c->node);
		c->listed = false;
		work_list.closed -= c->closed;
	}
	fallback_renew();
}

/* One that goes back to the kernel just now is its process's to finish */
static bool any_plain(void)
{
	struct base_list *node, *next;
	bool any = false;

	base_list_foreach(node, next, &work_list.list) {
		any |= base_list_entry(node, struct work_item, node)->plain;
	}
	return any;
}

static bool any_given(void)
{
	struct base_list *node, *next;
	bool any = false;

	base_list_foreach(node, next, &work_list.list) {
		any |= is_given(base_list_entry(node, struct work_item, node));
	}
	return any;
}

/* They count as this process's, which is who has closed them */
static void work_list_give(void)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &work_list.list) {
		struct work_item *c = base_list_entry(node, struct work_item, node);

		if (!is_given(c))
			continue;
		sock_report(work_item_sock(c));
		stream_disown(work_item_sock(c)->stream);
		work_item_end(c);
		BASE_POINT(preload_worker_given);
	}
}

static void work_item_name(struct work_item *c, bool on)
{
	struct stream *stream = work_item_sock(c)->stream;

	if (!on) {
		stream_unshare(stream, STREAM_SHARE_FORK);
		stream_linger_handoff(stream, false);
		return;
	}
	stream_share(stream, STREAM_SHARE_FORK);
	exec_record_write(work_item_sock(c));
}

/* Those before @end */
static void work_list_unname(struct base_list *end)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &work_list.list) {
		if (node == end)
			return;
		if (is_given(base_list_entry(node, struct work_item, node)))
			work_item_name(base_list_entry(node, struct work_item, node), false);
	}
}

/* Can a program find all that it is given? */
static bool work_list_name(void)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &work_list.list) {
		struct work_item *c = base_list_entry(node, struct work_item, node);
		struct stream *stream = work_item_sock(c)->stream;

		if (!is_given(c))
			continue;
		if (stream_linger_handoff(stream, true)) {
			work_list_unname(node);
			return false;
		}
		work_item_name(c, true);
	}
	return true;
}

void worker_unname_in_helper(void)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &work_list.list) {
		struct stream *stream =
			work_item_sock(base_list_entry(node, struct work_item, node))->stream;

		stream_left(stream, base_process_self().pid);
		stream_linger_handoff(stream, false);
	}
	work_list.named = false;
}

bool worker_give(int (*make)(void))
{
	bool all;
	int err = 0;

	work_list_lock();
	if (any_given() && any_plain()) {
		err = -EBUSY;
	} else if (any_given()) {
		work_list.named = work_list_name();
		err = make();
		if (err && work_list.named)
			work_list_unname(NULL);
		work_list.named = false;
	}
	if (!err)
		work_list_give();
	all = !work_list.closed;
	pthread_mutex_unlock(&work_list.lock);
	return all;
}
