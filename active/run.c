/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One task's program, from its beginning to its answer, turn by turn; or one object that has
 * arrived.
 *
 * The program sees its arguments at an address of their own. What lies behind them in the memory
 * where they stand is the same client's, or nothing.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "active/kernel.h"
#include "active/pool.h"
#include "active/session.h"
#include "base/bits.h"
#include "base/clock.h"

/* An instruction takes so much longer where there is no JIT */
enum { INTERPRETER = 16 };

static int fail(struct active_message *m, char *text, enum active_code code, const char *format,
		...) __attribute__((format(printf, 4, 5)));

static int fail(struct active_message *m, char *text, enum active_code code, const char *format,
		...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, ACTIVE_WIRE_TEXT_MAX + 1, format, args);
	va_end(args);
	m->code = code;
	return -EINVAL;
}

/* Rights that this run has: those of its client that it asks for */
static int grants_take(struct active_task *task, struct active_message *m, char *text)
{
	const struct active_session *s = task->session;
	struct active_call *call = &task->call;

	call->count = task->m.grants.len / 8;
	for (size_t i = 0; i < call->count; i++) {
		struct active_grant g = active_grant_get(&task->m, i);
		const struct active_view *view;

		if (g.region >= s->view_count)
			return fail(m, text, ACTIVE_MALFORMED, "there is no region %u", g.region);
		view = &s->views[g.region];
		if (!(view->rights & WARP_ACTIVE_RUN))
			return fail(m, text, ACTIVE_RIGHTS, "region %s is not for programs",
				    view->region->name);
		if (g.rights & ~view->rights)
			return fail(m, text, ACTIVE_RIGHTS,
				    "the client does not have the rights 0x%x to region %s",
				    g.rights & ~view->rights, view->region->name);
		call->views[i] = view;
		call->rights[i] = g.rights;
	}
	return 0;
}

/*
 * Aligned, for programs read numbers there. Few go to the run's own room, where they are at the
 * same place in each run; others stay in the message, and the octets before are the name's, which
 * was used.
 */
static void args_align(struct active_task *task)
{
	struct active_span *args = &task->m.args;
	uint8_t *to = task->request + base_align_down((size_t)(args->at - task->request), 8);

	if (args->len && args->len <= EBPF_RUN_ROOM) {
		to = ebpf_run_room(task->run);
		memset(to + args->len, 0, EBPF_RUN_ROOM - args->len);
	}
	memmove(to, args->at, args->len);
	args->at = to;
}

static size_t regions_fill(const struct active_task *task, struct ebpf_region *regions)
{
	const struct active_call *call = &task->call;
	size_t n = 0, room = 64;

	if (task->m.args.len) {
		while (room < task->m.args.len)
			room *= 2;
		regions[n++] = (struct ebpf_region){ .host = (void *)(uintptr_t)task->m.args.at,
						     .addr = ACTIVE_ARGS_ADDR,
						     .size = task->m.args.len,
						     .room = room,
						     .rights = EBPF_MAY_READ | EBPF_MAY_WRITE };
	}
	for (size_t i = 0; i < call->count; i++)
		regions[n++] = active_region_ebpf(call->views[i], call->rights[i]);
	return n;
}

static int program_find(struct active_task *task, uint32_t *entry, struct active_message *m,
			char *text)
{
	char name[ACTIVE_WIRE_NAME_MAX + 1] = { 0 };

	task->object = active_cache_get(task->session->server->cache, task->m.hash);
	if (!task->object)
		return fail(m, text, ACTIVE_UNKNOWN, "the server does not have the object");
	if (task->m.name.len)
		memcpy(name, task->m.name.at, task->m.name.len);
	if (ebpf_object_entry(active_object_program(task->object), *name ? name : NULL, entry))
		return fail(m, text, ACTIVE_NO_FUNCTION, "the object has no function \"%s\"", name);
	return 0;
}

static int run_get(struct active_pool *pool, struct ebpf_run **out)
{
	struct ebpf_run *run = NULL;

	pthread_mutex_lock(&pool->lock);
	if (pool->spares)
		run = pool->spare[--pool->spares];
	pthread_mutex_unlock(&pool->lock);
	if (!run)
		return ebpf_run_create(out);
	*out = run;
	return 0;
}

