/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The verifier's second half: what registers and stack hold at each instruction, on all ways to it.
 *
 * States are kept where jumps lead, joined with what arrives there, and followed again until
 * nothing changes; bounds that keep growing in a loop are given up, so loops of any kind are
 * allowed. Functions are followed once for all their callers together. The work is bounded: an
 * object that would take longer is refused.
 *
 * What is refused: a register or a byte of the stack that is read before it was written, on some
 * way; an access that is outside of the frame, of .rodata, .data or .bss whatever happens; a
 * write to .rodata; a misaligned atomic; r0 not set at the end. What remains unknown is checked
 * when it runs: the only facts that spare a check are addresses that are one exact place
 * (facts_mark).
 */
#include <stdlib.h>
#include <string.h>

#include "bpf/program.h"
#include "bpf/value.h"

enum { WIDEN_AFTER = 4, STEPS_EACH = 256, STEPS_LEAST = 1 << 20 };

struct state {
	struct value reg[EBPF_REGS];
	uint64_t written[EBPF_FRAME_SIZE / 64]; /* a bit for each byte of the frame */
	bool escaped;				/* somebody else may write to the frame */
	unsigned int visits;
};

struct flow {
	struct ebpf_object *obj;
	struct ebpf_error *err;
	struct state **states;
	uint32_t *function; /* where the function of an instruction begins */
	bool *no_result;    /* of a function: it may end without r0 */
	bool *is_entry;
	uint32_t *queue; /* a ring of count + 1 */
	bool *queued;
	uint32_t first, last;
	uint64_t steps;
	bool marking; /* the last pass, which notes facts */
};

#define flow_refuse(f, pc, ...) ebpf_refuse((f)->obj, (f)->err, -EINVAL, pc, __VA_ARGS__)

/* --- states ----------------------------------------------------------------------------------- */

static void state_init(struct state *s)
{
	memset(s, 0, sizeof(*s));
	s->reg[EBPF_FP] = (struct value){ VALUE_FRAME, 0, 0 };
}

/* Whether @s became another one */
static bool state_join(struct state *s, const struct state *with)
{
	bool widen = ++s->visits > WIDEN_AFTER, changed = false;

	for (int i = 0; i < EBPF_REGS; i++) {
		struct value v = value_join(s->reg[i], with->reg[i]);

		/* An address of the frame that is now a number may be used by anything */
		if (v.kind == VALUE_NUMBER && s->reg[i].kind != with->reg[i].kind && !s->escaped)
			s->escaped = changed = true;
		if (widen)
			v = value_widen(s->reg[i], v);
		changed |= !value_same(&v, &s->reg[i]);
		s->reg[i] = v;
	}
	for (size_t i = 0; i < EBPF_FRAME_SIZE / 64; i++) {
		changed |= (s->written[i] & with->written[i]) != s->written[i];
		s->written[i] &= with->written[i];
	}
	changed |= with->escaped && !s->escaped;
	s->escaped |= with->escaped;
	return changed;
}

static void enqueue(struct flow *f, uint32_t pc)
{
	if (f->queued[pc])
		return;
	f->queued[pc] = true;
	f->queue[f->last] = pc;
	f->last = f->last == f->obj->count ? 0 : f->last + 1;
}

static int arrive(struct flow *f, uint32_t pc, const struct state *s)
{
	if (f->marking)
		return 0;
	if (f->states[pc]) {
		if (state_join(f->states[pc], s))
			enqueue(f, pc);
		return 0;
	}
	f->states[pc] = malloc(sizeof(*s));
	if (!f->states[pc])
		return -ENOMEM;
	*f->states[pc] = *s;
	f->states[pc]->visits = 0;
	enqueue(f, pc);
	return 0;
}

/* --- memory ----------------------------------------------------------------------------------- */

static bool bytes_written(const struct state *s, int64_t at, unsigned int len)
{
	for (int64_t i = at + EBPF_FRAME_SIZE; len--; i++)
		if (!(s->written[i / 64] >> (i % 64) & 1))
			return false;
	return true;
}

static void bytes_write(struct state *s, int64_t at, unsigned int len)
{
	for (int64_t i = at + EBPF_FRAME_SIZE; len--; i++)
		s->written[i / 64] |= 1ull << (i % 64);
}

