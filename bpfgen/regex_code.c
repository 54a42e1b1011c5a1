/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A DFA as code: each state is a place in the code, which reads a byte and jumps to the next one.
 *
 * r1 and r2 hold the rest of the text: its first byte, and the place behind its last. Forwards r1
 * moves, backwards r2. r0 is the byte, r3 and r4 are for the moment. r5 is the end that was found
 * last, or the beginning of the line. Each turn of each loop moves r1 or r2 by one byte or eight,
 * so there is at most one turn for each byte.
 *
 * A state in which most bytes change nothing looks at eight of them with one check of memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpfgen/regex_inside.h"

enum { R_BYTE = 0, R_AT = 1, R_END = 2, R_SOME = 3, R_LEFT = 4, R_KEPT = 5 };
enum {
	LINEAR_MAX = 4,	 /* ranges that are tested one after another */
	SKIP_RANGES = 2, /* of a state that looks at SKIP bytes at once */
	SKIP = 8,
	SKIP_STATES_MAX = 512, /* a large DFA has no room for this */
};

enum form { FORM_SEARCH, FORM_TEXT, FORM_LINE, FORM_LONGEST, FORM_EARLIEST /* backwards */ };

/* Bytes that lead to the same place */
struct range {
	unsigned int first, last, label;
};

struct writer {
	struct bpfgen_code *c;
	const struct dfa *dfa;
	enum form form;
	unsigned int *labels; /* of states */
	unsigned int match, done, next_line;
	struct range ranges[256];
	unsigned int count, common; /* of ranges; the label that most bytes lead to */
};

static bool is_first(const struct writer *w)
{
	return w->form == FORM_SEARCH || w->form == FORM_TEXT || w->form == FORM_LINE;
}

/* --- where bytes lead ------------------------------------------------------------------------- */

static unsigned int state_label(const struct writer *w, uint32_t state)
{
	if (is_first(w) && w->dfa->accept[state])
		return w->match;
	if (!state && w->form != FORM_LINE)
		return w->done;
	return w->labels[state];
}

static unsigned int byte_label(const struct writer *w, uint32_t state, unsigned int byte)
{
	const struct dfa *dfa = w->dfa;

	if (w->form == FORM_LINE && byte == '\n')
		return dfa->accept_at_end[state] ? w->match : w->next_line;
	if (w->form == FORM_TEXT && !byte)
		return dfa->accept_at_end[state] ? w->match : w->done;
	return state_label(w, dfa->next[state * dfa->classes + dfa->class_of[byte]]);
}

/* Sets ranges and common up for @state */
static void ranges_find(struct writer *w, uint32_t state)
{
	unsigned int most = 0;

	w->count = 0;
	for (unsigned int byte = 0; byte < 256; byte++) {
		unsigned int label = byte_label(w, state, byte);

		if (w->count && w->ranges[w->count - 1].label == label)
			w->ranges[w->count - 1].last = byte;
		else
			w->ranges[w->count++] = (struct range){ byte, byte, label };
	}
	for (unsigned int i = 0; i < w->count; i++) {
		unsigned int bytes = 0;

		for (unsigned int j = 0; j < w->count; j++)
			if (w->ranges[j].label == w->ranges[i].label)
				bytes += w->ranges[j].last - w->ranges[j].first + 1;
		if (bytes > most)
			w->common = w->ranges[i].label;
		most = bytes > most ? bytes : most;
	}
}

static unsigned int uncommon(const struct writer *w)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < w->count; i++)
		n += w->ranges[i].label != w->common;
	return n;
}

/* --- tests of a byte -------------------------------------------------------------------------- */

static void range_test(struct writer *w, const struct range *r, unsigned int label)
{
	if (r->first == r->last) {
		bpfgen_if_imm(w->c, EBPF_JEQ, R_BYTE, (int32_t)r->first, label);
	} else if (r->first == 0) {
		bpfgen_if_imm(w->c, EBPF_JLE, R_BYTE, (int32_t)r->last, label);
	} else if (r->last == 255) {
		bpfgen_if_imm(w->c, EBPF_JGE, R_BYTE, (int32_t)r->first, label);
	} else {
		bpfgen_alu(w->c, EBPF_MOV, R_SOME, R_BYTE);
		bpfgen_alu_imm(w->c, EBPF_SUB, R_SOME, (int32_t)r->first);
		bpfgen_if_imm(w->c, EBPF_JLE, R_SOME, (int32_t)(r->last - r->first), label);
	}
}

/* Halves the ranges from @from to @to until one is left */
static void tree_test(struct writer *w, unsigned int from, unsigned int to)
{
	unsigned int middle = (from + to + 1) / 2, upper;

	if (from == to) {
		bpfgen_goto(w->c, w->ranges[from].label);
		return;
	}
	if (middle == to) {
		bpfgen_if_imm(w->c, EBPF_JGE, R_BYTE, (int32_t)w->ranges[to].first,
			      w->ranges[to].label);
		tree_test(w, from, to - 1);
		return;
	}
	upper = bpfgen_label(w->c);
	bpfgen_if_imm(w->c, EBPF_JGE, R_BYTE, (int32_t)w->ranges[middle].first, upper);
	tree_test(w, from, middle - 1);
	bpfgen_here(w->c, upper);
	tree_test(w, middle, to);
}

