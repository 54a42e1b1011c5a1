/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An NFA as a DFA, by sets of its states. Bytes that no set of the expression tells apart are one
 * class, so each state has a row of classes and not of 256 bytes.
 *
 * A DFA state is the list of NFA states that are left when all ways that need no byte were gone:
 * those that take a byte, that accept, or that wait for the end. Ways past BEGIN are only gone at
 * the beginning. Whether the end may be here is looked up when the state is made: all ways past
 * END are gone, and acceptance found or not. In a search the NFA's start is added at each byte.
 *
 * States, memory and work are bounded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpfgen/inside.h"
#include "bpfgen/regex_inside.h"

/* What a DFA state is made of: @count NFA states in order, from @at on in the pool */
struct key {
	uint32_t at, count;
	bool at_begin;
};

struct maker {
	const struct nfa *nfa;
	struct dfa *dfa;
	struct bpfgen_error *err;
	enum dfa_way way;
	uint32_t *mark; /* the round in which a way was met last */
	uint32_t round;
	uint32_t *stack, *list; /* ways that are still to go; the set that is being made */
	size_t depth, count;
	bool accepts; /* what the last round has met */
	struct key *keys;
	size_t key_room;
	uint32_t *pool;
	size_t pool_count, pool_room;
	uint32_t *table; /* DFA states by hash; 0: none */
	uint64_t work;
	uint8_t sample[256]; /* a byte of each class */
};

enum { TABLE_SIZE = 4 * BPFGEN_DFA_STATES_MAX, POOL_MAX = 1 << 22, WORK_MAX = 1 << 26 };

#define too_large(m, ...) bpfgen_refuse((m)->err, -E2BIG, BPFGEN_NOWHERE, __VA_ARGS__)

static int no_memory(struct maker *m)
{
	return bpfgen_refuse(m->err, -ENOMEM, BPFGEN_NOWHERE, "out of memory");
}

/* --- classes of bytes ------------------------------------------------------------------------- */

/* Parts each class into the bytes that are in @s and those that are not */
static void classes_split(struct dfa *dfa, const struct regex_set *s)
{
	int renamed[512];

	memset(renamed, 0xff, sizeof(renamed));
	dfa->classes = 0;
	for (unsigned int byte = 0; byte < 256; byte++) {
		int *name = &renamed[dfa->class_of[byte] * 2 + regex_set_has(s, byte)];

		if (*name < 0)
			*name = (int)dfa->classes++;
		dfa->class_of[byte] = (uint8_t)*name;
	}
}

static void classes_find(struct maker *m)
{
	const struct regex_set newline = { { 1 << '\n' } };

	memset(m->dfa->class_of, 0, sizeof(m->dfa->class_of));
	classes_split(m->dfa, &newline);
	for (size_t i = 0; i < m->nfa->count; i++)
		if (m->nfa->states[i].kind == NFA_SET)
			classes_split(m->dfa, &m->nfa->states[i].set);
	for (unsigned int byte = 0; byte < 256; byte++)
		m->sample[m->dfa->class_of[byte]] = (uint8_t)byte;
}

/* --- sets of NFA states ----------------------------------------------------------------------- */

static void round_begin(struct maker *m)
{
	m->round++;
	m->depth = m->count = 0;
	m->accepts = false;
}

static void push(struct maker *m, uint32_t state)
{
	if (m->mark[state] == m->round)
		return;
	m->mark[state] = m->round;
	m->stack[m->depth++] = state;
}

/* Goes all ways that need no byte */
static void ways_go(struct maker *m, bool at_begin, bool at_end)
{
	while (m->depth) {
		uint32_t at = m->stack[--m->depth];
		const struct nfa_state *s = &m->nfa->states[at];
		bool stays = s->kind == NFA_SET || s->kind == NFA_ACCEPT || s->kind == NFA_END;

		m->work++;
		m->accepts |= s->kind == NFA_ACCEPT;
		if (stays)
			m->list[m->count++] = at;
		if (s->kind == NFA_SPLIT || (s->kind == NFA_BEGIN && at_begin) ||
		    (s->kind == NFA_END && at_end))
			push(m, s->out);
		if (s->kind == NFA_SPLIT)
			push(m, s->other);
	}
}

static int number_compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Where the set of the list stands in the table, or the free place for it */
static uint32_t *table_find(struct maker *m, bool at_begin)
{
	uint32_t hash = 2166136261u ^ at_begin;
	uint32_t *place;

	for (size_t i = 0; i < m->count; i++)
		hash = (hash ^ m->list[i]) * 16777619u;
	hash ^= hash >> 15;
	for (place = &m->table[hash % TABLE_SIZE]; *place;
	     place = place == &m->table[TABLE_SIZE - 1] ? m->table : place + 1) {
		const struct key *key = &m->keys[*place];

		if (key->count == m->count && key->at_begin == at_begin &&
		    !memcmp(m->pool + key->at, m->list, m->count * sizeof(*m->list)))
			break;
	}
	return place;
}

/* --- states ----------------------------------------------------------------------------------- */

static int pool_add(struct maker *m)
{
	if (m->count > POOL_MAX - m->pool_count)
		return too_large(m, "the DFA would take too much memory");
	if (!m->count)
		return 0;
	while (m->pool_room < m->pool_count + m->count)
		if (!bpfgen_grow((void **)&m->pool, &m->pool_room, m->pool_room, sizeof(*m->pool)))
			return no_memory(m);
	memcpy(m->pool + m->pool_count, m->list, m->count * sizeof(*m->list));
	m->pool_count += m->count;
	return 0;
}