static void fact_note(struct flow *f, uint32_t pc, enum ebpf_place place, int64_t at)
{
	if (!f->marking)
		return;
	f->obj->facts[pc].place = (uint8_t)place;
	f->obj->facts[pc].at = (int32_t)at;
}

struct access {
	int64_t lo, hi; /* where it may begin */
	unsigned int len;
	bool reads, writes, atomic;
};

static int frame_access(struct flow *f, uint32_t pc, struct state *s, const struct access *a)
{
	if (a->hi < -EBPF_FRAME_SIZE || a->lo + a->len > 0)
		return flow_refuse(f, pc, "%d bytes at r10%+lld are outside of the stack frame",
				   (int)a->len, (long long)a->lo);
	if (a->lo != a->hi) {
		s->escaped |= a->writes;
		return 0;
	}
	if (a->lo < -EBPF_FRAME_SIZE)
		return flow_refuse(f, pc, "%d bytes at r10%+lld are outside of the stack frame",
				   (int)a->len, (long long)a->lo);
	if (a->atomic && a->lo % a->len)
		return flow_refuse(f, pc, "a misaligned atomic");
	if (a->reads && !s->escaped && !bytes_written(s, a->lo, a->len))
		return flow_refuse(f, pc, "%d bytes at r10%+lld are read before they are written",
				   (int)a->len, (long long)a->lo);
	if (a->writes)
		bytes_write(s, a->lo, a->len);
	fact_note(f, pc, EBPF_IN_FRAME, a->lo);
	return 0;
}

/* An exact address that belongs to the program itself */
static int own_access(struct flow *f, uint32_t pc, const struct access *a)
{
	uint64_t addr = (uint64_t)a->lo, at = addr & UINT32_MAX;
	bool constants = addr - at == EBPF_CONSTANTS_ADDR, data = addr - at == EBPF_DATA_ADDR;
	size_t size = constants ? f->obj->constants_size : data ? f->obj->data_size : 0;

	if (addr - at == EBPF_STACK_ADDR)
		return 0;
	if (at > size || a->len > size - at)
		return flow_refuse(f, pc, "%u bytes at 0x%llx are outside of the program's data",
				   a->len, (unsigned long long)addr);
	if (constants && a->writes)
		return flow_refuse(f, pc, "a write to constants");
	if (a->atomic && addr % a->len)
		return flow_refuse(f, pc, "a misaligned atomic");
	fact_note(f, pc, constants ? EBPF_IN_CONSTANTS : EBPF_IN_DATA, (int64_t)at);
	return 0;
}

static int access_check(struct flow *f, uint32_t pc, struct state *s, const struct ebpf_insn *in)
{
	const struct value *base = &s->reg[ebpf_base(in)];
	struct access a = { .len = ebpf_bytes(in),
			    .reads = ebpf_class(in) == EBPF_LDX || ebpf_is_atomic(in),
			    .writes = ebpf_class(in) != EBPF_LDX,
			    .atomic = ebpf_is_atomic(in) };

	fact_note(f, pc, EBPF_ANYWHERE, 0);
	a.lo = (int64_t)((uint64_t)base->lo + (uint64_t)in->off);
	a.hi = (int64_t)((uint64_t)base->hi + (uint64_t)in->off);
	if (base->kind == VALUE_FRAME)
		return frame_access(f, pc, s, &a);
	if (value_is_exact(base) && (uint64_t)a.lo >= EBPF_OWN_ADDR)
		return own_access(f, pc, &a);
	return 0;
}

/* --- instructions ----------------------------------------------------------------------------- */

static int need(struct flow *f, uint32_t pc, const struct state *s, unsigned int reg)
{
	if (s->reg[reg].kind == VALUE_NONE)
		return flow_refuse(f, pc, "r%u is not initialised", reg);
	return 0;
}

static bool reads_dst(const struct ebpf_insn *in)
{
	if (ebpf_is_alu(in))
		return ebpf_op(in) != EBPF_MOV;
	return ebpf_is_branch(in) || ebpf_class(in) == EBPF_ST || ebpf_class(in) == EBPF_STX;
}

static bool reads_src(const struct ebpf_insn *in)
{
	if (ebpf_class(in) == EBPF_LDX || ebpf_class(in) == EBPF_STX)
		return true;
	if (ebpf_is_alu(in) && ebpf_op(in) == EBPF_END)
		return false;
	return (ebpf_is_alu(in) || ebpf_is_branch(in)) && in->code & EBPF_X;
}

