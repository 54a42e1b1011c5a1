/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of Active RDMA: each type as octets, written and read again; and what is not a message.
 */
#include "active/wire.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"

enum { ROOM = 1 << 18 };

static uint8_t octets[ROOM], again[ROOM], big[1 << 17];
static const uint8_t hash[ACTIVE_WIRE_HASH] = { 1, 2, 3, 4 };

#define SPAN(text)                                        \
	{                                                 \
		(const uint8_t *)(text), sizeof(text) - 1 \
	}

static size_t written(const struct active_message *m)
{
	int len = active_message_write(m, octets, ROOM);

	cr_assert_gt(len, 0);
	return (size_t)len;
}

static bool span_same(struct active_span a, struct active_span b)
{
	return a.len == b.len && (!a.len || !memcmp(a.at, b.at, a.len));
}

/* Reads the first @len octets from a place behind which nobody may read */
static int read_guarded(size_t len, struct active_message *got)
{
	static uint8_t *end;

	if (!end) {
		end = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
		cr_assert_neq((void *)end, MAP_FAILED);
		end += ROOM;
		cr_assert_not(mprotect(end, 4096, PROT_NONE));
	}
	memcpy(end - len, octets, len);
	return active_message_read(end - len, len, got);
}

/* Written, read, and written again as the same octets */
static void returns(const struct active_message *m)
{
	size_t len = written(m);
	struct active_message got;

	cr_assert_not(active_message_read(octets, len, &got));
	cr_assert_eq(active_message_write(&got, again, ROOM), (int)len);
	cr_assert_arr_eq(octets, again, len);
	cr_assert(got.type == m->type && got.id == m->id && got.code == m->code);
	cr_assert(got.fuel == m->fuel && got.deadline == m->deadline && got.size == m->size);
	cr_assert(got.offset == m->offset && got.output_room == m->output_room);
	cr_assert(got.value == m->value && got.addr == m->addr && got.pc == m->pc);
	cr_assert(got.len == m->len && got.rights == m->rights && got.window == m->window);
	cr_assert(span_same(got.name, m->name) && span_same(got.args, m->args));
	cr_assert(span_same(got.text, m->text) && span_same(got.output, m->output));
	cr_assert(span_same(got.part, m->part) && span_same(got.grants, m->grants));
	cr_assert(!m->hash || !memcmp(got.hash, m->hash, sizeof(hash)));
	/* one octet less or more is no message, whatever the head says */
	for (size_t cut = 0; cut < len; cut += 1 + len / 200) {
		cr_assert_eq(read_guarded(cut, &got), -EPROTO);
		base_put_be32(octets + 4, (uint32_t)cut);
		if (m->type != ACTIVE_LOAD || cut <= 56)
			cr_assert_eq(read_guarded(cut, &got), -EPROTO, "%zu", cut);
		base_put_be32(octets + 4, (uint32_t)len);
	}
	base_put_be32(octets + 4, (uint32_t)len + 1);
	octets[len] = 0;
	if (m->type != ACTIVE_LOAD)
		cr_assert_eq(active_message_read(octets, len + 1, &got), -EPROTO);
	cr_assert_eq(active_message_write(m, again, len - 1), -EMSGSIZE);
}

static size_t grants_put(uint8_t *to)
{
	static const struct active_grant grants[] = { { 7, 3 }, { 0xffffffff, 15 } };

	active_grant_put(to, &grants[0]);
	active_grant_put(to + 8, &grants[1]);
	return 16;
}

Test(active_wire, each_type_returns)
{
	uint8_t grants[16];
	struct active_message run = { .type = ACTIVE_RUN,
				      .id = 0x0102030405060708,
				      .hash = hash,
				      .fuel = 1ull << 40,
				      .deadline = 5000,
				      .output_room = 65536,
				      .name = SPAN("walk"),
				      .args = SPAN("arguments") };

	run.grants = (struct active_span){ grants, grants_put(grants) };
	returns(&run);
	run.type = ACTIVE_INSTALL;
	returns(&run);
	returns(&(struct active_message){ .type = ACTIVE_HELLO, .id = 1 });
	returns(&(struct active_message){ .type = ACTIVE_CANCEL, .id = UINT64_MAX });
	returns(&(struct active_message){ .type = ACTIVE_LOAD,
					  .id = 2,
					  .hash = hash,
					  .size = 100,
					  .offset = 90,
					  .part = SPAN("0123456789") });
	returns(&(struct active_message){ .type = ACTIVE_LOADED,
					  .id = 2,
					  .code = ACTIVE_REFUSED,
					  .pc = 7,
					  .text = SPAN("r0 is not initialised") });
	returns(&(struct active_message){ .type = ACTIVE_RESULT,
					  .id = 3,
					  .code = ACTIVE_RIGHTS,
					  .pc = 9,
					  .value = 1,
					  .addr = 0x1000,
					  .len = 8,
					  .fuel = 77,
					  .rights = 2,
					  .text = SPAN("x"),
					  .output = SPAN("out") });
}