static void byte_test(struct writer *w)
{
	if (uncommon(w) > LINEAR_MAX) {
		tree_test(w, 0, w->count - 1);
		return;
	}
	for (unsigned int i = 0; i < w->count; i++)
		if (w->ranges[i].label != w->common)
			range_test(w, &w->ranges[i], w->ranges[i].label);
	bpfgen_goto(w->c, w->common);
}

/* Passes bytes that leave the state as it is, eight at once while there are so many */
static void skip_write(struct writer *w, unsigned int label)
{
	unsigned int stops[SKIP], slow = bpfgen_label(w->c);

	bpfgen_alu(w->c, EBPF_MOV, R_LEFT, R_END);
	bpfgen_alu(w->c, EBPF_SUB, R_LEFT, R_AT);
	bpfgen_if_imm(w->c, EBPF_JLT, R_LEFT, SKIP, slow);
	for (int i = 0; i < SKIP; i++) {
		stops[i] = i ? bpfgen_label(w->c) : slow;
		bpfgen_load(w->c, EBPF_B, R_BYTE, R_AT, (int16_t)i);
		for (unsigned int j = 0; j < w->count; j++)
			if (w->ranges[j].label != w->common)
				range_test(w, &w->ranges[j], stops[i]);
	}
	bpfgen_alu_imm(w->c, EBPF_ADD, R_AT, SKIP);
	bpfgen_goto(w->c, label);
	for (int i = SKIP; i--;) {
		bpfgen_here(w->c, stops[i]);
		if (i)
			bpfgen_alu_imm(w->c, EBPF_ADD, R_AT, 1);
	}
}

/* --- states ----------------------------------------------------------------------------------- */

/* Where the text ends in this state */
static unsigned int end_label(const struct writer *w, uint32_t state)
{
	return w->dfa->accept_at_end[state] ? w->match : w->done;
}

static void state_write(struct writer *w, uint32_t state)
{
	bool backwards = w->form == FORM_EARLIEST, all = !is_first(w);
	bool keeps = all && w->dfa->accept[state];
	unsigned int at = backwards ? R_END : R_AT, label = w->labels[state];

	bpfgen_here(w->c, label);
	ranges_find(w, state);
	if (keeps)
		bpfgen_alu(w->c, EBPF_MOV, R_KEPT, at);
	else if (!backwards && w->common == label && uncommon(w) <= SKIP_RANGES &&
		 w->dfa->count <= SKIP_STATES_MAX)
		skip_write(w, label);
	bpfgen_if(w->c, EBPF_JEQ, R_AT, R_END, end_label(w, state));
	bpfgen_load(w->c, EBPF_B, R_BYTE, at, backwards ? -1 : 0);
	bpfgen_alu_imm(w->c, EBPF_ADD, at, backwards ? -1 : 1);
	byte_test(w);
}

/* What comes behind the states: where they jump when it is decided */
static void ends_write(struct writer *w)
{
	unsigned int at = w->form == FORM_EARLIEST ? R_END : R_AT;

	if (w->form == FORM_LINE) {
		bpfgen_here(w->c, w->next_line);
		bpfgen_alu(w->c, EBPF_MOV, R_KEPT, R_AT);
		bpfgen_if(w->c, EBPF_JNE, R_AT, R_END, state_label(w, w->dfa->start));
	}
	if (is_first(w)) {
		bpfgen_here(w->c, w->done);
		bpfgen_alu_imm(w->c, EBPF_MOV, 0, -1);
		bpfgen_exit(w->c);
	}
	bpfgen_here(w->c, w->match);
	if (is_first(w)) {
		bpfgen_alu(w->c, EBPF_MOV, 0, w->form == FORM_LINE ? R_KEPT : R_AT);
	} else {
		bpfgen_alu(w->c, EBPF_MOV, R_KEPT, at);
		bpfgen_here(w->c, w->done);
		bpfgen_alu(w->c, EBPF_MOV, 0, R_KEPT);
	}
	bpfgen_exit(w->c);
}

static void dfa_write(struct writer *w)
{
	w->match = bpfgen_label(w->c);
	w->done = bpfgen_label(w->c);
	w->next_line = bpfgen_label(w->c);
	for (uint32_t i = 0; i < w->dfa->count; i++)
		w->labels[i] = bpfgen_label(w->c);
	bpfgen_alu(w->c, EBPF_ADD, R_END, R_AT);
	if (!is_first(w))
		bpfgen_alu_imm(w->c, EBPF_MOV, R_KEPT, -1);
	if (w->form == FORM_LONGEST)
		bpfgen_if_imm(w->c, EBPF_JEQ, R_SOME, 0, state_label(w, w->dfa->inner));
	bpfgen_goto(w->c, w->form == FORM_LINE ? w->next_line : state_label(w, w->dfa->start));
	for (uint32_t i = 0; i < w->dfa->count; i++)
		if (state_label(w, i) == w->labels[i])
			state_write(w, i);
	ends_write(w);
}

