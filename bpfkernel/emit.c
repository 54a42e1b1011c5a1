/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The body: functions one in another, loops that pay fuel, and what kernel and RFC see differently.
 *
 * To the kernel all values of the program are numbers. It takes code only if it can follow it to
 * its end, and it follows what it knows: a loop that counts to 100,000 would be too long for it. So
 * constants are made unknown (constant_write), each loop has a may_goto at its beginning, and what
 * the program may touch is checked by code of ours (access.c), not proved.
 *
 * Functions are written out where they are called, for then all have one stack frame of the
 * kernel's, with what the run needs. That ends like everything that is too long.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpfgen/inside.h"
#include "bpfkernel/inside.h"

enum { MAY_GOTO = 0xe0 };

#define block_offset(member) ((int16_t)offsetof(struct bpfkernel_block, member))

static int stop_new(struct kernel_emit *e, uint32_t pc, enum ebpf_status status, unsigned int *out)
{
	*out = bpfgen_label(e->c);
	if (!bpfgen_grow((void **)&e->stops, &e->stop_room, e->stop_count, sizeof(*e->stops)))
		return -ENOMEM;
	e->stops[e->stop_count++] = (struct kernel_stop){ *out, pc, status };
	return 0;
}

/* --- fuel ------------------------------------------------------------------------------------- */

/* Takes @n of the fuel; @x may be changed */
static void fuel_take(struct kernel_emit *e, uint32_t n, unsigned int x, unsigned int empty)
{
	bool in_slot = e->fuel_reg == EBPF_FP;
	unsigned int reg = in_slot ? x : e->fuel_reg;

	if (in_slot)
		bpfgen_load(e->c, EBPF_DW, reg, EBPF_FP, SLOT_FUEL);
	bpfgen_alu_imm(e->c, EBPF_SUB, reg, (int32_t)n);
	if (in_slot)
		bpfgen_store(e->c, EBPF_DW, EBPF_FP, SLOT_FUEL, reg);
	bpfgen_if_imm(e->c, EBPF_JSLT, reg, 0, empty);
}

/* A loop begins: each way to this instruction pays for the longest way round */
static int head_write(struct kernel_emit *e, uint32_t pc)
{
	uint32_t used = e->unit.live[pc];
	bool spilled = false;
	unsigned int x = 0, empty;
	int ret = stop_new(e, e->at, EBPF_FUEL, &empty);

	if (ret)
		return ret;
	if (e->fuel_reg == EBPF_FP)
		x = kernel_scratch(e, ~used & 0x3ff, 0, SLOT_FIRST, &spilled);
	fuel_take(e, e->unit.head[pc], x, empty);
	if (spilled)
		bpfgen_load(e->c, EBPF_DW, x, EBPF_FP, SLOT_FIRST);
	bpfgen_if_imm(e->c, (enum ebpf_jump)MAY_GOTO, 0, 0, empty);
	return 0;
}

/* A register that nothing uses can keep the fuel; those below r7 are used where runs end. */
static unsigned int fuel_place(const struct kernel_unit *u)
{
	uint32_t used = 0;

	for (uint32_t pc = 0; pc < u->count; pc++) {
		if (u->used[u->function[pc]])
			used |= kernel_reads(&u->insns[pc]) | kernel_writes(&u->insns[pc]);
		pc += u->insns[pc].code == EBPF_LDDW;
	}
	for (unsigned int reg = 9; reg >= 7; reg--)
		if (!(used & 1u << reg))
			return reg;
	return EBPF_FP;
}

/* --- instructions ------------------------------------------------------------------------------*/

/* A number that the kernel's verifier does not know; @class: of the addition, which decides about
 * the upper half */
static void constant_write(struct kernel_emit *e, unsigned int dst, unsigned int class, int32_t imm)
{
	bpfgen_load(e->c, EBPF_DW, dst, EBPF_FP, SLOT_ZERO);
	bpfgen_insn(e->c, (struct ebpf_insn){ (uint8_t)(class | EBPF_ADD), (uint8_t)dst, 0, imm });
}

/* r10 as an operand is a number, in *x if it is not EBPF_FP */
static void frame_operand(struct kernel_emit *e, uint32_t pc, struct ebpf_insn *in, unsigned int *x,
			  bool *spilled)
{
	bool src = in->code & EBPF_X && ebpf_src(in) == EBPF_FP;
	bool dst = ebpf_dst(in) == EBPF_FP; /* of a branch; others do not write r10 */

	*x = EBPF_FP;
	*spilled = false;
	if (!src && !dst)
		return;
	*x = kernel_scratch(e, kernel_free_regs(e, pc), kernel_reads(in) | kernel_writes(in),
			    SLOT_FIRST, spilled);
	kernel_number(e, *x, kernel_frame(e), kernel_free_regs(e, pc),
		      kernel_reads(in) | kernel_writes(in));
	in->regs = (uint8_t)((src ? *x : ebpf_src(in)) << 4 | (dst ? *x : ebpf_dst(in)));
}

