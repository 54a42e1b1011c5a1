/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a client asks for, message by message, in the thread that hears it.
 *
 * A request that makes no sense has no answer: the connection ends. One that is understood and
 * refused is answered. An object arrives in parts, of which each has an answer; memory is taken for
 * what has come, not for what is announced. Where there is no memory for another one, those that
 * have been arriving for longer than a run may take are dropped.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "active/pool.h"
#include "active/session.h"
#include "base/bits.h"
#include "base/clock.h"

void active_upload_drop(struct active_session *s)
{
	if (s->upload.bytes)
		__atomic_sub_fetch(&s->server->uploading, s->upload.room, __ATOMIC_RELAXED);
	free(s->upload.bytes);
	s->upload = (struct active_upload){ 0 };
}

static void answer(struct active_task *task, enum active_type type, enum active_code code,
		   uint64_t value, const char *text)
{
	const struct active_message m = { .type = type,
					  .id = task->m.id,
					  .code = code,
					  .value = value,
					  .text = { (const uint8_t *)text, strlen(text) } };

	active_answer_receive(task->session, task);
	active_answer_send(task->session, &m);
}

/* --- objects ------------------------------------------------------------------------------ */

static bool object_there(struct active_session *s, const uint8_t *hash)
{
	struct active_object *object = active_cache_get(s->server->cache, hash);

	if (object)
		active_cache_put(s->server->cache, object);
	return object;
}

static bool upload_follows(const struct active_upload *u, const struct active_message *m)
{
	return u->size && u->id == m->id && u->got == m->offset && u->size == m->size &&
	       !memcmp(u->hash, m->hash, sizeof(u->hash));
}

/* So that clients which never end theirs do not keep others from loading. True: there was one */
static bool uploads_drop_old(struct active_session *but, uint64_t now)
{
	struct warp_active_server *server = but->server;
	uint64_t most = (uint64_t)server->attr.time_ms * BASE_NS_PER_MS;
	struct base_list *at, *next;
	bool dropped = false;

	pthread_mutex_lock(&server->lock);
	base_list_foreach(at, next, &server->sessions) {
		struct active_session *s = base_list_entry(at, struct active_session, link);

		if (s == but || !s->upload.bytes || now - s->upload.since < most)
			continue;
		active_upload_drop(s);
		dropped = true;
	}
	pthread_mutex_unlock(&server->lock);
	return dropped;
}

/* Room for @len bytes more, at least twice as much as before */
static int upload_grow(struct active_session *s, size_t len)
{
	struct active_upload *u = &s->upload;
	size_t room = base_min(u->size, base_max(2 * u->room, u->got + len));
	uint8_t *bytes;

	if (u->got + len <= u->room)
		return 0;
	if (__atomic_add_fetch(&s->server->uploading, room - u->room, __ATOMIC_RELAXED) >
	    s->server->attr.cache)
		goto err_give_back;
	bytes = realloc(u->bytes, room);
	if (!bytes)
		goto err_give_back;
	u->bytes = bytes;
	u->room = room;
	return 0;
err_give_back:
	__atomic_sub_fetch(&s->server->uploading, room - u->room, __ATOMIC_RELAXED);
	return -ENOMEM;
}

static void upload_add(struct active_task *task, bool alone, uint64_t now)
{
	struct active_session *s = task->session;
	struct active_upload *u = &s->upload;

	if (upload_grow(s, task->m.part.len) &&
	    (!uploads_drop_old(s, now) || upload_grow(s, task->m.part.len))) {
		active_upload_drop(s);
		active_count(s->server, refused, 1);
		answer(task, ACTIVE_LOADED, ACTIVE_BUSY, 0, "the server has no memory for it");
		return;
	}
	memcpy(u->bytes + u->got, task->m.part.at, task->m.part.len);
	u->got += task->m.part.len;
	if (u->got < u->size) {
		answer(task, ACTIVE_LOADED, ACTIVE_OK, u->got, "");
		return;
	}
	task->upload = u->bytes;
	task->upload_len = u->size;
	*u = (struct active_upload){ 0 };
	active_pool_submit(task, alone, now);
}

static void load(struct active_task *task, bool alone, uint64_t now)
{
	struct active_session *s = task->session;
	const struct active_message *m = &task->m;
	char text[80];

	if (!s->may_run) {
		answer(task, ACTIVE_LOADED, ACTIVE_RIGHTS, 0, "this client may not run programs");
	} else if (!upload_follows(&s->upload, m) && object_there(s, m->hash)) {
		answer(task, ACTIVE_LOADED, ACTIVE_OK, m->size, "");
	} else if (m->size > s->server->attr.object_max) {
		snprintf(text, sizeof(text), "objects may have %zu bytes here",
			 s->server->attr.object_max);
		answer(task, ACTIVE_LOADED, ACTIVE_REFUSED, 0, text);
	} else if (!m->offset) {
		active_upload_drop(s);
		s->upload = (struct active_upload){ .id = m->id, .size = m->size, .since = now };
		memcpy(s->upload.hash, m->hash, sizeof(s->upload.hash));
		upload_add(task, alone, now);
	} else if (upload_follows(&s->upload, m)) {
		upload_add(task, alone, now);
	} else {
		answer(task, ACTIVE_LOADED, ACTIVE_MALFORMED, 0,
		       "the part does not follow the one before");
	}
}

/* --- the rest ----------------------------------------------------------------------------- */

static bool greet(struct active_task *task)
{
	struct active_session *s = task->session;
	uint64_t id = task->m.id;
	unsigned int memory;

	if (s->greeted || task->m.type != ACTIVE_HELLO)
		return false;
	s->greeted = true;
	/* Nothing of the session runs yet, so there is memory, and nobody else takes any */
	memory = s->answer_free[--s->answers_free];
	active_answer_receive(s, task);
	active_answer_welcome(s, id, memory);
	return true;
}

static void cancel(struct active_task *task)
{
	active_pool_cancel(task->session, task->m.id);
	answer(task, ACTIVE_CANCEL_DONE, ACTIVE_OK, 0, "");
}

bool active_request_take(struct active_task *task, size_t len, bool alone, uint64_t now)
{
	struct active_session *s = task->session;

	if (active_message_read(task->request, len, &task->m))
		return false;
	if (!s->greeted)
		return greet(task);
	switch (task->m.type) {
	case ACTIVE_LOAD:
		load(task, alone, now);
		return true;
	case ACTIVE_RUN:
	case ACTIVE_INSTALL:
		if (s->may_run)
			active_pool_submit(task, alone, now);
		else
			answer(task, ACTIVE_RESULT, ACTIVE_RIGHTS, 0,
			       "this client may not run programs");
		return true;
	case ACTIVE_CANCEL:
		cancel(task);
		return true;
	default:
		return false;
	}
}
