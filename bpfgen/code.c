/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Collects instructions and labels, and turns them into a program.
 *
 * Jumps carry 16 bits of distance. bpfgen_code_finish() starts with all of them short, and makes
 * those long that do not reach, until all do: a goto becomes gotol, in one slot as before; a branch
 * leads around a gotol, in three slots. A jump that was made long stays so, so this ends.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpfgen/inside.h"

enum { FAR_SLOTS = 3 };
#define NO_PLACE UINT32_MAX

int bpfgen_refuse(struct bpfgen_error *err, int error, size_t at, const char *format, ...)
{
	va_list args;

	if (!err)
		return error;
	err->at = at;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return error;
}

bool bpfgen_grow(void **list, size_t *room, size_t count, size_t size)
{
	size_t more = base_max(*room * 2, (size_t)64);
	void *grown;

	if (count < *room)
		return true;
	grown = realloc(*list, more * size);
	if (!grown)
		return false;
	*list = grown;
	*room = more;
	return true;
}

int bpfgen_code_create(struct bpfgen_code **out)
{
	struct bpfgen_code *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*out = c;
	return 0;
}

void bpfgen_code_destroy(struct bpfgen_code *c)
{
	if (!c)
		return;
	free(c->items);
	free(c->labels);
	free(c->entries);
	free(c->insns);
	free(c);
}

static void fail(struct bpfgen_code *c, int error, const char *why)
{
	if (c->error)
		return;
	c->error = error;
	c->why = why;
}

unsigned int bpfgen_label(struct bpfgen_code *c)
{
	if (!bpfgen_grow((void **)&c->labels, &c->label_room, c->label_count, sizeof(*c->labels))) {
		fail(c, -ENOMEM, "out of memory");
		return 0;
	}
	c->labels[c->label_count] = NO_PLACE;
	return (unsigned int)c->label_count++;
}

void bpfgen_here(struct bpfgen_code *c, unsigned int label)
{
	if (label >= c->label_count)
		fail(c, -EINVAL, "a label that does not exist");
	else if (c->labels[label] != NO_PLACE)
		fail(c, -EINVAL, "a label has two places");
	else
		c->labels[label] = (uint32_t)c->count;
}

void bpfgen_function(struct bpfgen_code *c, unsigned int label, const char *name)
{
	struct bpfgen_entry e = { .label = label };

	bpfgen_here(c, label);
	if (name && (!*name || strlen(name) > BPFGEN_NAME_MAX)) {
		fail(c, -EINVAL, "a function's name is empty or too long");
		return;
	}
	if (!bpfgen_grow((void **)&c->entries, &c->entry_room, c->entry_count, sizeof(e))) {
		fail(c, -ENOMEM, "out of memory");
		return;
	}
	snprintf(e.name, sizeof(e.name), "%s", name ? name : "");
	c->entries[c->entry_count++] = e;
}

/* --- instructions ----------------------------------------------------------------------------- */

static void append(struct bpfgen_code *c, enum bpfgen_kind kind, struct ebpf_insn in,
		   unsigned int label)
{
	if (ebpf_dst(&in) >= EBPF_REGS || ebpf_src(&in) >= EBPF_REGS)
		fail(c, -EINVAL, "a register that does not exist");
	else if (c->insns)
		fail(c, -EINVAL, "an instruction behind the end");
	else if (c->count > EBPF_INSNS_MAX)
		fail(c, -E2BIG, "too many instructions");
	else if (!bpfgen_grow((void **)&c->items, &c->room, c->count, sizeof(*c->items)))
		fail(c, -ENOMEM, "out of memory");
	else
		c->items[c->count++] = (struct bpfgen_item){ in, (uint8_t)kind, false, label, 0 };
}

/* 15 is no register: append() refuses what does not fit in four bits */
static uint8_t regs(unsigned int dst, unsigned int src)
{
	return (uint8_t)(base_min(src, 15u) << 4 | base_min(dst, 15u));
}

static struct ebpf_insn insn(unsigned int code, unsigned int dst, unsigned int src, int16_t off,
			     int32_t imm)
{
	return (struct ebpf_insn){ (uint8_t)code, regs(dst, src), off, imm };
}

