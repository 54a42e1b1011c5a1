/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client: the calls of programs.
 *
 * There is no thread of the client's own. Who waits for a request drives the connection for all;
 * others that wait meanwhile sleep until their request is done, or until nobody drives.
 */
#include "active/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/process.h"

enum { BATCH = 16 };

/* --- driving: under client.lock, which it gives up meanwhile ------------------------------ */

/* Looks for completions itself for a while if the program wants that; then sleeps */
static int completions_wait(struct warp_active_client *c, struct warp_wc *wc, uint64_t deadline,
			    int *ret)
{
	uint64_t now = base_now(), until = now + (uint64_t)c->spin_us * 1000;
	int n;

	*ret = 0;
	until = base_min(until, deadline);
	do {
		n = warp_cq_poll(c->cq, wc, BATCH);
		now = n ? now : base_now();
	} while (!n && now < until);
	if (n || now >= deadline)
		return n;
	*ret = warp_cq_wait(c->cq, base_deadline_poll_ms(deadline, now));
	return warp_cq_poll(c->cq, wc, BATCH);
}

static int drive(struct warp_active_client *c, uint64_t deadline)
{
	struct warp_wc wc[BATCH];
	int n, ret;

	if (active_link_repay(c)) {
		active_exchange_fail(c, -ECONNRESET);
		return 0;
	}
	c->driving = true;
	pthread_mutex_unlock(&c->lock);
	n = completions_wait(c, wc, deadline, &ret);
	pthread_mutex_lock(&c->lock);
	c->driving = false;
	for (int i = 0; i < n; i++)
		active_exchange_take(c, &wc[i]);
	if (n < 0)
		active_exchange_fail(c, -ECONNRESET);
	if (n > 0)
		active_exchange_pump(c);
	return ret == -EINTR ? ret : 0;
}

static void changed_wait(struct warp_active_client *c, uint64_t deadline)
{
	struct timespec until = { .tv_sec = (time_t)(deadline / BASE_NS_PER_S),
				  .tv_nsec = (long)(deadline % BASE_NS_PER_S) };

	if (deadline == BASE_NEVER)
		pthread_cond_wait(&c->changed, &c->lock);
	else
		pthread_cond_timedwait(&c->changed, &c->lock, &until);
}

/* Until *done, which changes under the lock, or the deadline */
static int drive_until(struct warp_active_client *c, const struct warp_active_request *r,
		       uint64_t deadline)
{
	int ret = 0;

	while (r ? r->state != ACTIVE_REQUEST_DONE : !c->welcome && !c->error) {
		if (ret || (deadline != BASE_NEVER && base_now() >= deadline))
			return ret ? ret : -ETIMEDOUT;
		if (c->driving)
			changed_wait(c, deadline);
		else
			ret = drive(c, deadline);
	}
	return 0;
}

/* Another one that waits may drive now */
static void drive_leave(struct warp_active_client *c)
{
	if (!c->driving)
		pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

/* --- connections -------------------------------------------------------------------------- */

/*
 * In a child of fork() the client is the parent's: whatever the child sent, or took in, would be
 * missing there. It may be locked for ever, too
 */
static bool is_parents(const struct warp_active_client *c)
{
	struct base_process self = base_process_self();

	return c->owner.pid != self.pid || c->owner.space != self.space;
}

static int greet(struct warp_active_client *c, int timeout_ms)
{
	const struct active_message hello = { .type = ACTIVE_HELLO };
	int len = active_message_write(&hello, active_link_slot(c, 0), ACTIVE_SLOT_ROOM), ret;

	pthread_mutex_lock(&c->lock);
	ret = active_link_send(c, 0, (size_t)len);
	if (!ret)
		ret = drive_until(c, NULL, base_deadline_ms(timeout_ms));
	if (!ret)
		ret = c->error;
	drive_leave(c);
	return ret;
}

static struct warp_active_client *client_new(void)
{
	struct warp_active_client *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;

	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &attr);
	pthread_condattr_destroy(&attr);
	base_list_init(&c->queue);
	base_list_init(&c->access_queue);
	base_list_init(&c->done);
	base_list_init(&c->loads);
	base_list_init(&c->cancels);
	base_list_init(&c->spare);
	c->owed = -1;
	c->owner = base_process_self();
	return c;
}

