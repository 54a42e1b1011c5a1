/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client of ARFS: programs that the server runs, and its connection, which may be over.
 *
 * Locks: client.lock, for reading by each call while it uses the connection, for writing by the one
 * that makes a new connection.
 */
#include "client.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/examples/endpoint.h"
#include "link.h"

enum { TRIES = 4, AGAIN_MS = 50, ARGS_MAX = 16384, PARTS_MAX = 8 };

struct client {
	struct client_attr attr;
	struct warp_active_object *object;
	pthread_rwlock_t lock;
	struct link link;    /* client NULL: there is none */
	unsigned long count; /* of connections */
	uint64_t changes;    /* atomic; pairs with client_changes() */
};

/* The object that the build made of arfs.bpf.c */
extern const unsigned char active_object[], active_object_end[];

/* --- the connection --- */

int link_access(const struct link *l, struct warp_active_access *access, uint64_t *old)
{
	struct warp_active_request *r;
	struct warp_active_result result;
	int ret;

	access->region = l->region.number;
	ret = warp_active_access(l->client, access, &r);
	if (!ret)
		ret = warp_active_wait(r, -1, &result);
	if (!ret && old)
		*old = result.value;
	return ret;
}

static int super_read(struct link *l)
{
	struct warp_active_access read = { .op = WARP_ACTIVE_OP_READ,
					   .buffer = &l->super,
					   .len = sizeof(l->super) };
	int ret = l->region.size < sizeof(l->super) ? -EPROTO : link_access(l, &read, NULL);

	if (!ret && (l->super.magic != ARFS_MAGIC || l->super.version != ARFS_VERSION))
		ret = -EPROTO;
	return ret;
}

int link_open(struct link *l, const struct client_attr *attr)
{
	const struct warp_active_client_attr how = { .spin_us = attr->spin_us, .window = 64 };
	int ret;

	*l = (struct link){ 0 };
	ret = warp_active_connect((const struct sockaddr *)&attr->addr,
				  endpoint_addr_len(&attr->addr), &how, &l->client);
	if (ret)
		return ret;
	ret = warp_active_region_find(l->client, "arfs", &l->region);
	if (!ret)
		ret = super_read(l);
	if (ret)
		link_close(l);
	return ret;
}

void link_close(struct link *l)
{
	if (l->client)
		warp_active_disconnect(l->client);
	l->client = NULL;
}

static void wait_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

/* Connection number @old is over; another thread may have made the next one */
static int link_again(struct client *c, unsigned long old)
{
	int ret = -ECONNRESET;

	pthread_rwlock_wrlock(&c->lock);
	for (unsigned int ms = 0; c->count == old; ms += AGAIN_MS) {
		link_close(&c->link);
		ret = link_open(&c->link, &c->attr);
		if (!ret)
			c->count++;
		else if (ms >= c->attr.wait_ms)
			break;
		else
			wait_ms(AGAIN_MS);
	}
	if (c->count != old)
		ret = 0;
	pthread_rwlock_unlock(&c->lock);
	return ret;
}

int client_open(const struct client_attr *attr, struct client **out)
{
	struct client *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	c->attr = *attr;
	pthread_rwlock_init(&c->lock, NULL);
	ret = warp_active_object_create(active_object, (size_t)(active_object_end - active_object),
					&c->object);
	if (!ret)
		ret = link_open(&c->link, attr);
	if (ret)
		client_close(c);
	else
		*out = c;
	return ret;
}

void client_close(struct client *c)
{
	link_close(&c->link);
	warp_active_object_destroy(c->object);
	pthread_rwlock_destroy(&c->lock);
	free(c);
}

/* --- one call --- */

/* What a call does with a connection; it is called again with the next one */
typedef long (*way)(struct client *c, void *arg);

/* Does it, on a new connection if need be */
static long with_link(struct client *c, way do_it, void *arg)
{
	long ret = -ECONNRESET;

	for (int i = 0; i < TRIES && ret == -ECONNRESET; i++) {
		unsigned long count;

		pthread_rwlock_rdlock(&c->lock);
		count = c->count;
		if (c->link.client)
			ret = do_it(c, arg);
		pthread_rwlock_unlock(&c->lock);
		if (ret == -ECONNRESET && link_again(c, count))
			return -EIO;
	}
	return ret == -ECONNRESET ? -EIO : ret;
}

