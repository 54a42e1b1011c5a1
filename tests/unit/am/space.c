/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a run-time system above wants of the library: a segment that is all of the address space,
 * and what a token tells of its message.
 */
#include "pair.h"

enum { STORE = 1, STORED, ASK, ASKED, GOT, BULK = 300000 };

static int stored, answered, got, refused, status_seen;
static uint8_t source[BULK], target[BULK], back[BULK];

struct seen {
	handler_t handler;
	amx_category_t category;
	int is_request;
};
static struct seen seen[8];
static int num_seen;

static void look(void *token)
{
	struct seen *s = &seen[num_seen++ % 8];

	cr_assert_eq(AMX_GetTokenInfo(token, &s->handler, &s->category, &s->is_request), AM_OK);
	cr_assert_eq(AMUDP_GetTokenInfo(token, &s->handler, &s->category, NULL), AM_ERR_BAD_ARG);
}

static void on_store(void *token, void *buf, int nbytes)
{
	look(token);
	stored += buf == target ? nbytes : 0;
	AM_ReplyXfer0(token, (uintptr_t)back, STORED, buf, nbytes);
}

static void on_stored(void *token, void *buf, int nbytes)
{
	look(token);
	answered += buf == back ? nbytes : 0;
}

static void on_ask(void *token)
{
	look(token);
	AM_ReplyI0(token, ASKED, source, 8);
}

static void on_asked(void *token, void *buf, int nbytes)
{
	look(token);
	answered++;
}

static void on_got(void *token, void *buf, int nbytes)
{
	got += nbytes;
}

static void on_returned(int status, op_t opcode, void *token)
{
	look(token);
	refused++;
	status_seen = status;
}

/* Both endpoints; index 1 is the endpoint itself. */
static void open_all(struct pair *p)
{
	void *segment;
	uintptr_t len;
	size_t i;

	pair_open(p, AM_SEQ);
	for (i = 0; i < 2; i++) {
		pair_place((int)i);
		AM_GetSeg(p->ep[i], &segment, &len);
		free(segment);
		cr_assert_eq(AM_SetSeg(p->ep[i], NULL, (uintptr_t)-1), AM_OK);
		AM_SetHandler(p->ep[i], 0, on_returned);
		AM_SetHandler(p->ep[i], STORE, on_store);
		AM_SetHandler(p->ep[i], STORED, on_stored);
		AM_SetHandler(p->ep[i], ASK, on_ask);
		AM_SetHandler(p->ep[i], ASKED, on_asked);
		AM_SetHandler(p->ep[i], GOT, on_got);
		cr_assert_eq(AM_Map(p->ep[i], 1, p->name[i], PAIR_TAG), AM_OK);
	}
	pair_map(p, 4);
	for (i = 0; i < BULK; i++)
		source[i] = (uint8_t)(i * 7 + i / 251);
}

static void store(struct pair *p, int index, int nbytes)
{
	stored = answered = 0;
	memset(target, 0, sizeof(target));
	memset(back, 0, sizeof(back));
	cr_assert_eq(AM_RequestXferAsync0(p->ep[0], index, (uintptr_t)target, STORE, source,
					  nbytes),
		     AM_OK);
	pair_until(p, answered == nbytes);
	cr_expect_eq(stored, nbytes);
	cr_expect_eq(memcmp(target, source, (size_t)nbytes), 0);
	cr_expect_eq(memcmp(back, source, (size_t)nbytes), 0);
}

Test(space, offsets_are_addresses)
{
	void *segment = &segment;
	uintptr_t len = 0;
	struct pair p;

	open_all(&p);
	cr_assert_eq(AM_GetSeg(p.ep[0], &segment, &len), AM_OK);
	cr_expect_null(segment);
	cr_expect_eq(len, (uintptr_t)-1);
	store(&p, 0, 8);
	store(&p, 0, 65000);
	store(&p, 0, BULK);
	store(&p, 1, 8);
	store(&p, 1, BULK);
	memset(back, 0, sizeof(back));
	cr_assert_eq(AM_GetXfer0(p.ep[0], 0, (uintptr_t)source, GOT, (uintptr_t)back, BULK), AM_OK);
	pair_until(&p, got == BULK);
	cr_expect_eq(memcmp(back, source, BULK), 0);
	pair_close(&p);
}

/* Nothing leads past the end of it. */
Test(space, it_has_an_end)
{
	struct pair p;

	open_all(&p);
	cr_assert_eq(AM_RequestXfer0(p.ep[0], 0, (uintptr_t)-8, STORE, source, 16), AM_OK);
	pair_until(&p, refused == 1);
	cr_expect_eq(status_seen, EBADLENGTH);
	pair_close(&p);
}

Test(space, no_other_segment_from_nowhere)
{
	struct pair p;

	pair_open(&p, AM_SEQ);
	cr_expect_eq(AM_SetSeg(p.ep[0], NULL, 8), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_SetSeg(p.ep[0], NULL, (uintptr_t)-2), AM_ERR_BAD_ARG);
	pair_close(&p);
}

Test(space, no_segment_around_the_end_of_memory)
{
	char *near_end = (char *)(uintptr_t)-8;
	uintptr_t len;
	struct pair p;
	void *own;

	pair_open(&p, AM_SEQ);
	AM_GetSeg(p.ep[0], &own, &len);
	cr_expect_eq(AM_SetSeg(p.ep[0], near_end, 8), AM_OK);
	cr_expect_eq(AM_SetSeg(p.ep[0], near_end, 9), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_SetSeg(p.ep[0], source, (uintptr_t)-1), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_SetSeg(p.ep[0], source, 0), AM_OK);
	AM_SetSeg(p.ep[0], own, len);
	pair_close(&p);
}

static void expect_seen(int i, int handler, amx_category_t category, int is_request)
{
	cr_expect_eq(seen[i].handler, handler, "%d: handler %d", i, seen[i].handler);
	cr_expect_eq(seen[i].category, category, "%d: category %d", i, (int)seen[i].category);
	if (handler)
		cr_expect_eq(seen[i].is_request, is_request, "%d", i);
}

Test(space, what_a_token_tells)
{
	struct pair p;
	int i;

	open_all(&p);
	for (i = 0; i < 2; i++) {
		num_seen = answered = 0;
		AM_Request0(p.ep[0], i, ASK);
		pair_until(&p, answered == 1);
		expect_seen(0, ASK, amx_Short, 1);
		expect_seen(1, ASKED, amx_Medium, 0);
		num_seen = 0;
		store(&p, i, 8);
		expect_seen(0, STORE, amx_Long, 1);
		expect_seen(1, STORED, amx_Long, 0);
		num_seen = refused = 0;
		AM_RequestI0(p.ep[0], i, 99, source, 8);
		pair_until(&p, refused == 1);
		expect_seen(0, 0, amx_Medium, 1);
	}
	pair_close(&p);
}

Test(space, names_are_compared)
{
	struct pair p;
	en_t other;

	pair_open(&p, AM_SEQ);
	cr_expect(AMX_enEqual(p.name[0], p.name[0]));
	cr_expect(!AMX_enEqual(p.name[0], p.name[1]));
	other = p.name[0];
	other.sin_port ^= 1;
	cr_expect(!AMUDP_enEqual(p.name[0], other));
	pair_close(&p);
}
