/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A tree as an NFA (Thompson's construction), built from its end: each part is told which state
 * comes behind it, and gives the state that begins it. Repetitions are written out. For a text that
 * is read backwards the parts of a sequence change places, and so do ^ and $.
 *
 * The work is bounded, also where a repetition repeats something that needs no state.
 */
#include <errno.h>
#include <stdlib.h>

#include "bpfgen/inside.h"
#include "bpfgen/regex_inside.h"

enum { STEPS_MAX = 1 << 20 };

struct builder {
	struct nfa *nfa;
	const struct bpfgen_regex *re;
	struct bpfgen_error *err;
	bool backwards;
	unsigned int steps;
};

static int state_add(struct builder *b, struct nfa_state state, uint32_t *out)
{
	struct nfa *nfa = b->nfa;

	if (nfa->count >= BPFGEN_NFA_STATES_MAX)
		return bpfgen_refuse(b->err, -E2BIG, BPFGEN_NOWHERE,
				     "the NFA would have more than %d states",
				     BPFGEN_NFA_STATES_MAX);
	if (!bpfgen_grow((void **)&nfa->states, &nfa->room, nfa->count, sizeof(state)))
		return bpfgen_refuse(b->err, -ENOMEM, BPFGEN_NOWHERE, "out of memory");
	nfa->states[nfa->count] = state;
	*out = (uint32_t)nfa->count++;
	return 0;
}

static int build(struct builder *b, uint32_t node, uint32_t next, uint32_t *out);

static int split_add(struct builder *b, uint32_t a, uint32_t other, uint32_t *out)
{
	return state_add(b, (struct nfa_state){ .kind = NFA_SPLIT, .out = a, .other = other }, out);
}

/* A loop: a split that leads into it, and behind */
static int loop_build(struct builder *b, uint32_t inner, uint32_t next, uint32_t *out)
{
	uint32_t split, first;
	int ret = split_add(b, next, next, &split);

	if (!ret)
		ret = build(b, inner, split, &first);
	if (ret)
		return ret;
	b->nfa->states[split].out = first;
	*out = split;
	return 0;
}

static int repeat_build(struct builder *b, const struct regex_node *n, uint32_t next, uint32_t *out)
{
	uint32_t first = next;
	int ret = 0;

	if (n->max == REGEX_UNBOUNDED)
		ret = loop_build(b, n->a, next, &first);
	for (int i = n->min; !ret && i < n->max; i++) {
		ret = build(b, n->a, first, &first);
		if (!ret)
			ret = split_add(b, first, next, &first);
	}
	for (int i = 0; !ret && i < n->min; i++)
		ret = build(b, n->a, first, &first);
	*out = first;
	return ret;
}

static int either_build(struct builder *b, const struct regex_node *n, uint32_t next, uint32_t *out)
{
	uint32_t first, second;
	int ret = build(b, n->a, next, &first);

	if (!ret)
		ret = build(b, n->b, next, &second);
	return ret ? ret : split_add(b, first, second, out);
}

static int both_build(struct builder *b, const struct regex_node *n, uint32_t next, uint32_t *out)
{
	uint32_t middle;
	int ret = build(b, b->backwards ? n->a : n->b, next, &middle);

	return ret ? ret : build(b, b->backwards ? n->b : n->a, middle, out);
}

static int build(struct builder *b, uint32_t node, uint32_t next, uint32_t *out)
{
	const struct regex_node *n = &b->re->nodes[node];
	struct nfa_state state = { .kind = NFA_SET, .out = next, .set = n->set };

	if (++b->steps > STEPS_MAX)
		return bpfgen_refuse(b->err, -E2BIG, BPFGEN_NOWHERE, "too many repetitions");
	switch (n->kind) {
	case REGEX_EMPTY:
		*out = next;
		return 0;
	case REGEX_BOTH:
		return both_build(b, n, next, out);
	case REGEX_EITHER:
		return either_build(b, n, next, out);
	case REGEX_REPEAT:
		return repeat_build(b, n, next, out);
	case REGEX_BEGIN:
	case REGEX_END:
		state.kind = (n->kind == REGEX_BEGIN) != b->backwards ? NFA_BEGIN : NFA_END;
		break;
	case REGEX_SET:
		break;
	}
	return state_add(b, state, out);
}

int regex_nfa_init(struct nfa *nfa, const struct bpfgen_regex *re, bool backwards,
		   struct bpfgen_error *err)
{
	struct builder b = { .nfa = nfa, .re = re, .err = err, .backwards = backwards };
	uint32_t accept;
	int ret;

	*nfa = (struct nfa){ 0 };
	ret = state_add(&b, (struct nfa_state){ .kind = NFA_ACCEPT }, &accept);
	if (!ret)
		ret = build(&b, re->root, accept, &nfa->start);
	if (ret)
		regex_nfa_uninit(nfa);
	return ret;
}

void regex_nfa_uninit(struct nfa *nfa)
{
	free(nfa->states);
	*nfa = (struct nfa){ 0 };
}