/* What RFC 9669 defines and the kernel refuses. True: nothing is left to be written */
static bool alu_special(struct kernel_emit *e, struct ebpf_insn *in)
{
	unsigned int op = ebpf_op(in), class = ebpf_class(in), dst = ebpf_dst(in);
	bool constant = !(in->code & EBPF_X);

	if (constant && op == EBPF_MOV) {
		constant_write(e, dst, class, in->imm);
		return true;
	}
	if (constant && (op == EBPF_LSH || op == EBPF_RSH || op == EBPF_ARSH))
		in->imm &= class == EBPF_ALU64 ? 63 : 31;
	if (!constant || in->imm || (op != EBPF_DIV && op != EBPF_MOD))
		return false;
	if (op == EBPF_DIV)
		constant_write(e, dst, class, 0);
	else if (class == EBPF_ALU)
		bpfgen_insn(e->c, (struct ebpf_insn){ EBPF_ALU | EBPF_MOV | EBPF_X,
						      (uint8_t)(dst << 4 | dst), 0, 0 });
	return true;
}

static int alu_write(struct kernel_emit *e, uint32_t pc)
{
	struct ebpf_insn in = e->unit.insns[pc];
	bool spilled;
	unsigned int x;

	if (alu_special(e, &in))
		return 0;
	frame_operand(e, pc, &in, &x, &spilled);
	bpfgen_insn(e->c, in);
	if (spilled)
		bpfgen_load(e->c, EBPF_DW, x, EBPF_FP, SLOT_FIRST);
	return 0;
}

/* The label of each instruction of the function that is written at the moment */
struct places {
	uint32_t function, end;
	unsigned int *labels, after;
};

static void branch_write(struct kernel_emit *e, uint32_t pc, const struct places *places)
{
	struct ebpf_insn in = e->unit.insns[pc];
	uint32_t to = pc + 1 + (uint32_t)ebpf_distance(&in);
	unsigned int label = places->labels[to - places->function], x, there;
	bool spilled;

	frame_operand(e, pc, &in, &x, &spilled);
	there = spilled ? bpfgen_label(e->c) : label;
	bpfgen_branch(e->c, in, there);
	if (!spilled)
		return;
	/* Both ways have to take the register back */
	bpfgen_load(e->c, EBPF_DW, x, EBPF_FP, SLOT_FIRST);
	bpfgen_goto(e->c, places->labels[pc + 1 - places->function]);
	bpfgen_here(e->c, there);
	bpfgen_load(e->c, EBPF_DW, x, EBPF_FP, SLOT_FIRST);
	bpfgen_goto(e->c, label);
}

static int function_write(struct kernel_emit *e, uint32_t start, unsigned int after);

static int16_t saved_slot(const struct kernel_emit *e, unsigned int reg)
{
	return (int16_t)(SLOT_SAVED - (int)(e->depth * 4 + reg - 6) * 8);
}

static void saved_regs(struct kernel_emit *e, uint32_t live, bool back)
{
	for (unsigned int reg = 6; reg < EBPF_FP; reg++) {
		if (!(live & 1u << reg) || reg == e->fuel_reg)
			continue;
		if (back)
			bpfgen_load(e->c, EBPF_DW, reg, EBPF_FP, saved_slot(e, reg));
		else
			bpfgen_store(e->c, EBPF_DW, EBPF_FP, saved_slot(e, reg), reg);
	}
}

static uint32_t function_end(const struct kernel_unit *u, uint32_t start)
{
	uint32_t end = start;

	while (end < u->count && u->function[end] == start)
		end++;
	return end;
}