Test(active_wire, octets_of_a_run)
{
	const struct active_message m = { .type = ACTIVE_RUN,
					  .id = 1,
					  .hash = hash,
					  .fuel = 2,
					  .name = SPAN("f"),
					  .args = SPAN("ab") };
	static const uint8_t head[16] = { 0xac, 1, 3, 0, 0, 0, 0, 75, 0, 0, 0, 0, 0, 0, 0, 1 };
	static const uint8_t rest[] = { 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0,   0,	0,  0,
					0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 'f', 'a', 'b' };

	cr_assert_eq(written(&m), 75);
	cr_assert_arr_eq(octets, head, sizeof(head));
	cr_assert_arr_eq(octets + 16, hash, sizeof(hash));
	cr_assert_arr_eq(octets + 48, rest, sizeof(rest));
}

Test(active_wire, grants)
{
	struct active_message m = { .type = ACTIVE_RUN, .hash = hash }, got;
	uint8_t grants[16];

	m.grants = (struct active_span){ grants, grants_put(grants) };
	cr_assert_not(active_message_read(octets, written(&m), &got));
	cr_assert_eq(got.grants.len, 16);
	cr_assert(active_grant_get(&got, 0).region == 7 && active_grant_get(&got, 0).rights == 3);
	cr_assert_eq(active_grant_get(&got, 1).region, 0xffffffff);
}

Test(active_wire, regions_of_a_welcome)
{
	static const struct active_region_info regions[] = {
		{ 0x1000, 4096, 0x55, 3, SPAN("table") },
		{ 1ull << 63, UINT64_MAX, 0, 15, SPAN("") },
	};
	struct active_message m = { .type = ACTIVE_WELCOME, .window = 16, .region_count = 2 }, got;
	struct active_region_info info;
	struct active_span rest;
	int first = active_region_put(&regions[0], big, sizeof(big));
	int second = active_region_put(&regions[1], big + first, sizeof(big));

	cr_assert(first == 29 && second == 24);
	m.regions = (struct active_span){ big, (size_t)(first + second) };
	returns(&m);
	cr_assert_not(active_message_read(octets, written(&m), &got));
	rest = got.regions;
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert(active_region_next(&rest, &info));
		cr_assert(info.addr == regions[i].addr && info.size == regions[i].size);
		cr_assert(info.stag == regions[i].stag && info.rights == regions[i].rights);
		cr_assert(span_same(info.name, regions[i].name));
	}
	cr_assert_not(active_region_next(&rest, &info));
	/* a count that is more or less than there are */
	base_put_be16(octets + 20, 3);
	cr_assert_eq(active_message_read(octets, 16 + 8 + 53, &got), -EPROTO);
	base_put_be16(octets + 20, 1);
	cr_assert_eq(active_message_read(octets, 16 + 8 + 53, &got), -EPROTO);
	cr_assert_eq(active_region_put(&regions[0], big, 28), -EMSGSIZE);
}

