/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads and writes the messages of Active RDMA.
 *
 * A message is taken only if each length fits, each count is within its limit, each field that
 * must be 0 is 0, and nothing is left over: so what was read is written as the same octets again.
 */
#include "active/wire.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"

#define GET(bits, s, field) base_get_be##bits(&(s)->field)
#define PUT(bits, s, field, v) base_put_be##bits(&(s)->field, v)

/* Takes the first @len octets of @rest; NULL if there are not as many */
static const void *take(struct active_span *rest, size_t len)
{
	const uint8_t *at = rest->at;

	if (len > rest->len)
		return NULL;
	rest->at += len;
	rest->len -= len;
	return at;
}

static bool take_span(struct active_span *rest, size_t len, size_t most, struct active_span *out)
{
	out->at = len <= most ? take(rest, len) : NULL;
	out->len = out->at ? len : 0;
	return out->at;
}

/* --- reading ---------------------------------------------------------------------------------- */

bool active_region_next(struct active_span *rest, struct active_region_info *out)
{
	const struct active_wire_region *w = take(rest, sizeof(*w));

	if (!w)
		return false;
	out->addr = GET(64, w, addr);
	out->size = GET(64, w, size);
	out->stag = GET(32, w, stag);
	out->rights = GET(16, w, rights);
	return take_span(rest, GET(16, w, name), ACTIVE_WIRE_NAME_MAX, &out->name);
}

static bool welcome_read(struct active_span *rest, struct active_message *m)
{
	const struct active_wire_welcome *w = take(rest, sizeof(*w));
	struct active_region_info region;
	struct active_span check;

	if (!w || w->zero)
		return false;
	m->window = GET(32, w, window);
	m->region_count = GET(16, w, regions);
	m->regions = check = *rest;
	for (unsigned int i = 0; i < m->region_count; i++)
		if (!active_region_next(&check, &region))
			return false;
	*rest = check;
	return true;
}

static bool load_read(struct active_span *rest, struct active_message *m)
{
	const struct active_wire_load *w = take(rest, sizeof(*w));

	if (!w)
		return false;
	m->hash = w->hash;
	m->size = GET(32, w, size);
	m->offset = GET(32, w, offset);
	take_span(rest, rest->len, rest->len, &m->part);
	return m->part.len && m->size <= ACTIVE_WIRE_OBJECT_MAX && m->offset < m->size &&
	       m->part.len <= m->size - m->offset;
}

static bool run_read(struct active_span *rest, struct active_message *m)
{
	const struct active_wire_run *w = take(rest, sizeof(*w));

	if (!w)
		return false;
	m->hash = w->hash;
	m->fuel = GET(64, w, fuel);
	m->deadline = GET(32, w, deadline);
	m->output_room = GET(32, w, output);
	return m->output_room <= ACTIVE_WIRE_OUTPUT_MAX &&
	       take_span(rest, GET(16, w, regions) * sizeof(struct active_wire_grant),
			 ACTIVE_WIRE_REGIONS_MAX * sizeof(struct active_wire_grant), &m->grants) &&
	       take_span(rest, GET(16, w, name), ACTIVE_WIRE_NAME_MAX, &m->name) &&
	       take_span(rest, GET(32, w, args), ACTIVE_WIRE_ARGS_MAX, &m->args);
}

static bool answer_read(struct active_span *rest, struct active_message *m)
{
	const struct active_wire_answer *w = take(rest, sizeof(*w));

	if (!w || w->zero || GET(32, w, code) >= ACTIVE_CODES)
		return false;
	m->code = (enum active_code)GET(32, w, code);
	m->pc = GET(32, w, pc);
	m->value = GET(64, w, value);
	m->addr = GET(64, w, addr);
	m->fuel = GET(64, w, fuel);
	m->len = GET(32, w, len);
	m->rights = GET(16, w, rights);
	return take_span(rest, GET(16, w, text), ACTIVE_WIRE_TEXT_MAX, &m->text) &&
	       take_span(rest, GET(32, w, output), ACTIVE_WIRE_OUTPUT_MAX, &m->output) &&
	       (m->type == ACTIVE_RESULT || !m->output.len);
}

static bool nothing_read(struct active_span *rest, struct active_message *m)
{
	return true;
}