static int call_write(struct kernel_emit *e, uint32_t pc)
{
	uint32_t callee = e->unit.callee[pc], at = e->at, live = e->unit.live[pc + 1];
	bool helper = callee >= e->p->object->count;
	unsigned int stop, after = bpfgen_label(e->c);
	int ret;

	if (!helper && e->depth + 1 == EBPF_DEPTH_MAX) {
		ret = stop_new(e, at, EBPF_DEPTH, &stop);
		bpfgen_load(e->c, EBPF_DW, 0, EBPF_FP, SLOT_ZERO);
		bpfgen_if_imm(e->c, EBPF_JEQ, 0, 0, stop);
		return ret;
	}
	ret = stop_new(e, at, EBPF_FUEL, &stop);
	if (ret)
		return ret;
	fuel_take(e, function_end(&e->unit, callee) - callee, 0, stop); /* r0 is the call's */
	saved_regs(e, live, false);
	e->in_helper = helper;
	e->depth += !helper;
	ret = function_write(e, callee, after);
	e->depth -= !helper;
	e->in_helper = false;
	e->at = at;
	bpfgen_here(e->c, after);
	saved_regs(e, live, true);
	return ret;
}

static int insn_write(struct kernel_emit *e, uint32_t pc, const struct places *places)
{
	const struct ebpf_insn *in = &e->unit.insns[pc];

	if (in->code == EBPF_LDDW) {
		kernel_number(e, ebpf_dst(in),
			      (uint32_t)in[0].imm | (uint64_t)(uint32_t)in[1].imm << 32,
			      kernel_free_regs(e, pc), 0);
		return 0;
	}
	if (ebpf_is_alu(in))
		return alu_write(e, pc);
	if (ebpf_is_memory(in))
		return kernel_access(e, pc);
	if (in->code == EBPF_CALL_CODE)
		return call_write(e, pc);
	if (in->code == EBPF_EXIT_CODE)
		bpfgen_goto(e->c, places->after);
	else if (ebpf_is_goto(in))
		bpfgen_goto(
			e->c,
			places->labels[pc + 1 + (uint32_t)ebpf_distance(in) - places->function]);
	else
		branch_write(e, pc, places);
	return 0;
}

static const char *insn_wrong(const struct ebpf_insn *in)
{
	unsigned int op = (unsigned int)in->imm & ~(unsigned int)EBPF_FETCH;

	if (ebpf_is_atomic(in) && in->imm & EBPF_FETCH &&
	    (op == EBPF_AND || op == EBPF_OR || op == EBPF_XOR))
		return "the kernel has no such atomic for arenas";
	return NULL;
}

static int body_write(struct kernel_emit *e, const struct places *places)
{
	const struct ebpf_object *obj = e->p->object;
	int ret = 0;

	for (uint32_t pc = places->function; pc < places->end && !ret; pc++) {
		const struct ebpf_insn *in = &e->unit.insns[pc];
		const char *wrong = insn_wrong(in);

		bpfgen_here(e->c, places->labels[pc - places->function]);
		if (!e->in_helper) {
			if (!obj->facts[pc].reached)
				continue;
			e->at = pc;
		}
		if (wrong)
			return ebpf_refuse(obj, e->err, -EOPNOTSUPP, e->at, "%s", wrong);
		if (bpfgen_code_size(e->c) > BPFKERNEL_SLOTS_MAX)
			return ebpf_refuse(obj, e->err, -E2BIG, e->at, "too long for the kernel");
		if (e->unit.head[pc])
			ret = head_write(e, pc);
		if (!ret)
			ret = insn_write(e, pc, places);
		pc += in->code == EBPF_LDDW;
	}
	return ret;
}

/* Whether it comes to an end, by what can be seen */
static bool function_returns(const struct kernel_emit *e, uint32_t start, uint32_t end)
{
	for (uint32_t pc = start; pc < end; pc++) {
		if (e->unit.insns[pc].code == EBPF_EXIT_CODE &&
		    (e->in_helper || e->p->object->facts[pc].reached))
			return true;
		pc += e->unit.insns[pc].code == EBPF_LDDW;
	}
	return false;
}

static int function_write(struct kernel_emit *e, uint32_t start, unsigned int after)
{
	struct places places = { start, function_end(&e->unit, start), NULL, after };
	int ret;

	/* The kernel takes no code that nothing leads to, not even behind an endless loop. */
	if (!function_returns(e, start, places.end)) {
		bpfgen_load(e->c, EBPF_DW, 0, EBPF_FP, SLOT_ZERO);
		bpfgen_if_imm(e->c, EBPF_JNE, 0, 0, after);
	}
	places.labels = calloc(places.end - start, sizeof(*places.labels));
	if (!places.labels)
		return -ENOMEM;
	for (uint32_t i = 0; i < places.end - start; i++)
		places.labels[i] = bpfgen_label(e->c);
	ret = body_write(e, &places);
	free(places.labels);
	return ret;
}

/* --- beginning and end ---------------------------------------------------------------------- */