/* A newline ends the line (byte_label); states that differ behind it alone need not */
static void newline_cut(struct dfa *dfa)
{
	for (uint32_t i = 0; i < dfa->count; i++)
		dfa->next[i * dfa->classes + dfa->class_of['\n']] = 0;
}

/* A function of this form at @label; FORM_LONGEST takes in r3 whether BEGIN holds at r1 */
static int form_write(const struct bpfgen_regex *re, struct bpfgen_code *c, enum form form,
		      unsigned int label, const char *name, struct bpfgen_error *err)
{
	static const enum dfa_way ways[] = { [FORM_SEARCH] = DFA_FIRST,
					     [FORM_TEXT] = DFA_FIRST,
					     [FORM_LINE] = DFA_FIRST,
					     [FORM_LONGEST] = DFA_HERE,
					     [FORM_EARLIEST] = DFA_ANYWHERE };
	struct writer w = { .c = c, .form = form };
	struct dfa dfa;
	struct nfa nfa;
	int ret = regex_nfa_init(&nfa, re, form == FORM_EARLIEST, err);

	if (ret)
		return ret;
	ret = regex_dfa_init(&dfa, &nfa, ways[form], err);
	regex_nfa_uninit(&nfa);
	if (ret)
		return ret;
	w.dfa = &dfa;
	if (form == FORM_LINE)
		newline_cut(&dfa);
	if (!regex_dfa_minimise(&dfa))
		w.labels = calloc(dfa.count, sizeof(*w.labels));
	if (w.labels) {
		bpfgen_function(c, label, name);
		dfa_write(&w);
	} else {
		ret = bpfgen_refuse(err, -ENOMEM, BPFGEN_NOWHERE, "out of memory");
	}
	free(w.labels);
	regex_dfa_uninit(&dfa);
	return ret;
}

int bpfgen_regex_search(const struct bpfgen_regex *re, struct bpfgen_code *c, unsigned int label,
			const char *name, struct bpfgen_error *err)
{
	return form_write(re, c, FORM_SEARCH, label, name, err);
}

int bpfgen_regex_text(const struct bpfgen_regex *re, struct bpfgen_code *c, unsigned int label,
		      const char *name, struct bpfgen_error *err)
{
	return form_write(re, c, FORM_TEXT, label, name, err);
}

int bpfgen_regex_line(const struct bpfgen_regex *re, struct bpfgen_code *c, unsigned int label,
		      const char *name, struct bpfgen_error *err)
{
	return form_write(re, c, FORM_LINE, label, name, err);
}

/* Backwards for the beginning, then from there for the end */
static void find_write(struct bpfgen_code *c, unsigned int earliest, unsigned int longest)
{
	unsigned int none = bpfgen_label(c), go_on = bpfgen_label(c);

	bpfgen_alu(c, EBPF_MOV, 6, 1);
	bpfgen_alu(c, EBPF_MOV, 7, 2);
	bpfgen_alu(c, EBPF_MOV, 8, 3);
	bpfgen_call(c, earliest);
	bpfgen_if_imm(c, EBPF_JEQ, 0, -1, none);
	bpfgen_alu(c, EBPF_MOV, 1, 0);
	bpfgen_alu(c, EBPF_SUB, 0, 6);
	bpfgen_store(c, EBPF_DW, 8, 0, 0);
	/* r2 = what is left of the text, r3 = whether none of it was passed */
	bpfgen_alu(c, EBPF_MOV, 2, 7);
	bpfgen_alu(c, EBPF_SUB, 2, 0);
	bpfgen_alu_imm(c, EBPF_MOV, 3, 1);
	bpfgen_if_imm(c, EBPF_JEQ, 0, 0, go_on);
	bpfgen_alu_imm(c, EBPF_MOV, 3, 0);
	bpfgen_here(c, go_on);
	bpfgen_call(c, longest);
	bpfgen_alu(c, EBPF_SUB, 0, 6);
	bpfgen_store(c, EBPF_DW, 8, 8, 0);
	bpfgen_alu_imm(c, EBPF_MOV, 0, 1);
	bpfgen_exit(c);
	bpfgen_here(c, none);
	bpfgen_alu_imm(c, EBPF_MOV, 0, 0);
	bpfgen_exit(c);
}

int bpfgen_regex_find(const struct bpfgen_regex *re, struct bpfgen_code *c, unsigned int label,
		      const char *name, struct bpfgen_error *err)
{
	unsigned int earliest = bpfgen_label(c), longest = bpfgen_label(c);
	int ret;

	bpfgen_function(c, label, name);
	find_write(c, earliest, longest);
	ret = form_write(re, c, FORM_EARLIEST, earliest, NULL, err);
	return ret ? ret : form_write(re, c, FORM_LONGEST, longest, NULL, err);
}