static void run_put(struct active_pool *pool, struct ebpf_run *run)
{
	pthread_mutex_lock(&pool->lock);
	if (pool->spares < ACTIVE_SPARE_RUNS) {
		pool->spare[pool->spares++] = run;
		run = NULL;
	}
	pthread_mutex_unlock(&pool->lock);
	ebpf_run_destroy(run);
}

static int program_start(struct active_task *task, uint32_t entry, struct active_message *m,
			 char *text)
{
	struct active_session *s = task->session;
	struct ebpf_region regions[ACTIVE_WIRE_REGIONS_MAX + 1];
	struct ebpf_params params = { .entry = entry,
				      .arg = { ACTIVE_ARGS_ADDR, task->m.args.len },
				      .regions = regions,
				      .output = active_answer_output(s, (unsigned int)task->answer),
				      .output_room = task->m.output_room,
				      .cookie = &task->call };
	int ret;

	ret = run_get(&s->server->pool, &task->run);
	if (!ret) {
		args_align(task);
		params.count = regions_fill(task, regions);
		ret = ebpf_run_start(task->run, active_object_program(task->object), &params);
	}
	if (ret == -E2BIG)
		return fail(m, text, ACTIVE_MALFORMED, "too many regions");
	if (ret == -EINVAL)
		return fail(m, text, ACTIVE_MALFORMED, "a region is named twice");
	return ret ? fail(m, text, ACTIVE_BUSY, "the server has no memory for it") : 0;
}

int active_run_begin(struct active_task *task, struct active_message *m, char *text)
{
	struct active_session *s = task->session;
	uint32_t entry = 0;
	int ret;

	*m = (struct active_message){ .type = ACTIVE_RESULT, .id = task->m.id };
	if (task->upload)
		return 0;
	task->fuel_given = s->server->attr.fuel;
	if (task->m.fuel)
		task->fuel_given = base_min(task->m.fuel, task->fuel_given);
	task->fuel = task->fuel_given;
	task->call.heap_used = &s->heap_used;
	task->call.heap_max = s->server->attr.heap_max;
	ret = grants_take(task, m, text);
	if (!ret)
		ret = program_find(task, &entry, m, text);
	if (!ret && task->m.type == ACTIVE_INSTALL)
		task->entry = entry;
	else if (!ret)
		ret = program_start(task, entry, m, text);
	if (ret)
		m->text = (struct active_span){ (uint8_t *)text, strlen(text) };
	return ret;
}

static void answer_fill(const struct active_task *task, const struct ebpf_result *r,
			struct active_message *m, char *text)
{
	static const enum active_code codes[] = {
		[EBPF_DONE] = ACTIVE_OK,	 [EBPF_FUEL] = ACTIVE_FUEL,
		[EBPF_ADDRESS] = ACTIVE_ADDRESS, [EBPF_RIGHTS] = ACTIVE_RIGHTS,
		[EBPF_ALIGN] = ACTIVE_ALIGN,	 [EBPF_DEPTH] = ACTIVE_DEPTH,
		[EBPF_HELPER] = ACTIVE_HELPER,
	};

	*m = (struct active_message){ .type = ACTIVE_RESULT,
				      .id = task->m.id,
				      .code = codes[r->status],
				      .fuel = task->fuel_given - task->fuel };
	m->output.at = active_answer_output(task->session, (unsigned int)task->answer);
	m->output.len = r->output;
	if (r->status == EBPF_DONE) {
		m->value = r->value;
		return;
	}
	m->pc = r->pc;
	m->addr = r->addr;
	m->len = (uint32_t)base_min(r->len, UINT32_MAX);
	m->rights = r->rights;
	ebpf_result_text(r, active_object_program(task->object), text, ACTIVE_WIRE_TEXT_MAX + 1);
	m->text = (struct active_span){ (uint8_t *)text, strlen(text) };
}

/* Why a program that could go on does not */
static const char *stop_reason(const struct active_task *task)
{
	if (__atomic_load_n(&task->cancelled, __ATOMIC_RELAXED)) /* set in active/pool.c */
		return "it was cancelled";
	if (!task->fuel)
		return "the fuel is used up";
	return base_now() >= task->due ? "the time is used up" : NULL;
}