/* A run, with what stands behind struct arfs_ask */
struct call {
	const char *function;
	struct warp_active_run *run;
	struct warp_active_result result;
	unsigned int rights;
	bool twice, sent;
};

/* A handler may interrupt it; what is under way goes on to write into the caller's memory */
static int answer_wait(struct warp_active_request *r, struct warp_active_result *out)
{
	int ret;

	do {
		ret = warp_active_wait(r, -1, out);
	} while (ret == -EINTR);
	return ret;
}

static long call_once(struct client *c, void *arg)
{
	struct call *call = arg;
	const struct warp_active_grant grant = { c->link.region.number, call->rights };
	struct warp_active_request *r;
	int ret;

	if (call->sent && !call->twice)
		return -EIO;
	call->run->grants = &grant;
	call->run->grant_count = 1;
	/* Takes in what has come, so that a connection that has ended is known to have */
	if (!call->twice)
		warp_active_poll(c->link.client, &r, 1);
	ret = warp_active_start(c->link.client, call->run, &r);
	if (ret)
		return ret;
	call->sent = true;
	return answer_wait(r, &call->result);
}

/* What the program returned; a run that the server ended is damage or too much for it */
static long call_value(const struct call *call)
{
	switch (call->result.code) {
	case WARP_ACTIVE_OK:
		return (long)call->result.value;
	case WARP_ACTIVE_BUSY:
	case WARP_ACTIVE_FUEL:
		return -EBUSY;
	case WARP_ACTIVE_RIGHTS:
		return -EROFS;
	default:
		return -EUCLEAN;
	}
}

int client_run(struct client *c, struct warp_active_run *run, unsigned int rights,
	       struct warp_active_result *result)
{
	struct call call = { .run = run, .rights = rights, .twice = true };
	long ret = with_link(c, call_once, &call);

	*result = call.result;
	return (int)ret;
}

struct words {
	uint8_t bytes[ARGS_MAX];
	size_t len;
};

static int words_add(struct words *w, const void *from, size_t len)
{
	if (len > sizeof(w->bytes) - w->len)
		return -ENAMETOOLONG;
	if (len)
		memcpy(w->bytes + w->len, from, len);
	w->len += len;
	return 0;
}

enum call_kind { CALL_READS, CALL_AGAIN, CALL_ONCE }; /* done twice: no matter, no matter, never */