void bpfgen_insn(struct bpfgen_code *c, struct ebpf_insn in)
{
	append(c, BPFGEN_PLAIN, in, 0);
}

void bpfgen_alu(struct bpfgen_code *c, enum ebpf_alu op, unsigned int dst, unsigned int src)
{
	bpfgen_insn(c, insn((unsigned int)op | EBPF_ALU64 | EBPF_X, dst, src, 0, 0));
}

void bpfgen_alu_imm(struct bpfgen_code *c, enum ebpf_alu op, unsigned int dst, int32_t imm)
{
	bpfgen_insn(c, insn((unsigned int)op | EBPF_ALU64, dst, 0, 0, imm));
}

void bpfgen_signed(struct bpfgen_code *c, enum ebpf_alu op, unsigned int dst, unsigned int src)
{
	bpfgen_insn(c, insn((unsigned int)op | EBPF_ALU64 | EBPF_X, dst, src, 1, 0));
}

void bpfgen_constant(struct bpfgen_code *c, unsigned int dst, uint64_t value)
{
	if ((int64_t)value == (int32_t)value) {
		bpfgen_alu_imm(c, EBPF_MOV, dst, (int32_t)value);
		return;
	}
	bpfgen_insn(c, insn(EBPF_LDDW, dst, 0, 0, (int32_t)value));
	bpfgen_insn(c, insn(0, 0, 0, 0, (int32_t)(value >> 32)));
}

void bpfgen_load(struct bpfgen_code *c, enum ebpf_size size, unsigned int dst, unsigned int src,
		 int16_t off)
{
	bpfgen_insn(c, insn((unsigned int)size | EBPF_LDX | EBPF_MEM, dst, src, off, 0));
}

void bpfgen_load_signed(struct bpfgen_code *c, enum ebpf_size size, unsigned int dst,
			unsigned int src, int16_t off)
{
	bpfgen_insn(c, insn((unsigned int)size | EBPF_LDX | EBPF_MEMSX, dst, src, off, 0));
}

void bpfgen_store(struct bpfgen_code *c, enum ebpf_size size, unsigned int dst, int16_t off,
		  unsigned int src)
{
	bpfgen_insn(c, insn((unsigned int)size | EBPF_STX | EBPF_MEM, dst, src, off, 0));
}

void bpfgen_goto(struct bpfgen_code *c, unsigned int label)
{
	append(c, BPFGEN_GOTO, insn(EBPF_JA_CODE, 0, 0, 0, 0), label);
}

void bpfgen_branch(struct bpfgen_code *c, struct ebpf_insn in, unsigned int label)
{
	append(c, BPFGEN_BRANCH, in, label);
}

void bpfgen_if(struct bpfgen_code *c, enum ebpf_jump op, unsigned int dst, unsigned int src,
	       unsigned int label)
{
	bpfgen_branch(c, insn((unsigned int)op | EBPF_JMP | EBPF_X, dst, src, 0, 0), label);
}

void bpfgen_if_imm(struct bpfgen_code *c, enum ebpf_jump op, unsigned int dst, int32_t imm,
		   unsigned int label)
{
	bpfgen_branch(c, insn((unsigned int)op | EBPF_JMP, dst, 0, 0, imm), label);
}

void bpfgen_call(struct bpfgen_code *c, unsigned int label)
{
	append(c, BPFGEN_CALL, insn(EBPF_CALL_CODE, 0, EBPF_CALL_LOCAL, 0, 0), label);
}

void bpfgen_call_helper(struct bpfgen_code *c, uint32_t id)
{
	bpfgen_insn(c, insn(EBPF_CALL_CODE, 0, EBPF_CALL_HELPER, 0, (int32_t)id));
}

void bpfgen_exit(struct bpfgen_code *c)
{
	bpfgen_insn(c, insn(EBPF_EXIT_CODE, 0, 0, 0, 0));
}

size_t bpfgen_code_size(const struct bpfgen_code *c)
{
	return c->count;
}

/* --- the end ---------------------------------------------------------------------------------- */