static int operands_check(struct flow *f, uint32_t pc, const struct state *s,
			  const struct ebpf_insn *in)
{
	if ((reads_dst(in) && need(f, pc, s, ebpf_dst(in))) ||
	    (reads_src(in) && need(f, pc, s, ebpf_src(in))))
		return -EINVAL;
	if (ebpf_is_atomic(in) && in->imm == (EBPF_CMPXCHG | EBPF_FETCH))
		return need(f, pc, s, 0);
	return 0;
}

static int memory_step(struct flow *f, uint32_t pc, struct state *s, const struct ebpf_insn *in)
{
	if (access_check(f, pc, s, in))
		return -EINVAL;
	if (ebpf_class(in) == EBPF_LDX)
		s->reg[ebpf_dst(in)] = value_loaded(ebpf_bytes(in), ebpf_mode(in) == EBPF_MEMSX);
	if (ebpf_class(in) == EBPF_STX && s->reg[ebpf_src(in)].kind == VALUE_FRAME)
		s->escaped = true;
	if (!ebpf_is_atomic(in) || !(in->imm & EBPF_FETCH))
		return 0;
	if (in->imm != (EBPF_CMPXCHG | EBPF_FETCH)) {
		s->reg[ebpf_src(in)] = value_loaded(ebpf_bytes(in), false);
		return 0;
	}
	s->escaped |= s->reg[0].kind == VALUE_FRAME;
	s->reg[0] = value_loaded(ebpf_bytes(in), false);
	return 0;
}

static void alu_step(struct state *s, const struct ebpf_insn *in)
{
	struct value dst = s->reg[ebpf_dst(in)], src = value_number(in->imm, in->imm), out;

	if (in->code & EBPF_X && ebpf_op(in) != EBPF_END)
		src = s->reg[ebpf_src(in)];
	if (ebpf_op(in) == EBPF_MOV)
		dst = value_number(0, 0);
	out = value_alu(in, dst, src);
	if ((dst.kind == VALUE_FRAME || src.kind == VALUE_FRAME) && out.kind != VALUE_FRAME)
		s->escaped = true;
	s->reg[ebpf_dst(in)] = out;
}

/* What was an address in the caller's frame is just a number in the function that is called. */
static int callee_enter(struct flow *f, uint32_t to, const struct state *s)
{
	struct state inner;

	state_init(&inner);
	for (int i = 1; i <= 5; i++)
		inner.reg[i] = s->reg[i].kind == VALUE_FRAME ? value_any() : s->reg[i];
	return arrive(f, to, &inner);
}

static void call_leave(struct state *s, bool result)
{
	for (int i = 1; i <= 5; i++) {
		s->escaped |= s->reg[i].kind == VALUE_FRAME;
		s->reg[i].kind = VALUE_NONE;
	}
	s->reg[0] = result ? value_any() : (struct value){ VALUE_NONE, 0, 0 };
}

static int call_step(struct flow *f, uint32_t pc, struct state *s, const struct ebpf_insn *in)
{
	uint32_t to = pc + 1 + (uint32_t)in->imm;
	int ret = 0;

	if (ebpf_is_local_call(in)) {
		ret = callee_enter(f, to, s);
		call_leave(s, !f->no_result[to]);
		return ret;
	}
	for (unsigned int i = 1;
	     i <= f->obj->helpers->list[ebpf_helper_find(f->obj, in->imm)].args && !ret; i++)
		ret = need(f, pc, s, i);
	call_leave(s, true);
	return ret;
}

/* A function that may end without r0: its callers have no r0 behind the call. */
static int exit_step(struct flow *f, uint32_t pc, const struct state *s)
{
	uint32_t function = f->function[pc];

	if (s->reg[0].kind != VALUE_NONE || f->no_result[function])
		return 0;
	if (f->is_entry[function])
		return flow_refuse(f, pc, "r0 is not set at the end");
	f->no_result[function] = true;
	f->steps += f->obj->count / 8;
	for (uint32_t i = 0; i < f->obj->count; i++)
		if (ebpf_is_local_call(&f->obj->insns[i]) && f->states[i] &&
		    i + 1 + (uint32_t)f->obj->insns[i].imm == function)
			enqueue(f, i);
	return 0;
}