static long call(struct client *c, const char *function, const struct words *w, enum call_kind kind,
		 void *to, size_t room, size_t *got)
{
	struct warp_active_run run = { .object = c->object,
				       .function = function,
				       .args = w->bytes,
				       .args_len = w->len,
				       .output = to,
				       .output_room = room };
	struct call call = { .run = &run, .twice = kind != CALL_ONCE };
	const struct arfs_ask *ask = (const void *)w->bytes;
	long ret;

	call.rights = WARP_ACTIVE_READ;
	if (kind != CALL_READS || (ask->flags & ARFS_LOCKED))
		call.rights |= WARP_ACTIVE_WRITE;
	ret = with_link(c, call_once, &call);
	if (got)
		*got = call.result.output;
	return ret ? ret : call_value(&call);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* --- reads --- */

/* One read in either way, until nothing was changed meanwhile */
struct look {
	struct client *c;
	const char *function, *name;
	uint64_t node, offset;
	uint32_t flags;
	void *to;
	size_t len, got;
	long (*alone)(const struct link *l, struct look *look);
};

static long look_alone(struct client *c, void *arg)
{
	struct look *look = arg;

	return look->alone(&c->link, look);
}

static long look_active(struct look *look, uint32_t flags)
{
	struct arfs_ask ask = { .node = look->node,
				.offset = look->offset,
				.size = look->len,
				.flags = look->flags | flags };
	struct words w = { .len = 0 };
	int ret;

	ask.name_len = look->name ? (uint32_t)strlen(look->name) : 0;
	words_add(&w, &ask, sizeof(ask));
	ret = words_add(&w, look->name, ask.name_len);
	return ret ? ret
		   : call(look->c, look->function, &w, CALL_READS, look->to, look->len, &look->got);
}

static long look(struct look *look)
{
	long ret = -EAGAIN;

	if (look->name && strlen(look->name) > ARFS_NAME_MAX)
		return -ENAMETOOLONG;
	for (int i = 0; i < TRIES && ret == -EAGAIN && look->c->attr.one_sided; i++)
		ret = with_link(look->c, look_alone, look);
	for (int i = 0; i < TRIES && ret == -EAGAIN; i++)
		ret = look_active(look, 0);
	/* With the lock nothing changes; who may not take it goes on trying */
	for (int i = 0; i < 1000 && ret == -EAGAIN; i++) {
		ret = look_active(look, ARFS_LOCKED);
		if (ret == -EROFS)
			ret = look_active(look, 0);
	}
	return ret;
}

static long lookup_alone(const struct link *l, struct look *look)
{
	return one_sided_lookup(l, look->node, look->name, look->to);
}

int client_lookup(struct client *c, uint64_t dir, const char *name, struct arfs_attr *out)
{
	struct look l = { .c = c, .function = "lookup", .name = name, .node = dir };

	l.to = out;
	l.len = sizeof(*out);
	l.alone = lookup_alone;
	return (int)look(&l);
}

static long getattr_alone(const struct link *l, struct look *look)
{
	return one_sided_getattr(l, look->node, look->to);
}

int client_getattr(struct client *c, uint64_t node, struct arfs_attr *out)
{
	struct look l = { .c = c, .function = "getattr", .node = node };

	l.to = out;
	l.len = sizeof(*out);
	l.alone = getattr_alone;
	return (int)look(&l);
}

static long list_alone(const struct link *l, struct look *look)
{
	long ret = one_sided_list(l, look->node, look->offset, look->to, look->len);

	if (ret >= 0)
		look->got = (size_t)ret;
	return ret < 0 ? ret : 0;
}

long client_list(struct client *c, uint64_t dir, uint64_t offset, uint32_t flags, void *to,
		 size_t room)
{
	struct look l = { .c = c, .function = "readdir", .node = dir, .offset = offset };
	long ret;

	if (flags && c->attr.one_sided)
		return -EOPNOTSUPP;
	l.flags = flags;
	l.to = to;
	l.len = room < ARFS_LIST_MAX ? room : ARFS_LIST_MAX;
	l.alone = list_alone;
	ret = look(&l);
	return ret ? ret : (long)l.got;
}

static long read_alone(const struct link *l, struct look *look)
{
	return one_sided_read(l, look->node, look->offset, look->to, look->len);
}

/* Reads of a file that are under way at once */
struct parts {
	struct warp_active_grant grant;
	unsigned int count;
	struct part {
		struct arfs_ask ask;
		struct warp_active_run run;
		struct warp_active_request *request;
		struct warp_active_result result;
	} list[PARTS_MAX];
};

/* All of them, or an error of the connection */
static long parts_run(struct client *c, void *arg)
{
	struct parts *ps = arg;
	unsigned int n = 0;
	int ret = 0;

	ps->grant = (struct warp_active_grant){ c->link.region.number, WARP_ACTIVE_READ };
	for (; n < ps->count && !ret; n += !ret)
		ret = warp_active_start(c->link.client, &ps->list[n].run, &ps->list[n].request);
	for (unsigned int i = 0; i < n; i++) {
		int one = answer_wait(ps->list[i].request, &ps->list[i].result);

		ret = ret ? ret : one;
	}
	return ret;
}

static void parts_fill(struct parts *ps, struct client *c, const struct look *l, size_t len)
{
	char *to = l->to;

	for (ps->count = 0; ps->count < PARTS_MAX && len; ps->count++) {
		struct part *p = &ps->list[ps->count];
		size_t n = len < ARFS_READ_MAX ? len : ARFS_READ_MAX,
		       at = ps->count * ARFS_READ_MAX;

		p->ask = (struct arfs_ask){ .node = l->node, .offset = l->offset + at, .size = n };
		p->run = (struct warp_active_run){ .object = c->object,
						   .function = l->function,
						   .args = &p->ask,
						   .args_len = sizeof(p->ask),
						   .grants = &ps->grant,
						   .grant_count = 1,
						   .output = to + at,
						   .output_room = n };
		len -= n;
	}
}

/* The first of these bytes, if nothing was changed meanwhile. *end: they are all that there are */
static size_t parts_read(struct client *c, const struct look *l, size_t len, bool *end)
{
	struct parts *ps = malloc(sizeof(*ps));
	size_t done = 0;

	if (!ps)
		return 0;
	parts_fill(ps, c, l, len);
	if (!with_link(c, parts_run, ps))
		for (unsigned int i = 0; i < ps->count; i++) {
			const struct warp_active_result *r = &ps->list[i].result;

			/* Not more than has come, whatever a server says */
			if (r->code != WARP_ACTIVE_OK || r->value > r->output)
				break;
			done += (size_t)r->value;
			*end = r->value < ps->list[i].ask.size;
			if (*end)
				break;
		}
	free(ps);
	return done;
}

long client_read(struct client *c, uint64_t node, uint64_t offset, void *to, size_t len)
{
	struct look l = { .c = c, .function = "read", .node = node, .offset = offset };
	bool end = false;
	size_t done = 0;
	long ret = 0;

	l.alone = read_alone;
	l.to = to;
	if (!c->attr.one_sided && len > ARFS_READ_MAX)
		done = parts_read(c, &l, len, &end);
	while (done < len && !end) {
		l.offset = offset + done;
		l.to = (char *)to + done;
		l.len = len - done < ARFS_READ_MAX ? len - done : ARFS_READ_MAX;
		ret = look(&l);
		if (ret > 0 && (size_t)ret > l.len)
			ret = -EUCLEAN;
		if (ret <= 0)
			break;
		done += (size_t)ret;
		if ((size_t)ret < l.len)
			break;
	}
	return done ? (long)done : ret;
}

int client_space(struct client *c, struct arfs_space *out)
{
	const struct arfs_ask ask = { 0 };
	struct words w = { .len = 0 };

	words_add(&w, &ask, sizeof(ask));
	return (int)call(c, "space", &w, CALL_READS, out, sizeof(*out), NULL);
}

/* --- changes --- */

uint64_t client_changes(const struct client *c)
{
	return __atomic_load_n(&c->changes, __ATOMIC_ACQUIRE);
}

/* The server has done it, or may have: what was asked before is of before it */
static void changed(struct client *c)
{
	__atomic_fetch_add(&c->changes, 1, __ATOMIC_RELEASE);
}

int client_change(struct client *c, const char *what, const struct arfs_ask *ask, const char *name,
		  const char *other, struct arfs_changed *out)
{
	/* A new size or owner is the same when it is set twice; a name is there already */
	enum call_kind kind = strcmp(what, "setattr") ? CALL_ONCE : CALL_AGAIN;
	struct arfs_ask all = *ask;
	struct words w = { .len = 0 };
	int ret;

	all.now = now_ns();
	all.name_len = name ? (uint32_t)strlen(name) : 0;
	all.other_len = other ? (uint32_t)strlen(other) : 0;
	words_add(&w, &all, sizeof(all));
	ret = words_add(&w, name, all.name_len);
	if (!ret)
		ret = words_add(&w, other, all.other_len);
	if (!ret) {
		ret = (int)call(c, what, &w, kind, out, sizeof(*out), NULL);
		changed(c);
	}
	return ret;
}

static long write_part(struct client *c, const struct arfs_ask *ask, const void *from,
		       struct arfs_written *out)
{
	struct words w = { .len = 0 };

	words_add(&w, ask, sizeof(*ask));
	words_add(&w, from, ask->size);
	return call(c, "write", &w, ask->flags & ARFS_APPEND ? CALL_ONCE : CALL_AGAIN, out,
		    sizeof(*out), NULL);
}

/* Parts end at blocks. What is appended stays together, unless others append at the same time */
long client_write(struct client *c, uint64_t node, uint64_t offset, uint32_t flags,
		  const void *from, size_t len)
{
	struct arfs_ask ask = { .node = node, .offset = offset, .flags = flags, .now = now_ns() };
	struct arfs_written written;
	size_t done = 0;
	long ret = 0;

	while (done < len) {
		size_t part = ARFS_DATA_MAX - ask.offset % ARFS_BLOCK;

		ask.size = len - done < part ? len - done : part;
		ret = write_part(c, &ask, (const char *)from + done, &written);
		if (ret)
			break;
		done += ask.size;
		ask.offset = written.offset + ask.size;
	}
	changed(c);
	return done ? (long)done : ret;
}

int client_simple(struct client *c, const char *what, uint64_t node, uint32_t flags)
{
	const struct arfs_ask ask = { .node = node, .flags = flags, .now = now_ns() };
	struct words w = { .len = 0 };

	words_add(&w, &ask, sizeof(ask));
	return (int)call(c, what, &w, CALL_AGAIN, NULL, 0, NULL);
}
