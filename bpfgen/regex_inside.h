/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFGEN_REGEX_INSIDE_H
#define BPFGEN_REGEX_INSIDE_H

/* What the steps from text to code hand on: tree, NFA, DFA. */

#include "bpfgen/regex.h"

struct regex_set {
	uint64_t bits[4];
};

static inline bool regex_set_has(const struct regex_set *s, unsigned int byte)
{
	return s->bits[byte / 64] >> (byte % 64) & 1;
}

static inline void regex_set_add(struct regex_set *s, unsigned int byte)
{
	s->bits[byte / 64] |= 1ull << (byte % 64);
}

/* --- the tree (regex_parse.c) ----------------------------------------------------------------- */

enum regex_kind {
	REGEX_EMPTY,
	REGEX_SET,
	REGEX_BOTH, /* a, then b */
	REGEX_EITHER,
	REGEX_REPEAT, /* a, from min to max times */
	REGEX_BEGIN,
	REGEX_END,
};

enum { REGEX_UNBOUNDED = -1 };

struct regex_node {
	enum regex_kind kind;
	uint32_t a, b;
	int min, max;
	struct regex_set set;
};

struct bpfgen_regex {
	struct regex_node *nodes;
	size_t count, room;
	uint32_t root;
};

/* --- the NFA (regex_nfa.c) -------------------------------------------------------------------- */

enum nfa_kind { NFA_ACCEPT, NFA_SPLIT, NFA_SET, NFA_BEGIN, NFA_END };

struct nfa_state {
	enum nfa_kind kind;
	uint32_t out, other; /* other: the second way of a split */
	struct regex_set set;
};

struct nfa {
	struct nfa_state *states; /* the first one accepts */
	size_t count, room;
	uint32_t start;
};

/* Backwards: for a text that is read from its end; then BEGIN is at that end */
int regex_nfa_init(struct nfa *nfa, const struct bpfgen_regex *re, bool backwards,
		   struct bpfgen_error *err);
void regex_nfa_uninit(struct nfa *nfa);

/* --- the DFA (regex_dfa.c, regex_minimise.c) -------------------------------------------------- */

enum dfa_way {
	DFA_FIRST,    /* a match may begin anywhere; the first end is enough */
	DFA_ANYWHERE, /* a match may begin anywhere; all ends */
	DFA_HERE,     /* a match begins here; all ends */
};

/* From state 0 nothing is accepted any more. All bytes of a class do the same everywhere. */
struct dfa {
	uint8_t class_of[256];
	unsigned int classes;
	uint32_t count;
	size_t room;
	uint32_t *next;	     /* of state and class */
	bool *accept;	     /* a match ends before the next byte, whatever it is */
	bool *accept_at_end; /* or ends if there is no next byte */
	uint32_t start;	     /* where BEGIN holds */
	uint32_t inner;	     /* where it does not */
};

int regex_dfa_init(struct dfa *dfa, const struct nfa *nfa, enum dfa_way way,
		   struct bpfgen_error *err);
void regex_dfa_uninit(struct dfa *dfa);
/* The same language with as few states as can be. -ENOMEM: @dfa is as it was */
int regex_dfa_minimise(struct dfa *dfa);

#endif