static int rows_grow(struct dfa *dfa)
{
	size_t room = dfa->room ? dfa->room * 2 : 64;
	uint32_t *next = realloc(dfa->next, room * dfa->classes * sizeof(*next));
	bool *accept = next ? realloc(dfa->accept, room * sizeof(bool)) : NULL;
	bool *at_end = accept ? realloc(dfa->accept_at_end, room * sizeof(bool)) : NULL;

	dfa->next = next ? next : dfa->next;
	dfa->accept = accept ? accept : dfa->accept;
	dfa->accept_at_end = at_end ? at_end : dfa->accept_at_end;
	if (!at_end)
		return -ENOMEM;
	dfa->room = room;
	return 0;
}

/* A state of the set in the list */
static int state_add(struct maker *m, bool at_begin, uint32_t *out)
{
	struct dfa *dfa = m->dfa;
	struct key key = { (uint32_t)m->pool_count, (uint32_t)m->count, at_begin };
	int ret;

	if (dfa->count >= BPFGEN_DFA_STATES_MAX)
		return too_large(m, "the DFA would have more than %d states",
				 BPFGEN_DFA_STATES_MAX);
	if (dfa->count == dfa->room && rows_grow(dfa))
		return no_memory(m);
	if (!bpfgen_grow((void **)&m->keys, &m->key_room, dfa->count, sizeof(key)))
		return no_memory(m);
	ret = pool_add(m);
	if (ret)
		return ret;
	*out = dfa->count++;
	m->keys[*out] = key;
	dfa->accept[*out] = m->accepts;
	round_begin(m);
	for (uint32_t i = 0; i < key.count; i++)
		push(m, m->pool[key.at + i]);
	ways_go(m, at_begin, true);
	dfa->accept_at_end[*out] = m->accepts;
	return 0;
}

/* The state of the set in the list. A search for the first end does not care what comes behind. */
static int state_find(struct maker *m, bool at_begin, uint32_t *out)
{
	uint32_t *place;
	int ret;

	if (m->way == DFA_FIRST && m->accepts) {
		m->list[0] = 0;
		m->count = 1;
		at_begin = false;
	}
	qsort(m->list, m->count, sizeof(*m->list), number_compare);
	m->work += m->count;
	if (m->work > WORK_MAX)
		return too_large(m, "the DFA would take too much work");
	*out = 0;
	if (!m->count)
		return 0;
	place = table_find(m, at_begin);
	*out = *place;
	if (*place)
		return 0;
	ret = state_add(m, at_begin, out);
	if (!ret)
		*place = *out;
	return ret;
}

static int start_find(struct maker *m, bool at_begin, uint32_t *out)
{
	round_begin(m);
	push(m, m->nfa->start);
	ways_go(m, at_begin, false);
	return state_find(m, at_begin, out);
}

static int step(struct maker *m, uint32_t state, unsigned int class)
{
	const struct key key = m->keys[state];
	uint32_t to;
	int ret;

	round_begin(m);
	for (uint32_t i = 0; i < key.count; i++) {
		const struct nfa_state *s = &m->nfa->states[m->pool[key.at + i]];

		if (s->kind == NFA_SET && regex_set_has(&s->set, m->sample[class]))
			push(m, s->out);
	}
	m->work += key.count;
	if (m->way != DFA_HERE)
		push(m, m->nfa->start);
	ways_go(m, false, false);
	if (m->way == DFA_FIRST && m->dfa->accept[state])
		to = state, ret = 0;
	else
		ret = state_find(m, false, &to);
	m->dfa->next[state * m->dfa->classes + class] = ret ? 0 : to;
	return ret;
}

static int states_make(struct maker *m)
{
	struct dfa *dfa = m->dfa;
	uint32_t dead;
	int ret;

	round_begin(m);
	ret = state_add(m, false, &dead);
	if (!ret)
		ret = start_find(m, true, &dfa->start);
	if (!ret)
		ret = start_find(m, false, &dfa->inner);
	for (unsigned int class = 0; !ret && class < dfa->classes; class ++)
		dfa->next[class] = 0;
	for (uint32_t state = 1; !ret && state < dfa->count; state++)
		for (unsigned int class = 0; !ret && class < dfa->classes; class ++)
			ret = step(m, state, class);
	return ret;
}

int regex_dfa_init(struct dfa *dfa, const struct nfa *nfa, enum dfa_way way,
		   struct bpfgen_error *err)
{
	struct maker m = { .nfa = nfa, .dfa = dfa, .err = err, .way = way };
	int ret;

	*dfa = (struct dfa){ 0 };
	m.mark = calloc(nfa->count, sizeof(*m.mark));
	m.stack = calloc(nfa->count, sizeof(*m.stack));
	m.list = calloc(nfa->count, sizeof(*m.list));
	m.table = calloc(TABLE_SIZE, sizeof(*m.table));
	classes_find(&m);
	ret = m.mark && m.stack && m.list && m.table ? states_make(&m) : no_memory(&m);
	free(m.mark);
	free(m.stack);
	free(m.list);
	free(m.table);
	free(m.keys);
	free(m.pool);
	if (ret)
		regex_dfa_uninit(dfa);
	return ret;
}

void regex_dfa_uninit(struct dfa *dfa)
{
	free(dfa->next);
	free(dfa->accept);
	free(dfa->accept_at_end);
	*dfa = (struct dfa){ 0 };
}
