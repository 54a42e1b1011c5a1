/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client's requests on their way, and what comes back.
 *
 * A run whose object the server does not have waits until that has been sent, and goes again. One
 * object is sent at a time, in parts of which each has an answer. An answer that fits no request
 * ends the connection.
 *
 * All under client.lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "active/client.h"
#include "base/bits.h"

/* --- requests that are done --------------------------------------------------------------- */

void active_request_free(struct warp_active_request *r)
{
	struct warp_active_client *c = r->client;

	active_object_put(r->object);
	c->requests--;
	c->orphans -= r->orphan;
	if (c->spares == ACTIVE_SPARE_REQUESTS) {
		free(r);
		return;
	}
	c->spares++;
	/* The next call takes it, while it is in the cache */
	base_list_push_front(&c->spare, &r->link);
}

void active_request_done(struct warp_active_request *r, int error)
{
	struct warp_active_client *c = r->client;

	r->state = ACTIVE_REQUEST_DONE;
	r->error = error;
	base_list_remove(&r->link);
	base_list_remove(&r->cancel);
	if (r->orphan) {
		active_request_free(r);
		return;
	}
	base_list_push_back(&c->done, &r->link);
	pthread_cond_broadcast(&c->changed);
}

static void list_fail(struct base_list *list, int error)
{
	struct base_list *at, *next;

	base_list_foreach(at, next, list)
		active_request_done(base_list_entry(at, struct warp_active_request, link), error);
}

static void load_free(struct active_load *load)
{
	base_list_remove(&load->link);
	active_object_put(load->object);
	free(load);
}

static void slots_fail(struct warp_active_client *c, int error)
{
	for (unsigned int i = 0; i < c->window; i++) {
		if (c->slots[i].request)
			active_request_done(c->slots[i].request, error);
		c->slots[i].request = NULL;
		c->slots[i].load = NULL;
	}
	for (unsigned int i = 0; i < c->accesses_most; i++) {
		if (c->accesses[i])
			active_request_done(c->accesses[i], error);
		c->accesses[i] = NULL;
	}
}

void active_exchange_fail(struct warp_active_client *c, int error)
{
	struct base_list *at, *next;

	if (c->error)
		return;
	c->error = error;
	slots_fail(c, error);
	list_fail(&c->queue, error);
	list_fail(&c->access_queue, error);
	base_list_foreach(at, next, &c->loads) {
		struct active_load *load = base_list_entry(at, struct active_load, link);

		list_fail(&load->waiting, error);
		load_free(load);
	}
	pthread_cond_broadcast(&c->changed);
}

/* --- out ---------------------------------------------------------------------------------- */

static bool slot_free(const struct active_slot *slot)
{
	return !slot->sending && !slot->unanswered;
}

static struct active_slot *slot_find(struct warp_active_client *c, unsigned int *number)
{
	for (unsigned int i = 0; i < c->window; i++)
		if (slot_free(&c->slots[i])) {
			*number = i;
			return &c->slots[i];
		}
	return NULL;
}

static void slot_send(struct warp_active_client *c, unsigned int i, const struct active_message *m)
{
	int len = active_message_write(m, active_link_slot(c, i), ACTIVE_SLOT_ROOM);
	int ret = len < 0 ? len : active_link_send(c, i, (size_t)len);

	if (ret) {
		active_exchange_fail(c, -ECONNRESET);
		return;
	}
	c->slots[i].unanswered = true;
}

static uint64_t id_next(struct warp_active_client *c, unsigned int slot)
{
	return ++c->last_id << 16 | slot;
}

static void run_send(struct warp_active_client *c, unsigned int i, struct warp_active_request *r)
{
	const struct warp_active_run *run = &r->run;
	uint8_t grants[ACTIVE_WIRE_REGIONS_MAX * 8];
	struct active_message m = {
		.type = r->install ? ACTIVE_INSTALL : ACTIVE_RUN,
		.id = id_next(c, i),
		.hash = r->object->hash,
		.fuel = run->fuel,
		.deadline = run->timeout_us,
		.output_room = (uint32_t)run->output_room,
		.args = { run->args, run->args_len },
		.grants = { grants, run->grant_count * 8 },
	};

	for (size_t j = 0; j < run->grant_count; j++) {
		const struct active_grant grant = { run->grants[j].region, run->grants[j].rights };

		active_grant_put(grants + j * 8, &grant);
	}
	if (run->function) {
		m.name.at = (const uint8_t *)run->function;
		m.name.len = strlen(run->function);
	}
	base_list_remove(&r->link);
	r->state = ACTIVE_REQUEST_SENT;
	r->slot = i;
	c->slots[i] = (struct active_slot){ .id = m.id, .request = r };
	slot_send(c, i, &m);
}