static uint32_t place(const struct bpfgen_code *c, uint32_t label)
{
	return c->items[c->labels[label]].pc;
}

uint32_t bpfgen_entry_pc(const struct bpfgen_code *c, const struct bpfgen_entry *e)
{
	return place(c, e->label);
}

/* From the instruction that jumps, which is the last of a long branch, to its label */
static int32_t distance(const struct bpfgen_code *c, const struct bpfgen_item *item)
{
	uint32_t from = item->pc + (item->kind == BPFGEN_BRANCH && item->far ? FAR_SLOTS : 1);

	return (int32_t)place(c, item->label) - (int32_t)from;
}

/* Gives each item its place, and returns how many slots there are */
static uint32_t items_place(struct bpfgen_code *c)
{
	uint32_t pc = 0;

	for (size_t i = 0; i < c->count; i++) {
		c->items[i].pc = pc;
		pc += c->items[i].kind == BPFGEN_BRANCH && c->items[i].far ? FAR_SLOTS : 1;
	}
	return pc;
}

/* Whether a jump became long that was not */
static bool items_lengthen(struct bpfgen_code *c)
{
	bool changed = false;

	for (size_t i = 0; i < c->count; i++) {
		struct bpfgen_item *item = &c->items[i];
		bool jumps = item->kind == BPFGEN_BRANCH || item->kind == BPFGEN_GOTO;

		if (jumps && !item->far && distance(c, item) != (int16_t)distance(c, item))
			item->far = changed = true;
	}
	return changed;
}

static void item_write(const struct bpfgen_code *c, const struct bpfgen_item *item)
{
	struct ebpf_insn *to = c->insns + item->pc;

	*to = item->in;
	if (item->kind == BPFGEN_PLAIN)
		return;
	if (item->kind == BPFGEN_CALL) {
		to->imm = distance(c, item);
	} else if (!item->far) {
		to->off = (int16_t)distance(c, item);
	} else if (item->kind == BPFGEN_GOTO) {
		*to = insn(EBPF_GOTOL_CODE, 0, 0, 0, distance(c, item));
	} else {
		to->off = 1;
		to[1] = insn(EBPF_JA_CODE, 0, 0, 1, 0);
		to[2] = insn(EBPF_GOTOL_CODE, 0, 0, 0, distance(c, item));
	}
}

static void labels_check(struct bpfgen_code *c)
{
	if (!c->entry_count || c->labels[c->entries[0].label] != 0)
		fail(c, -EINVAL, "no function at the beginning");
	for (size_t i = 0; i < c->count; i++) {
		uint32_t label = c->items[i].label;

		if (c->items[i].kind == BPFGEN_PLAIN)
			continue;
		if (label >= c->label_count || c->labels[label] == NO_PLACE)
			fail(c, -EINVAL, "a jump to a label without a place");
		else if (c->labels[label] >= c->count)
			fail(c, -EINVAL, "a jump behind the last instruction");
	}
	for (size_t i = 0; i < c->entry_count; i++)
		if (c->labels[c->entries[i].label] >= c->count)
			fail(c, -EINVAL, "a function without instructions");
}

int bpfgen_code_finish(struct bpfgen_code *c, struct bpfgen_error *err)
{
	if (c->insns && !c->error)
		return 0;
	if (!c->error)
		labels_check(c);
	if (!c->error) {
		do
			c->insn_count = items_place(c);
		while (items_lengthen(c));
		if (c->insn_count > EBPF_INSNS_MAX)
			fail(c, -E2BIG, "too many instructions");
	}
	if (!c->error) {
		c->insns = calloc(c->insn_count, sizeof(*c->insns));
		if (!c->insns)
			fail(c, -ENOMEM, "out of memory");
	}
	if (c->error)
		return bpfgen_refuse(err, c->error, BPFGEN_NOWHERE, "%s", c->why);
	for (size_t i = 0; i < c->count; i++)
		item_write(c, &c->items[i]);
	return 0;
}

const struct ebpf_insn *bpfgen_code_insns(const struct bpfgen_code *c, size_t *count)
{
	*count = c->insn_count;
	return c->insns;
}