/* Follows one instruction. *next: the one behind it, or the count of all where none is. */
static int insn_step(struct flow *f, uint32_t pc, struct state *s, uint32_t *next)
{
	const struct ebpf_insn *in = &f->obj->insns[pc];
	uint32_t to = pc + 1 + (uint32_t)ebpf_distance(in);
	int ret = operands_check(f, pc, s, in);

	if (f->marking)
		f->obj->facts[pc].reached = true;
	*next = pc + 1 + (in->code == EBPF_LDDW);
	if (ret)
		return ret;
	if (in->code == EBPF_LDDW) {
		int64_t v = (int64_t)((uint32_t)in[0].imm | (uint64_t)(uint32_t)in[1].imm << 32);

		s->reg[ebpf_dst(in)] = value_number(v, v);
	} else if (ebpf_is_alu(in)) {
		alu_step(s, in);
	} else if (ebpf_is_memory(in)) {
		ret = memory_step(f, pc, s, in);
	} else if (ebpf_is_goto(in)) {
		*next = f->obj->count;
		ret = arrive(f, to, s);
	} else if (ebpf_op(in) == EBPF_CALL) {
		ret = call_step(f, pc, s, in);
	} else if (ebpf_op(in) == EBPF_EXIT) {
		*next = f->obj->count;
		ret = exit_step(f, pc, s);
	} else {
		ret = arrive(f, to, s);
	}
	return ret;
}

static int block_follow(struct flow *f, uint32_t pc)
{
	const uint32_t count = f->obj->count;
	struct state s = *f->states[pc];
	int ret;

	for (;;) {
		uint32_t next;

		if (!f->marking && ++f->steps > STEPS_LEAST + (uint64_t)STEPS_EACH * count)
			return flow_refuse(f, pc, "the program is too complex to verify");
		ret = insn_step(f, pc, &s, &next);
		if (ret || next == count)
			return ret;
		if (f->obj->facts[next].target)
			return arrive(f, next, &s);
		pc = next;
	}
}

/* --- the whole -------------------------------------------------------------------------------- */

static int entries_enter(struct flow *f)
{
	struct state s;
	int ret = 0;

	state_init(&s);
	for (int i = 1; i <= 5; i++)
		s.reg[i] = value_any();
	for (size_t i = 0; i < f->obj->entry_count && !ret; i++) {
		f->is_entry[f->obj->entries[i].pc] = true;
		ret = arrive(f, f->obj->entries[i].pc, &s);
	}
	return ret;
}

static int facts_mark(struct flow *f)
{
	int ret = 0;

	f->marking = true;
	for (uint32_t pc = 0; pc < f->obj->count && !ret; pc++)
		if (f->states[pc])
			ret = block_follow(f, pc);
	return ret;
}

static int flow_run(struct flow *f)
{
	uint32_t function = 0;
	int ret;

	for (uint32_t pc = 0; pc < f->obj->count; pc++) {
		function = f->obj->facts[pc].start ? pc : function;
		f->obj->facts[pc].target |= f->obj->facts[pc].start;
		f->function[pc] = function;
	}
	ret = entries_enter(f);
	while (!ret && f->first != f->last) {
		uint32_t pc = f->queue[f->first];

		f->first = f->first == f->obj->count ? 0 : f->first + 1;
		f->queued[pc] = false;
		ret = block_follow(f, pc);
	}
	return ret ? ret : facts_mark(f);
}

int ebpf_flow_check(struct ebpf_object *obj, struct ebpf_error *err)
{
	struct flow f = { .obj = obj, .err = err };
	int ret = -ENOMEM;

	f.states = calloc(obj->count, sizeof(struct state *));
	f.function = calloc(obj->count, sizeof(*f.function));
	f.no_result = calloc(obj->count, sizeof(bool));
	f.is_entry = calloc(obj->count, sizeof(bool));
	f.queued = calloc(obj->count, sizeof(bool));
	f.queue = calloc(obj->count + 1, sizeof(*f.queue));
	if (f.states && f.function && f.no_result && f.is_entry && f.queued && f.queue)
		ret = flow_run(&f);
	for (uint32_t pc = 0; f.states && pc < obj->count; pc++)
		free(f.states[pc]);
	free(f.states);
	free(f.function);
	free(f.no_result);
	free(f.is_entry);
	free(f.queued);
	free(f.queue);
	return ret;
}