static void client_free(struct warp_active_client *c)
{
	struct base_list *spare;

	pthread_mutex_lock(&c->lock);
	active_exchange_fail(c, -ECONNRESET);
	pthread_mutex_unlock(&c->lock);
	while ((spare = base_list_pop_front(&c->spare)))
		free(base_list_entry(spare, struct warp_active_request, link));
	active_link_close(c);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

int warp_active_connect(const struct sockaddr *addr, socklen_t len,
			const struct warp_active_client_attr *attr, struct warp_active_client **out)
{
	static const struct warp_active_client_attr none;
	struct warp_active_client *c;
	int ret;

	if (!addr || !out)
		return -EINVAL;
	attr = attr ? attr : &none;
	c = client_new();
	if (!c)
		return -ENOMEM;
	ret = active_link_open(c, addr, len, attr);
	if (!ret)
		ret = greet(c, attr->timeout_ms ? attr->timeout_ms : 10000);
	if (ret)
		client_free(c);
	else
		*out = c;
	return ret;
}

int warp_active_disconnect(struct warp_active_client *c)
{
	bool busy;

	if (!c)
		return 0;
	if (is_parents(c))
		return -ECHILD;
	pthread_mutex_lock(&c->lock);
	busy = c->requests > c->orphans;
	pthread_mutex_unlock(&c->lock);
	if (busy)
		return -EBUSY;
	client_free(c);
	return 0;
}

struct warp_pd *warp_active_pd(struct warp_active_client *client)
{
	return client ? client->pd : NULL;
}

int warp_active_region_get(const struct warp_active_client *client, unsigned int i,
			   struct warp_active_region_info *out)
{
	if (!client || !out)
		return -EINVAL;
	if (i >= client->region_count)
		return -ENOENT;
	*out = client->regions[i];
	return 0;
}

int warp_active_region_find(const struct warp_active_client *client, const char *name,
			    struct warp_active_region_info *out)
{
	if (!client || !name || !out)
		return -EINVAL;
	for (unsigned int i = 0; i < client->region_count; i++)
		if (!strcmp(client->regions[i].name, name)) {
			*out = client->regions[i];
			return 0;
		}
	return -ENOENT;
}

/* --- requests ----------------------------------------------------------------------------- */

static bool run_good(const struct warp_active_run *run)
{
	return run && run->object && run->args_len <= ACTIVE_WIRE_ARGS_MAX &&
	       (run->args || !run->args_len) && run->grant_count <= ACTIVE_WIRE_REGIONS_MAX &&
	       (run->grants || !run->grant_count) && run->output_room <= ACTIVE_WIRE_OUTPUT_MAX &&
	       (run->output || !run->output_room) &&
	       (!run->function || strlen(run->function) <= ACTIVE_WIRE_NAME_MAX);
}

/* Under the lock; without clearing all of its text */
static struct warp_active_request *request_new(struct warp_active_client *c)
{
	struct base_list *spare = base_list_pop_front(&c->spare);
	struct warp_active_request *r =
		spare ? base_list_entry(spare, struct warp_active_request, link)
		      : malloc(sizeof(*r));

	if (!r)
		return NULL;
	c->spares -= !!spare;
	memset(r, 0, offsetof(struct warp_active_request, result));
	memset(&r->result, 0, offsetof(struct warp_active_result, text) + 1);
	base_list_init(&r->link);
	base_list_init(&r->cancel);
	r->client = c;
	c->requests++;
	return r;
}

/* Under the lock: into @queue, and out if there is room */
static void request_enter(struct warp_active_request *r, struct base_list *queue)
{
	base_list_push_back(queue, &r->link);
	active_exchange_pump(r->client);
}

/* Under the lock */
static int start(struct warp_active_client *c, const struct warp_active_run *run, bool install,
		 struct warp_active_request **out)
{
	struct warp_active_request *r;

	if (c->error)
		return -ECONNRESET;
	r = request_new(c);
	if (!r)
		return -ENOMEM;
	r->run = *run;
	r->install = install;
	r->object = active_object_get(run->object);
	request_enter(r, &c->queue);
	*out = r;
	return 0;
}

int warp_active_start(struct warp_active_client *client, const struct warp_active_run *run,
		      struct warp_active_request **out)
{
	int ret;

	if (!client || !out || !run_good(run))
		return -EINVAL;
	if (is_parents(client))
		return -ECHILD;
	pthread_mutex_lock(&client->lock);
	ret = start(client, run, false, out);
	pthread_mutex_unlock(&client->lock);
	return ret;
}

static int access_check(const struct warp_active_client *c, const struct warp_active_access *op)
{
	static const unsigned int rights[] = {
		[WARP_ACTIVE_OP_READ] = WARP_ACTIVE_READ,
		[WARP_ACTIVE_OP_WRITE] = WARP_ACTIVE_WRITE,
		[WARP_ACTIVE_OP_COMPARE_SWAP] = WARP_ACTIVE_ATOMIC,
		[WARP_ACTIVE_OP_FETCH_ADD] = WARP_ACTIVE_ATOMIC,
	};
	const struct warp_active_region_info *region;
	bool atomic;
	size_t len;

	if (!op || (size_t)op->op >= base_array_size(rights) || op->region >= c->region_count)
		return -EINVAL;
	region = &c->regions[op->region];
	atomic = rights[op->op] == WARP_ACTIVE_ATOMIC;
	len = atomic ? 8 : op->len;
	if (!len || (!atomic && !op->buffer) || (atomic && op->offset % 8) ||
	    len > (op->stag ? UINT32_MAX : ACTIVE_ACCESS_ROOM) || op->offset > region->size ||
	    len > region->size - op->offset)
		return -EINVAL;
	return region->stag && (region->rights & rights[op->op]) ? 0 : -EACCES;
}

int warp_active_access(struct warp_active_client *client, const struct warp_active_access *access,
		       struct warp_active_request **out)
{
	struct warp_active_request *r;
	int ret;

	if (!client || !out)
		return -EINVAL;
	ret = is_parents(client) ? -ECHILD : access_check(client, access);
	if (ret)
		return ret;
	pthread_mutex_lock(&client->lock);
	r = client->error ? NULL : request_new(client);
	ret = client->error ? -ECONNRESET : r ? 0 : -ENOMEM;
	if (r) {
		r->access = true;
		r->op = *access;
		request_enter(r, &client->access_queue);
		*out = r;
	}
	pthread_mutex_unlock(&client->lock);
	return ret;
}

static void result_copy(const struct warp_active_result *from, struct warp_active_result *to)
{
	if (to)
		memcpy(to, from,
		       offsetof(struct warp_active_result, text) + strlen(from->text) + 1);
}

/* Under the lock: until it is done, and it is gone then; -ETIMEDOUT, -EINTR: it is not */
static int finish(struct warp_active_request *r, uint64_t deadline,
		  struct warp_active_result *result)
{
	int ret = drive_until(r->client, r, deadline);

	if (ret)
		return ret;
	ret = r->error;
	if (!ret)
		result_copy(&r->result, result);
	base_list_remove(&r->link);
	active_request_free(r);
	return ret;
}

int warp_active_wait(struct warp_active_request *r, int timeout_ms,
		     struct warp_active_result *result)
{
	struct warp_active_client *c;
	int ret;

	if (!r)
		return -EINVAL;
	c = r->client;
	if (is_parents(c))
		return -ECHILD;
	pthread_mutex_lock(&c->lock);
	ret = finish(r, base_deadline_ms(timeout_ms), result);
	drive_leave(c);
	return ret;
}

static int start_and_wait(struct warp_active_client *c, const struct warp_active_run *run,
			  bool install, struct warp_active_result *result)
{
	struct warp_active_request *r;
	int ret;

	if (!c || !run_good(run))
		return -EINVAL;
	if (is_parents(c))
		return -ECHILD;
	pthread_mutex_lock(&c->lock);
	ret = start(c, run, install, &r);
	if (!ret)
		do
			ret = finish(r, BASE_NEVER, result);
		while (ret == -EINTR);
	drive_leave(c);
	return ret;
}

int warp_active_run(struct warp_active_client *client, const struct warp_active_run *run,
		    struct warp_active_result *result)
{
	return start_and_wait(client, run, false, result);
}

int active_install(struct warp_active_client *client, const struct warp_active_run *run,
		   struct warp_active_result *result)
{
	return start_and_wait(client, run, true, result);
}

/* Under the lock; those that the server does not have end at once */
static void cancel(struct warp_active_request *r)
{
	if (r->state == ACTIVE_REQUEST_QUEUED || r->state == ACTIVE_REQUEST_LOADING) {
		r->result.code = WARP_ACTIVE_CANCELLED;
		active_request_done(r, 0);
	} else if (r->state == ACTIVE_REQUEST_SENT && !r->access && base_list_empty(&r->cancel)) {
		base_list_push_back(&r->client->cancels, &r->cancel);
		active_exchange_pump(r->client);
	}
}

int warp_active_cancel(struct warp_active_request *r)
{
	struct warp_active_client *c;

	if (!r)
		return -EINVAL;
	c = r->client;
	if (is_parents(c))
		return -ECHILD;
	pthread_mutex_lock(&c->lock);
	cancel(r);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

void warp_active_drop(struct warp_active_request *r)
{
	struct warp_active_client *c;

	if (!r || is_parents(r->client))
		return;
	c = r->client;
	pthread_mutex_lock(&c->lock);
	/* Memory of the program's that the provider itself writes to cannot be taken away */
	if (r->state == ACTIVE_REQUEST_SENT && r->access && r->op.stag)
		while (drive_until(c, r, BASE_NEVER))
			;
	if (r->state == ACTIVE_REQUEST_DONE) {
		base_list_remove(&r->link);
		active_request_free(r);
	} else {
		r->orphan = true;
		c->orphans++;
		cancel(r);
	}
	drive_leave(c);
}

/* --- event loops -------------------------------------------------------------------------- */

static int done_take(struct warp_active_client *c, struct warp_active_request **out, int n)
{
	struct base_list *at, *next;
	int got = 0;

	base_list_foreach(at, next, &c->done) {
		struct warp_active_request *r =
			base_list_entry(at, struct warp_active_request, link);

		if (got < n && !r->given) {
			r->given = true;
			out[got++] = r;
		}
	}
	return got;
}

int warp_active_poll(struct warp_active_client *c, struct warp_active_request **done, int n)
{
	int got;

	if (!c || !done || n < 1)
		return -EINVAL;
	if (is_parents(c))
		return -ECHILD;
	pthread_mutex_lock(&c->lock);
	warp_cq_ack(c->cq);
	if (!c->driving)
		drive(c, 0);
	got = done_take(c, done, n);
	if (!got && !c->error) {
		warp_cq_arm(c->cq, false);
		if (!c->driving)
			drive(c, 0);
		got = done_take(c, done, n);
	}
	drive_leave(c);
	return got;
}

int warp_active_fd(struct warp_active_client *c)
{
	return c ? warp_cq_fd(c->cq) : -EINVAL;
}

void warp_active_context_set(struct warp_active_request *request, void *context)
{
	request->context = context;
}

void *warp_active_context(const struct warp_active_request *request)
{
	return request->context;
}