static void part_send(struct warp_active_client *c, unsigned int i, struct active_load *load)
{
	const struct warp_active_object *o = load->object;
	struct active_message m = {
		.type = ACTIVE_LOAD,
		/* of all parts: who sends no other object meanwhile needs no number for it */
		.id = load->id,
		.hash = o->hash,
		.size = (uint32_t)o->len,
		.offset = (uint32_t)load->offset,
		.part = { o->bytes + load->offset,
			  base_min((size_t)ACTIVE_PART, o->len - load->offset) },
	};

	load->offset += m.part.len;
	load->parts++;
	c->slots[i] = (struct active_slot){ .id = m.id, .load = load };
	slot_send(c, i, &m);
}

/* The one load that is under way, if it has something to send and leaves half of the slots */
static struct active_load *load_next(struct warp_active_client *c)
{
	struct active_load *load;

	if (base_list_empty(&c->loads))
		return NULL;
	load = base_list_entry(c->loads.next, struct active_load, link);
	return !load->over && load->offset < load->object->len && load->parts <= c->window / 2
		       ? load
		       : NULL;
}

static void cancel_send(struct warp_active_client *c)
{
	struct base_list *first = base_list_pop_front(&c->cancels);
	struct warp_active_request *r = base_list_entry(first, struct warp_active_request, cancel);
	const struct active_message m = { .type = ACTIVE_CANCEL, .id = c->slots[r->slot].id };
	uint8_t octets[16];
	struct warp_sge sg = { octets, sizeof(octets), 0 };
	const struct warp_send_wr wr = { .wr_id = ACTIVE_WR_CANCEL,
					 .opcode = WARP_WR_SEND,
					 .flags = WARP_SEND_INLINE,
					 .sg = &sg,
					 .num_sge = 1 };

	active_message_write(&m, octets, sizeof(octets));
	c->cancelling = true;
	if (warp_qp_post_send(c->qp, &wr, 1) < 0)
		active_exchange_fail(c, -ECONNRESET);
}

static int access_post(struct warp_active_client *c, unsigned int i,
		       const struct warp_active_access *op)
{
	static const enum warp_wr_opcode opcodes[] = {
		[WARP_ACTIVE_OP_READ] = WARP_WR_READ,
		[WARP_ACTIVE_OP_WRITE] = WARP_WR_WRITE,
		[WARP_ACTIVE_OP_COMPARE_SWAP] = WARP_WR_CMP_SWAP,
		[WARP_ACTIVE_OP_FETCH_ADD] = WARP_WR_FETCH_ADD,
	};
	const struct warp_active_region_info *region = &c->regions[op->region];
	bool atomic = op->op >= WARP_ACTIVE_OP_COMPARE_SWAP, own = op->stag && !atomic;
	struct warp_sge sg = { own ? op->buffer : active_link_access(c, i),
			       atomic ? 8 : (uint32_t)op->len,
			       own ? op->stag : warp_mr_stag(c->mr) };
	const struct warp_send_wr wr = { .wr_id = ACTIVE_WR_ACCESS + i,
					 .opcode = opcodes[op->op],
					 .flags = WARP_SEND_SIGNALED,
					 .sg = &sg,
					 .num_sge = 1,
					 .remote_stag = region->stag,
					 .remote_to = region->addr + op->offset,
					 .swap_add = op->value,
					 .mask = op->op == WARP_ACTIVE_OP_COMPARE_SWAP ? ~0ull : 0,
					 .compare = op->compare,
					 .compare_mask = ~0ull };

	if (op->op == WARP_ACTIVE_OP_WRITE && !own)
		memcpy(sg.addr, op->buffer, op->len);
	return warp_qp_post_send(c->qp, &wr, 1);
}