static bool (*reader_of(unsigned int type))(struct active_span *, struct active_message *)
{
	switch (type) {
	case ACTIVE_HELLO:
	case ACTIVE_CANCEL:
	case ACTIVE_CANCEL_DONE:
		return nothing_read;
	case ACTIVE_LOAD:
		return load_read;
	case ACTIVE_RUN:
	case ACTIVE_INSTALL:
		return run_read;
	case ACTIVE_WELCOME:
		return welcome_read;
	case ACTIVE_LOADED:
	case ACTIVE_RESULT:
		return answer_read;
	}
	return NULL;
}

int active_message_read(const void *octets, size_t len, struct active_message *out)
{
	struct active_span rest = { octets, len };
	const struct active_wire_head *w = take(&rest, sizeof(*w));
	bool (*read)(struct active_span *, struct active_message *);
	struct active_message m = { 0 };

	if (!w || w->magic != ACTIVE_WIRE_MAGIC || w->version != ACTIVE_WIRE_VERSION || w->zero ||
	    GET(32, w, length) != len)
		return -EPROTO;
	read = reader_of(w->type);
	m.type = (enum active_type)w->type;
	m.id = GET(64, w, id);
	if (!read || !read(&rest, &m) || rest.len)
		return -EPROTO;
	*out = m;
	return 0;
}

struct active_grant active_grant_get(const struct active_message *m, size_t i)
{
	const struct active_wire_grant *w = (const void *)(m->grants.at + i * sizeof(*w));

	return (struct active_grant){ GET(32, w, region), GET(32, w, rights) };
}

/* --- writing ---------------------------------------------------------------------------------- */

struct sink {
	uint8_t *at;
	size_t room;
	bool full;
};

static void put(struct sink *s, const void *octets, size_t len)
{
	s->full |= len > s->room;
	if (s->full || !len)
		return;
	memcpy(s->at, octets, len);
	s->at += len;
	s->room -= len;
}

static void put_span(struct sink *s, struct active_span span, size_t most)
{
	s->full |= span.len > most;
	put(s, span.at, span.len);
}

void active_grant_put(uint8_t to[8], const struct active_grant *grant)
{
	struct active_wire_grant *w = (void *)to;

	PUT(32, w, region, grant->region);
	PUT(32, w, rights, grant->rights);
}

int active_region_put(const struct active_region_info *region, void *to, size_t room)
{
	struct sink s = { to, room, false };
	struct active_wire_region w;

	PUT(64, &w, addr, region->addr);
	PUT(64, &w, size, region->size);
	PUT(32, &w, stag, region->stag);
	PUT(16, &w, rights, (uint16_t)region->rights);
	PUT(16, &w, name, (uint16_t)region->name.len);
	put(&s, &w, sizeof(w));
	put_span(&s, region->name, ACTIVE_WIRE_NAME_MAX);
	return s.full ? -EMSGSIZE : (int)(room - s.room);
}

static void welcome_write(struct sink *s, const struct active_message *m)
{
	struct active_wire_welcome w = { 0 };

	s->full |= m->region_count > UINT16_MAX;
	PUT(32, &w, window, m->window);
	PUT(16, &w, regions, (uint16_t)m->region_count);
	put(s, &w, sizeof(w));
	put(s, m->regions.at, m->regions.len);
}

static void load_write(struct sink *s, const struct active_message *m)
{
	struct active_wire_load w;

	s->full |= !m->part.len || m->size > ACTIVE_WIRE_OBJECT_MAX || m->offset >= m->size ||
		   m->part.len > m->size - m->offset;
	memcpy(w.hash, m->hash, sizeof(w.hash));
	PUT(32, &w, size, m->size);
	PUT(32, &w, offset, m->offset);
	put(s, &w, sizeof(w));
	put(s, m->part.at, m->part.len);
}