Test(active_wire, limits)
{
	struct active_span long_name = { big, ACTIVE_WIRE_NAME_MAX + 1 };
	struct active_span long_args = { big, ACTIVE_WIRE_ARGS_MAX + 1 };
	struct active_span long_output = { big, ACTIVE_WIRE_OUTPUT_MAX + 1 };
	struct active_span long_text = { big, ACTIVE_WIRE_TEXT_MAX + 1 };
	struct active_span many_grants = { big, 8 * (ACTIVE_WIRE_REGIONS_MAX + 1) };
	struct active_span part = { big, 10 };
	const struct active_message bad[] = {
		{ .type = ACTIVE_RUN, .hash = hash, .name = long_name },
		{ .type = ACTIVE_RUN, .hash = hash, .args = long_args },
		{ .type = ACTIVE_RUN, .hash = hash, .grants = many_grants },
		{ .type = ACTIVE_RUN, .hash = hash, .grants = { big, 7 } },
		{ .type = ACTIVE_RUN, .hash = hash, .output_room = ACTIVE_WIRE_OUTPUT_MAX + 1 },
		{ .type = ACTIVE_RESULT, .output = long_output },
		{ .type = ACTIVE_RESULT, .text = long_text },
		{ .type = ACTIVE_RESULT, .code = ACTIVE_CODES },
		{ .type = ACTIVE_LOADED, .output = part },
		{ .type = ACTIVE_LOAD, .hash = hash, .size = 10 },
		{ .type = ACTIVE_LOAD, .hash = hash, .size = 9, .part = part },
		{ .type = ACTIVE_LOAD, .hash = hash, .size = 19, .offset = 10, .part = part },
		{ .type = ACTIVE_LOAD, .hash = hash, .size = 10, .offset = 10, .part = part },
		{ .type = ACTIVE_LOAD,
		  .hash = hash,
		  .size = ACTIVE_WIRE_OBJECT_MAX + 1,
		  .part = part },
	};

	for (size_t i = 0; i < base_array_size(bad); i++)
		cr_assert_eq(active_message_write(&bad[i], octets, ROOM), -EMSGSIZE, "row %zu", i);
	cr_assert_eq(active_region_put(&(struct active_region_info){ .name = long_name }, octets,
				       ROOM),
		     -EMSGSIZE);
}

/* Over a limit, and all lengths fit: what is too much of one is taken from the arguments */
Test(active_wire, limits_of_what_is_read)
{
	struct active_message m = { .type = ACTIVE_RUN, .hash = hash, .args = { big, 16000 } }, got;
	size_t len = written(&m);

	base_put_be16(octets + 16 + 54, 255);
	base_put_be32(octets + 16 + 44, 16000 - 255);
	cr_assert_not(active_message_read(octets, len, &got));
	base_put_be16(octets + 16 + 54, 256);
	base_put_be32(octets + 16 + 44, 16000 - 256);
	cr_assert_eq(active_message_read(octets, len, &got), -EPROTO);
	base_put_be16(octets + 16 + 54, 0);
	base_put_be16(octets + 16 + 52, 64);
	base_put_be32(octets + 16 + 44, 16000 - 64 * 8);
	cr_assert_not(active_message_read(octets, len, &got));
	base_put_be16(octets + 16 + 52, 65);
	base_put_be32(octets + 16 + 44, 16000 - 65 * 8);
	cr_assert_eq(active_message_read(octets, len, &got), -EPROTO);
}

/* The same limits where a peer does not keep them: lengths in a message that was good */
Test(active_wire, lengths_that_lie)
{
	static const struct {
		size_t at;
		uint32_t v;
		int size;
	} rows[] = {
		{ 16 + 44, 17000, 4 }, { 16 + 44, UINT32_MAX, 4 },
		{ 16 + 48, 65537, 4 }, { 16 + 52, 65, 2 },
		{ 16 + 52, 65535, 2 }, { 16 + 54, 256, 2 },
		{ 0, 0xad, 1 },	       { 1, 2, 1 },
		{ 2, 0, 1 },	       { 2, 0x80, 1 },
		{ 2, 6, 1 },	       { 3, 1, 1 },
		{ 2, 0x86, 1 },
	};
	struct active_message m = { .type = ACTIVE_RUN, .hash = hash, .args = { big, 16000 } }, got;

	for (size_t i = 0; i < base_array_size(rows); i++) {
		size_t len = written(&m);

		if (rows[i].size == 4)
			base_put_be32(octets + rows[i].at, rows[i].v);
		else if (rows[i].size == 2)
			base_put_be16(octets + rows[i].at, (uint16_t)rows[i].v);
		else
			octets[rows[i].at] = (uint8_t)rows[i].v;
		cr_assert_eq(active_message_read(octets, len, &got), -EPROTO, "row %zu", i);
	}
}

Test(active_wire, texts)
{
	for (unsigned int i = 0; i < ACTIVE_CODES; i++)
		cr_assert_str_neq(active_code_text((enum active_code)i), "unknown code");
	cr_assert_str_eq(active_code_text(ACTIVE_CODES), "unknown code");
}