static void stopped_fill(const struct active_task *task, const struct ebpf_result *r,
			 const char *why, struct active_message *m, char *text)
{
	char where[ACTIVE_WIRE_TEXT_MAX + 1];
	const char *rest;

	answer_fill(task, r, m, where);
	rest = strchr(where, ';');
	snprintf(text, ACTIVE_WIRE_TEXT_MAX + 1, "%s%s", why, rest ? rest : "");
	m->text = (struct active_span){ (uint8_t *)text, strlen(text) };
	if (__atomic_load_n(&task->cancelled, __ATOMIC_RELAXED))
		m->code = ACTIVE_CANCELLED;
}

static bool program_turn(struct active_task *task, uint64_t fuel, struct active_message *m,
			 char *text)
{
	const struct ebpf_object *program = active_object_program(task->object);
	uint64_t turn =
		base_min(ebpf_object_has_jit(program) ? fuel : fuel / INTERPRETER, task->fuel);
	struct ebpf_result r;
	const char *why;

	ebpf_run_continue(task->run, turn, &r);
	task->fuel -= turn - r.fuel;
	active_count(task->session->server, fuel, turn - r.fuel);
	why = r.status == EBPF_FUEL ? stop_reason(task) : NULL;
	if (r.status == EBPF_FUEL && !why)
		return false;
	/* Before the answer: its client may take the lock again at once */
	active_locks_break(&task->call);
	if (why)
		stopped_fill(task, &r, why, m, text);
	else
		answer_fill(task, &r, m, text);
	return true;
}

/* An object cannot be interrupted: loader and verifier take a bounded number of steps */
static void object_take(struct active_task *task, struct active_message *m, char *text)
{
	struct active_cache *cache = task->session->server->cache;
	struct active_object *object;
	struct ebpf_error err = { .pc = EBPF_NO_PC };
	int ret = active_cache_load(cache, task->m.hash, task->upload, task->upload_len, &object,
				    &err);

	*m = (struct active_message){ .type = ACTIVE_LOADED, .id = task->m.id };
	if (!ret) {
		m->value = task->upload_len;
		active_cache_put(cache, object);
		return;
	}
	if (ret == -EBADMSG)
		fail(m, text, ACTIVE_MALFORMED, "the object has another hash");
	else if (ret == -ENOMEM)
		fail(m, text, ACTIVE_BUSY, "the server has no memory for it");
	else
		fail(m, text, ACTIVE_REFUSED, "%s", err.text);
	m->pc = err.pc == EBPF_NO_PC ? 0 : err.pc;
	m->text = (struct active_span){ (uint8_t *)text, strlen(text) };
}

/* Nor can this be interrupted; the kernel's verifier has its bounds, too */
static void install(struct active_task *task, struct active_message *m, char *text)
{
	char why[ACTIVE_WIRE_TEXT_MAX];
	int ret = active_kernel_install(task, why, sizeof(why));

	*m = (struct active_message){ .type = ACTIVE_RESULT, .id = task->m.id };
	if (!ret) {
		m->output.at = active_answer_output(task->session, (unsigned int)task->answer);
		m->output.len = sizeof(struct active_wire_place);
		return;
	}
	fail(m, text, ret == -EBUSY || ret == -ENOMEM ? ACTIVE_BUSY : ACTIVE_REFUSED, "%s", why);
	m->text = (struct active_span){ (uint8_t *)text, strlen(text) };
}

bool active_run_turn(struct active_task *task, uint64_t fuel, struct active_message *m, char *text)
{
	if (task->upload)
		object_take(task, m, text);
	else if (task->m.type == ACTIVE_INSTALL)
		install(task, m, text);
	else
		return program_turn(task, fuel, m, text);
	return true;
}

void active_run_end(struct active_task *task)
{
	struct warp_active_server *server = task->session->server;

	if (task->run)
		run_put(&server->pool, task->run);
	if (task->object)
		active_cache_put(server->cache, task->object);
	if (task->upload)
		__atomic_sub_fetch(&server->uploading, task->upload_len, __ATOMIC_RELAXED);
	free(task->upload);
	task->upload = NULL;
	task->run = NULL;
	task->object = NULL;
}