static void run_write(struct sink *s, const struct active_message *m)
{
	size_t regions = m->grants.len / sizeof(struct active_wire_grant);
	struct active_wire_run w;

	s->full |= m->output_room > ACTIVE_WIRE_OUTPUT_MAX ||
		   m->grants.len % sizeof(struct active_wire_grant);
	memcpy(w.hash, m->hash, sizeof(w.hash));
	PUT(64, &w, fuel, m->fuel);
	PUT(32, &w, deadline, m->deadline);
	PUT(32, &w, args, (uint32_t)m->args.len);
	PUT(32, &w, output, m->output_room);
	PUT(16, &w, regions, (uint16_t)regions);
	PUT(16, &w, name, (uint16_t)m->name.len);
	put(s, &w, sizeof(w));
	put_span(s, m->grants, ACTIVE_WIRE_REGIONS_MAX * sizeof(struct active_wire_grant));
	put_span(s, m->name, ACTIVE_WIRE_NAME_MAX);
	put_span(s, m->args, ACTIVE_WIRE_ARGS_MAX);
}

static void answer_write(struct sink *s, const struct active_message *m)
{
	struct active_wire_answer w = { 0 };

	s->full |= m->code >= ACTIVE_CODES || (m->type != ACTIVE_RESULT && m->output.len);
	PUT(32, &w, code, m->code);
	PUT(32, &w, pc, m->pc);
	PUT(64, &w, value, m->value);
	PUT(64, &w, addr, m->addr);
	PUT(64, &w, fuel, m->fuel);
	PUT(32, &w, len, m->len);
	PUT(32, &w, output, (uint32_t)m->output.len);
	PUT(16, &w, rights, (uint16_t)m->rights);
	PUT(16, &w, text, (uint16_t)m->text.len);
	put(s, &w, sizeof(w));
	put_span(s, m->text, ACTIVE_WIRE_TEXT_MAX);
	s->full |= m->output.len > ACTIVE_WIRE_OUTPUT_MAX;
}

static void body_write(struct sink *s, const struct active_message *m)
{
	switch (m->type) {
	case ACTIVE_HELLO:
	case ACTIVE_CANCEL:
	case ACTIVE_CANCEL_DONE:
	case ACTIVE_ASK:
	case ACTIVE_TOLD:
		break;
	case ACTIVE_LOAD:
		load_write(s, m);
		break;
	case ACTIVE_RUN:
	case ACTIVE_INSTALL:
		run_write(s, m);
		break;
	case ACTIVE_WELCOME:
		welcome_write(s, m);
		break;
	case ACTIVE_LOADED:
	case ACTIVE_RESULT:
		answer_write(s, m);
		break;
	}
}

int active_message_write_front(const struct active_message *m, void *to, size_t room)
{
	struct active_wire_head w = { .magic = ACTIVE_WIRE_MAGIC,
				      .version = ACTIVE_WIRE_VERSION,
				      .type = (uint8_t)m->type };
	struct sink s = { to, room, false };

	put(&s, &w, sizeof(w));
	body_write(&s, m);
	if (s.full)
		return -EMSGSIZE;
	PUT(32, &w, length, (uint32_t)(room - s.room + m->output.len));
	PUT(64, &w, id, m->id);
	memcpy(to, &w, sizeof(w));
	return (int)(room - s.room);
}

int active_message_write(const struct active_message *m, void *to, size_t room)
{
	int front = active_message_write_front(m, to, room);

	if (front < 0 || !m->output.len)
		return front;
	if (m->output.len > room - (size_t)front)
		return -EMSGSIZE;
	memcpy((uint8_t *)to + front, m->output.at, m->output.len);
	return front + (int)m->output.len;
}

const char *active_code_text(enum active_code code)
{
	static const char *const text[ACTIVE_CODES] = {
		[ACTIVE_OK] = "done",
		[ACTIVE_FUEL] = "the fuel or the time is used up",
		[ACTIVE_ADDRESS] = "an access outside of all regions",
		[ACTIVE_RIGHTS] = "an access that the region does not allow",
		[ACTIVE_ALIGN] = "a misaligned atomic",
		[ACTIVE_DEPTH] = "too many functions deep",
		[ACTIVE_HELPER] = "a helper refused",
		[ACTIVE_UNKNOWN] = "no such object",
		[ACTIVE_REFUSED] = "the object was refused",
		[ACTIVE_BUSY] = "too much is queued already",
		[ACTIVE_CANCELLED] = "cancelled",
		[ACTIVE_MALFORMED] = "the request makes no sense",
		[ACTIVE_NO_FUNCTION] = "the object has no such function",
	};

	return (unsigned int)code < ACTIVE_CODES ? text[code] : "unknown code";
}