static void accesses_send(struct warp_active_client *c)
{
	for (unsigned int i = 0; i < c->accesses_most && !c->error; i++) {
		struct warp_active_request *r;

		if (base_list_empty(&c->access_queue))
			return;
		if (c->accesses[i])
			continue;
		r = base_list_entry(base_list_pop_front(&c->access_queue),
				    struct warp_active_request, link);
		r->state = ACTIVE_REQUEST_SENT;
		c->accesses[i] = r;
		if (access_post(c, i, &r->op) < 0)
			active_exchange_fail(c, -ECONNRESET);
	}
}

void active_exchange_pump(struct warp_active_client *c)
{
	struct active_load *load;
	unsigned int i;

	while (!c->error && (load = load_next(c)) && slot_find(c, &i))
		part_send(c, i, load);
	while (!c->error && !base_list_empty(&c->queue) && slot_find(c, &i))
		run_send(c, i, base_list_entry(c->queue.next, struct warp_active_request, link));
	if (!c->error && !c->cancelling && !base_list_empty(&c->cancels))
		cancel_send(c);
	accesses_send(c);
}

/* --- in ----------------------------------------------------------------------------------- */

static void result_fill(struct warp_active_request *r, const struct active_message *m)
{
	struct warp_active_result *result = &r->result;

	result->code = (enum warp_active_code)m->code;
	result->value = m->value;
	result->fuel = m->fuel;
	result->pc = m->pc;
	result->len = m->len;
	result->addr = m->addr;
	result->rights = m->rights;
	result->output = m->output.len;
	memcpy(result->text, m->text.at, m->text.len);
	result->text[m->text.len] = 0;
}

static struct active_load *load_of(struct warp_active_client *c, struct warp_active_object *object)
{
	struct base_list *at, *next;
	struct active_load *load;

	base_list_foreach(at, next, &c->loads) {
		load = base_list_entry(at, struct active_load, link);
		if (!load->over && !memcmp(load->object->hash, object->hash, ACTIVE_WIRE_HASH))
			return load;
	}
	load = calloc(1, sizeof(*load));
	if (!load)
		return NULL;
	load->object = active_object_get(object);
	load->id = id_next(c, 0xffff);
	base_list_init(&load->waiting);
	base_list_push_back(&c->loads, &load->link);
	return load;
}

/* The server does not have the object: the request waits until it has */
static bool request_load(struct warp_active_client *c, struct warp_active_request *r)
{
	struct active_load *load;

	if (r->orphan || r->tries++ >= ACTIVE_TRIES)
		return false;
	load = load_of(c, r->object);
	if (!load)
		return false;
	r->state = ACTIVE_REQUEST_LOADING;
	base_list_push_back(&load->waiting, &r->link);
	return true;
}

static int result_take(struct warp_active_client *c, struct active_slot *slot,
		       const struct active_message *m)
{
	struct warp_active_request *r = slot->request;

	if (!r)
		return -EPROTO;
	slot->request = NULL;
	base_list_remove(&r->cancel);
	if (m->code == ACTIVE_UNKNOWN && request_load(c, r))
		return 0;
	if (!r->orphan && m->output.len > r->run.output_room) {
		active_request_done(r, -EPROTO);
		return -EPROTO;
	}
	if (!r->orphan) {
		if (m->output.len)
			memcpy(r->run.output, m->output.at, m->output.len);
		result_fill(r, m);
	}
	active_request_done(r, 0);
	return 0;
}

/* Those that waited go again, or end as the load did */
static void load_done(struct warp_active_client *c, struct active_load *load,
		      const struct active_message *m)
{
	struct base_list *at, *next;

	load->over = true;
	base_list_foreach(at, next, &load->waiting) {
		struct warp_active_request *r =
			base_list_entry(at, struct warp_active_request, link);

		if (m->code != ACTIVE_OK) {
			result_fill(r, m);
			active_request_done(r, 0);
			continue;
		}
		base_list_remove(&r->link);
		r->state = ACTIVE_REQUEST_QUEUED;
		base_list_push_back(&c->queue, &r->link);
	}
}

static int loaded_take(struct warp_active_client *c, struct active_slot *slot,
		       const struct active_message *m)
{
	struct active_load *load = slot->load;

	if (!load)
		return -EPROTO;
	slot->load = NULL;
	load->parts--;
	if (!load->over && (m->code != ACTIVE_OK || m->value == load->object->len))
		load_done(c, load, m);
	/* All parts are answered, and the server has not said what came of it */
	if (!load->over && !load->parts && load->offset == load->object->len)
		return -EPROTO;
	if (load->over && !load->parts)
		load_free(load);
	return 0;
}

