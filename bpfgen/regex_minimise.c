/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The DFA with as few states as can be (Hopcroft's algorithm). States are parted into blocks:
 * first by whether they accept, then by the blocks that their bytes lead to, until nothing parts
 * any more. The blocks are the new states; that of state 0 is state 0 again, the others follow in
 * the order in which the start reaches them, so that neighbours stand together in the code.
 *
 * Invariants: elems holds the states block by block; where[] is a state's place there; the marked
 * ones of a block are its first ones.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpfgen/regex_inside.h"

struct parts {
	uint32_t *elems, *where, *block_of;
	uint32_t *begin, *end, *marked; /* of each block */
	uint32_t count;
	uint32_t *work; /* blocks that others are still to be parted by */
	uint32_t work_count;
	uint32_t *touched, touched_count;
	uint32_t *copy;
	uint32_t *from, *from_begin; /* the states that lead to a state, class by class */
};

static uint32_t *numbers(size_t count)
{
	return calloc(count, sizeof(uint32_t));
}

static bool parts_init(struct parts *p, const struct dfa *dfa)
{
	size_t n = dfa->count;

	*p = (struct parts){ .elems = numbers(n),
			     .where = numbers(n),
			     .block_of = numbers(n),
			     .begin = numbers(n),
			     .end = numbers(n),
			     .marked = numbers(n),
			     .work = numbers(n),
			     .touched = numbers(n),
			     .copy = numbers(n),
			     .from = numbers(n * dfa->classes),
			     .from_begin = numbers((n + 1) * dfa->classes) };
	return p->elems && p->where && p->block_of && p->begin && p->end && p->marked && p->work &&
	       p->touched && p->copy && p->from && p->from_begin;
}

static void parts_uninit(struct parts *p)
{
	free(p->elems);
	free(p->where);
	free(p->block_of);
	free(p->begin);
	free(p->end);
	free(p->marked);
	free(p->work);
	free(p->touched);
	free(p->copy);
	free(p->from);
	free(p->from_begin);
}

/* For each class, the states in the order of the state that they lead to */
static void origins_fill(struct parts *p, const struct dfa *dfa)
{
	for (unsigned int class = 0; class < dfa->classes; class ++) {
		uint32_t *begin = p->from_begin + (size_t) class * (dfa->count + 1);
		uint32_t *from = p->from + (size_t) class * dfa->count;

		for (uint32_t s = 0; s < dfa->count; s++)
			begin[dfa->next[s * dfa->classes + class] + 1]++;
		for (uint32_t s = 0; s < dfa->count; s++)
			begin[s + 1] += begin[s];
		for (uint32_t s = dfa->count; s--;)
			from[--begin[dfa->next[s * dfa->classes + class] + 1]] = s;
		/* The loop before has moved each beginning one place up */
		memmove(begin, begin + 1, dfa->count * sizeof(*begin));
		begin[dfa->count] = dfa->count;
	}
}

static void first_parts(struct parts *p, const struct dfa *dfa)
{
	uint32_t at = 0;

	for (int kind = 0; kind < 4; kind++) {
		uint32_t first = at;

		for (uint32_t s = 0; s < dfa->count; s++)
			if (dfa->accept[s] * 2 + dfa->accept_at_end[s] == kind) {
				p->elems[at] = s;
				p->where[s] = at++;
				p->block_of[s] = p->count;
			}
		if (at == first)
			continue;
		p->begin[p->count] = first;
		p->end[p->count] = at;
		p->work[p->work_count++] = p->count++;
	}
}

static void mark(struct parts *p, uint32_t s)
{
	uint32_t block = p->block_of[s], to = p->begin[block] + p->marked[block];
	uint32_t at = p->where[s], other = p->elems[to];

	if (at < to)
		return;
	if (!p->marked[block]++)
		p->touched[p->touched_count++] = block;
	p->elems[to] = s;
	p->where[s] = to;
	p->elems[at] = other;
	p->where[other] = at;
}

/* Parts a block into its marked states and the others; the smaller half gets the new number */
static void block_split(struct parts *p, uint32_t block)
{
	uint32_t size = p->end[block] - p->begin[block], marked = p->marked[block];
	uint32_t fresh = p->count, middle = p->begin[block] + marked;

	p->marked[block] = 0;
	if (marked == size)
		return;
	p->count++;
	p->begin[fresh] = marked * 2 <= size ? p->begin[block] : middle;
	p->end[fresh] = marked * 2 <= size ? middle : p->end[block];
	if (marked * 2 <= size)
		p->begin[block] = middle;
	else
		p->end[block] = middle;
	for (uint32_t i = p->begin[fresh]; i < p->end[fresh]; i++)
		p->block_of[p->elems[i]] = fresh;
	p->work[p->work_count++] = fresh;
}

static void refine(struct parts *p, const struct dfa *dfa)
{
	while (p->work_count) {
		uint32_t block = p->work[--p->work_count];
		uint32_t count = p->end[block] - p->begin[block];

		memcpy(p->copy, p->elems + p->begin[block], count * sizeof(*p->copy));
		for (unsigned int class = 0; class < dfa->classes; class ++) {
			const uint32_t *begin = p->from_begin + (size_t) class * (dfa->count + 1);
			const uint32_t *from = p->from + (size_t) class * dfa->count;

			for (uint32_t i = 0; i < count; i++)
				for (uint32_t j = begin[p->copy[i]]; j < begin[p->copy[i] + 1]; j++)
					mark(p, from[j]);
			while (p->touched_count)
				block_split(p, p->touched[--p->touched_count]);
		}
	}
}

/* --- the new states --------------------------------------------------------------------------- */

/* Numbers the blocks in the order in which the start reaches them; returns how many there are */
static uint32_t blocks_number(const struct parts *p, const struct dfa *dfa, uint32_t *number,
			      uint32_t *order)
{
	uint32_t count = 0;
	const uint32_t roots[] = { 0, dfa->start, dfa->inner };

	for (uint32_t b = 0; b < p->count; b++)
		number[b] = UINT32_MAX;
	for (size_t i = 0; i < 3; i++)
		if (number[p->block_of[roots[i]]] == UINT32_MAX) {
			number[p->block_of[roots[i]]] = count;
			order[count++] = roots[i];
		}
	for (uint32_t at = 0; at < count; at++)
		for (unsigned int class = 0; class < dfa->classes; class ++) {
			uint32_t to = dfa->next[order[at] * dfa->classes + class];

			if (number[p->block_of[to]] != UINT32_MAX)
				continue;
			number[p->block_of[to]] = count;
			order[count++] = to;
		}
	return count;
}

static int states_replace(struct dfa *dfa, const struct parts *p)
{
	uint32_t *number = numbers(p->count), *order = numbers(p->count);
	struct dfa fresh = *dfa;

	fresh.next = calloc((size_t)p->count * dfa->classes, sizeof(uint32_t));
	fresh.accept = calloc(p->count, sizeof(bool));
	fresh.accept_at_end = calloc(p->count, sizeof(bool));
	if (!number || !order || !fresh.next || !fresh.accept || !fresh.accept_at_end) {
		free(number);
		free(order);
		regex_dfa_uninit(&fresh);
		return -ENOMEM;
	}
	fresh.room = p->count;
	fresh.count = blocks_number(p, dfa, number, order);
	for (uint32_t s = 0; s < fresh.count; s++) {
		fresh.accept[s] = dfa->accept[order[s]];
		fresh.accept_at_end[s] = dfa->accept_at_end[order[s]];
		for (unsigned int class = 0; class < dfa->classes; class ++)
			fresh.next[s * dfa->classes + class] =
				number[p->block_of[dfa->next[order[s] * dfa->classes + class]]];
	}
	fresh.start = number[p->block_of[dfa->start]];
	fresh.inner = number[p->block_of[dfa->inner]];
	free(number);
	free(order);
	regex_dfa_uninit(dfa);
	*dfa = fresh;
	return 0;
}

int regex_dfa_minimise(struct dfa *dfa)
{
	struct parts p;
	int ret = -ENOMEM;

	if (parts_init(&p, dfa)) {
		origins_fill(&p, dfa);
		first_parts(&p, dfa);
		refine(&p, dfa);
		ret = states_replace(dfa, &p);
	}
	parts_uninit(&p);
	return ret;
}