/* Whether some access may be to any address, also to the stack; those of helpers may */
static bool any_anywhere(const struct kernel_unit *u)
{
	const struct ebpf_fact *facts = u->object->facts;

	for (uint32_t pc = 0; pc < u->object->count; pc++) {
		bool helper = u->callee[pc] != NO_CALL && u->callee[pc] >= u->object->count;
		bool unknown = ebpf_is_memory(&u->insns[pc]) && facts[pc].place == EBPF_ANYWHERE;

		if ((helper || unknown) && u->used[u->function[pc]] && facts[pc].reached)
			return true;
		pc += u->insns[pc].code == EBPF_LDDW;
	}
	return false;
}

/* .data and .bss as they are when a run begins. r9 is the block; r1 and r2 are changed */
static void data_set(struct kernel_emit *e)
{
	const struct ebpf_object *obj = e->p->object;

	if (!obj->data_size)
		return;
	bpfgen_insn(e->c, (struct ebpf_insn){ EBPF_ALU | EBPF_MOV, 1, 0,
					      (int32_t)((uint32_t)e->p->arena + e->p->data) });
	bpfkernel_cast(e->c, 1, 1);
	for (size_t at = 0; at < obj->data_size; at += 8) {
		bpfgen_load(e->c, EBPF_DW, 2, 1, (int16_t)at);
		bpfgen_store(e->c, EBPF_DW, 9, (int16_t)(block_offset(data) + (int)at), 2);
	}
}

static void zero(struct kernel_emit *e, int at)
{
	bpfgen_insn(e->c, (struct ebpf_insn){ EBPF_ST | EBPF_MEM | EBPF_DW, 1, (int16_t)at, 0 });
}

/* Stack and data are zero behind the run. r1 is the block */
static void memory_clear(struct kernel_emit *e)
{
	const struct ebpf_object *obj = e->p->object;
	size_t words = e->anywhere ? obj->frames * EBPF_FRAME_SIZE / 8 : KERNEL_STACK_WORDS;

	for (size_t i = 0; i < words; i++)
		if (e->anywhere || e->stored[i / 64] & 1ull << i % 64)
			zero(e, block_offset(stack) + (int)i * 8);
	for (size_t at = 0; at < obj->data_size; at += 8)
		zero(e, block_offset(data) + (int)at);
}

static void prologue(struct kernel_emit *e)
{
	struct bpfgen_code *c = e->c;
	uint32_t start = e->p->entry;

	bpfkernel_cast(e->c, 9, 1);
	bpfgen_store(c, EBPF_DW, EBPF_FP, SLOT_BLOCK, 9);
	bpfgen_load(c, EBPF_DW, 1, 9, block_offset(fuel));
	bpfgen_alu_imm(c, EBPF_SUB, 1, (int32_t)(function_end(&e->unit, start) - start));
	bpfgen_store(c, EBPF_DW, EBPF_FP, SLOT_FUEL, 1);
	/* Stored as a whole and in parts, it is a number that the kernel does not follow. */
	bpfgen_store(c, EBPF_DW, EBPF_FP, SLOT_ZERO, 1);
	bpfgen_insn(c, (struct ebpf_insn){ EBPF_ST | EBPF_MEM | EBPF_DW, EBPF_FP, SLOT_ZERO, 0 });
	bpfgen_store(c, EBPF_B, EBPF_FP, SLOT_ZERO, 1);
	bpfgen_insn(c, (struct ebpf_insn){ EBPF_ST | EBPF_MEM | EBPF_B, EBPF_FP, SLOT_ZERO, 0 });
	data_set(e);
	for (unsigned int i = 0; i < 5; i++)
		bpfgen_load(c, EBPF_DW, i + 1, 9, (int16_t)(block_offset(arg) + (int)i * 8));
	if (e->fuel_reg < EBPF_FP)
		bpfgen_load(c, EBPF_DW, e->fuel_reg, EBPF_FP, SLOT_FUEL);
}

static void stops_write(struct kernel_emit *e)
{
	for (size_t i = 0; i < e->stop_count; i++) {
		bpfgen_here(e->c, e->stops[i].label);
		bpfgen_alu_imm(e->c, EBPF_MOV, 2, (int32_t)e->stops[i].pc);
		bpfgen_alu_imm(e->c, EBPF_MOV, 0, (int32_t)e->stops[i].status);
		bpfgen_goto(e->c, e->fail_plain);
	}
}