/* Slots of parts have the id of their load, and the oldest is the one that is answered */
static struct active_slot *slot_of(struct warp_active_client *c, const struct active_message *m)
{
	for (unsigned int i = 0; i < c->window; i++)
		if (c->slots[i].unanswered && c->slots[i].id == m->id)
			return &c->slots[i];
	return NULL;
}

static int region_take(struct active_span *rest, struct warp_active_region_info *out)
{
	struct active_region_info info;

	if (!active_region_next(rest, &info))
		return -EPROTO;
	out->addr = info.addr;
	out->size = info.size;
	out->stag = info.stag;
	out->rights = info.rights;
	memcpy(out->name, info.name.at, info.name.len);
	return 0;
}

static int welcome_take(struct warp_active_client *c, const struct active_message *m)
{
	struct active_span rest = m->regions;
	int ret = 0;

	if (c->welcome || !m->window)
		return -EPROTO;
	c->window = base_min(c->window, m->window);
	c->regions = calloc(m->region_count + 1, sizeof(*c->regions));
	if (!c->regions)
		return -ENOMEM;
	for (unsigned int i = 0; i < m->region_count && !ret; i++) {
		ret = region_take(&rest, &c->regions[i]);
		c->regions[i].number = i;
	}
	c->region_count = m->region_count;
	c->welcome = !ret;
	return ret;
}

static int answer_take(struct warp_active_client *c, const struct active_message *m)
{
	struct active_slot *slot;

	if (m->type == ACTIVE_WELCOME)
		return welcome_take(c, m);
	if (m->type == ACTIVE_CANCEL_DONE) {
		c->cancelling = false;
		return 0;
	}
	slot = slot_of(c, m);
	if (!slot)
		return -EPROTO;
	slot->unanswered = false;
	if (m->type == ACTIVE_RESULT)
		return result_take(c, slot, m);
	return m->type == ACTIVE_LOADED ? loaded_take(c, slot, m) : -EPROTO;
}

static void receive_take(struct warp_active_client *c, unsigned int i, size_t len)
{
	struct active_message m;
	int ret = active_message_read(active_link_answer(c, i), len, &m);

	if (!ret)
		ret = answer_take(c, &m);
	/* Who waits for the answer has it first: this one is posted while the next is waited for */
	if (!ret)
		ret = active_link_repay(c);
	c->owed = (int)i;
	if (ret)
		active_exchange_fail(c, ret == -EPROTO ? -EPROTO : -ECONNRESET);
}

static void access_take(struct warp_active_client *c, unsigned int i)
{
	struct warp_active_request *r = c->accesses[i];
	const uint8_t *memory = active_link_access(c, i);

	if (!r)
		return;
	c->accesses[i] = NULL;
	r->result.output = r->op.op == WARP_ACTIVE_OP_READ ? r->op.len : 0;
	if (r->op.op >= WARP_ACTIVE_OP_COMPARE_SWAP)
		memcpy(&r->result.value, memory, 8);
	else if (r->op.op == WARP_ACTIVE_OP_READ && !r->op.stag && !r->orphan)
		memcpy(r->op.buffer, memory, r->op.len);
	active_request_done(r, 0);
}

static void failed_take(struct warp_active_client *c, const struct warp_wc *wc)
{
	unsigned int i = wc->wr_id & 0xffff;
	struct warp_active_request *r = NULL;

	if ((wc->wr_id & ACTIVE_WR_KINDS) == ACTIVE_WR_ACCESS)
		r = c->accesses[i];
	if (r && wc->status == WARP_WC_REMOTE_ACCESS) {
		c->accesses[i] = NULL;
		active_request_done(r, -EACCES);
	}
	active_exchange_fail(c, -ECONNRESET);
}

void active_exchange_take(struct warp_active_client *c, const struct warp_wc *wc)
{
	unsigned int i = wc->wr_id & 0xffff;

	if (c->error)
		return;
	if (wc->status != WARP_WC_SUCCESS) {
		failed_take(c, wc);
		return;
	}
	switch (wc->wr_id & ACTIVE_WR_KINDS) {
	case ACTIVE_WR_RECV:
		receive_take(c, i, wc->byte_len);
		break;
	case ACTIVE_WR_SLOT:
		c->slots[i].sending = false;
		break;
	case ACTIVE_WR_ACCESS:
		access_take(c, i);
		break;
	}
}