/* r0 is the program's result */
static void epilogue(struct kernel_emit *e, unsigned int after)
{
	struct bpfgen_code *c = e->c;

	bpfgen_here(c, after);
	bpfgen_load(c, EBPF_DW, 1, EBPF_FP, SLOT_BLOCK);
	bpfgen_store(c, EBPF_DW, 1, block_offset(value), 0);
	bpfgen_alu_imm(c, EBPF_MOV, 0, EBPF_DONE);
	bpfgen_goto(c, e->done);
	stops_write(e);
	kernel_tails(e);
	if (e->stop_count || e->tail_count) {
		bpfgen_here(c, e->fail_plain);
		bpfgen_load(c, EBPF_DW, 1, EBPF_FP, SLOT_BLOCK);
		bpfgen_store(c, EBPF_W, 1, block_offset(pc), 2);
	}
	bpfgen_here(c, e->done);
	bpfgen_store(c, EBPF_W, 1, block_offset(status), 0);
	if (e->fuel_reg == EBPF_FP) {
		bpfgen_load(c, EBPF_DW, 2, EBPF_FP, SLOT_FUEL);
		bpfgen_store(c, EBPF_DW, 1, block_offset(fuel), 2);
	} else {
		bpfgen_store(c, EBPF_DW, 1, block_offset(fuel), e->fuel_reg);
	}
	memory_clear(e);
}

/* The caller's windows, then the program's own memory */
static int windows_set(struct kernel_emit *e)
{
	const struct bpfkernel_params *p = e->p;
	const struct ebpf_object *obj = p->object;
	const unsigned int all = EBPF_MAY_READ | EBPF_MAY_WRITE | EBPF_MAY_ATOMIC;
	const struct bpfkernel_window own[] = {
		{ EBPF_STACK_ADDR, obj->frames * EBPF_FRAME_SIZE,
		  offsetof(struct bpfkernel_block, stack), all, BPFKERNEL_IN_BLOCK, 0 },
		{ EBPF_CONSTANTS_ADDR, (uint32_t)obj->constants_size, p->constants, EBPF_MAY_READ,
		  0, 0 },
		{ EBPF_DATA_ADDR, (uint32_t)obj->data_size, offsetof(struct bpfkernel_block, data),
		  all, BPFKERNEL_IN_BLOCK, 0 },
	};

	if (p->window_count > BPFKERNEL_WINDOWS_MAX)
		return ebpf_refuse(obj, e->err, -E2BIG, EBPF_NO_PC,
				   "more regions than the kernel's code can look at");
	if (obj->data_size > BPFKERNEL_DATA_MAX)
		return ebpf_refuse(obj, e->err, -E2BIG, EBPF_NO_PC,
				   "more than %d bytes of .data and .bss", BPFKERNEL_DATA_MAX);
	for (size_t i = 0; i < p->window_count; i++) {
		if (p->windows[i].size > INT32_MAX)
			return ebpf_refuse(obj, e->err, -E2BIG, EBPF_NO_PC,
					   "a region of 2 GiB or more");
		e->windows[e->window_count++] = p->windows[i];
	}
	for (size_t i = 0; i < base_array_size(own); i++)
		e->windows[e->window_count++] = own[i];
	return 0;
}

void bpfkernel_data_copy(const struct ebpf_object *object, uint8_t *to, size_t *constants_size,
			 size_t *size)
{
	*constants_size = base_align_up(object->constants_size, 8);
	*size = *constants_size + base_align_up(object->data_size, 8);
	if (!to)
		return;
	memset(to, 0, *size);
	if (object->constants_size)
		memcpy(to, object->constants, object->constants_size);
	if (object->data_size)
		memcpy(to + *constants_size, object->data, object->data_size);
}

int bpfkernel_emit(struct bpfgen_code *c, const struct bpfkernel_params *params,
		   struct ebpf_error *err)
{
	struct kernel_emit e = { .c = c, .p = params, .err = err };
	unsigned int after = bpfgen_label(c);
	int ret;

	*err = (struct ebpf_error){ .pc = EBPF_NO_PC };
	e.done = bpfgen_label(c);
	e.fail_memory = bpfgen_label(c);
	e.fail_plain = bpfgen_label(c);
	ret = kernel_unit_make(&e.unit, params, err);
	if (!ret)
		ret = windows_set(&e);
	if (!ret) {
		e.fuel_reg = fuel_place(&e.unit);
		e.anywhere = any_anywhere(&e.unit);
		prologue(&e);
		ret = function_write(&e, params->entry, after);
	}
	if (!ret)
		epilogue(&e, after);
	kernel_unit_free(&e.unit);
	free(e.tails);
	free(e.stops);
	return ret;
}
