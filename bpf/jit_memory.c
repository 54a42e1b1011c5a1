/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loads, stores and atomics as x86-64 code.
 *
 * An exact place of the stack frame or of the object's data is addressed directly; the program's
 * own register is not even used, so that nothing depends on what it holds under speculation. All
 * else goes through a window (bpf/state.h):
 *
 *	rcx = base + offset - window.addr
 *	stop here unless rcx < window.limit	what a program feels
 *	rcx &= window.mask			what a wrong guess of the processor feels
 *	r9 = window.host
 *
 * and the memory is at r9 + rcx. Neighbours of the same register that follow on a straight way
 * are checked together with the first, and use the same rcx and r9. When the check fails the run
 * looks for another window and tries again; when there is none, the interpreter executes this one
 * instruction by itself.
 */
#include <stddef.h>

#include "bpf/jit.h"

enum { LOOK_AHEAD = 256 };

static unsigned int rights_of(const struct ebpf_insn *in)
{
	if (ebpf_class(in) == EBPF_LDX)
		return EBPF_MAY_READ;
	return ebpf_is_atomic(in) ? EBPF_MAY_ATOMIC : EBPF_MAY_WRITE;
}

/* --- what follows the first access ------------------------------------------------------------ */

static bool writes(const struct ebpf_insn *in, unsigned int reg)
{
	if (ebpf_is_alu(in) || ebpf_class(in) == EBPF_LDX || ebpf_class(in) == EBPF_LD)
		return ebpf_dst(in) == reg;
	return ebpf_is_atomic(in);
}

static bool is_step(const struct ebpf_insn *in)
{
	return in->code == (EBPF_ALU64 | EBPF_ADD | EBPF_K);
}

void jit_held_update(struct jit_making *m, const struct ebpf_insn *in)
{
	struct jit_held *h = &m->held;

	if (!h->valid || !writes(in, h->base))
		return;
	if (!is_step(in)) {
		h->valid = false;
		return;
	}
	h->lo -= in->imm;
	h->hi -= in->imm;
	h->org -= in->imm;
}

/* An access that may share a check with one by @base and @rights */
static bool same_kind(const struct ebpf_object *obj, uint32_t pc, unsigned int base,
		      unsigned int rights)
{
	const struct ebpf_insn *in = &obj->insns[pc];

	return ebpf_is_memory(in) && obj->facts[pc].place == EBPF_ANYWHERE &&
	       ebpf_base(in) == base && rights_of(in) == rights && rights != EBPF_MAY_ATOMIC &&
	       !(ebpf_class(in) == EBPF_STX && ebpf_src(in) == EBPF_FP);
}

static bool is_end(const struct ebpf_object *obj, uint32_t pc, unsigned int base,
		   unsigned int rights)
{
	if (obj->facts[pc].start || !obj->facts[pc].reached)
		return true;
	return !same_kind(obj, pc, base, rights) && jit_uses_scratch(obj, pc);
}

/*
 * Widens lo and hi by the accesses that follow, if they follow soon: many accesses may look at the
 * same code. @steps: what the base register grew by meanwhile
 */
static void span_widen(const struct jit_making *m, uint32_t pc, int64_t *lo, int64_t *hi)
{
	const struct ebpf_object *obj = m->obj;
	const struct ebpf_insn *in = &obj->insns[pc];
	unsigned int base = ebpf_base(in), rights = rights_of(in);
	int64_t steps = 0;

	if (!same_kind(obj, pc, base, rights))
		return;
	for (int left = LOOK_AHEAD; left && (!writes(in, base) || is_step(in)); left--) {
		int64_t from, to;

		if (writes(in, base))
			steps += in->imm;
		pc += 1 + (in->code == EBPF_LDDW);
		in = &obj->insns[pc];
		if (pc >= obj->count || is_end(obj, pc, base, rights))
			return;
		if (!same_kind(obj, pc, base, rights))
			continue;
		from = obj->insns[pc].off + steps;
		to = from + ebpf_bytes(&obj->insns[pc]);
		from = from < *lo ? from : *lo;
		to = to > *hi ? to : *hi;
		if (to - from > EBPF_SPAN_MAX)
			return;
		*lo = from;
		*hi = to;
	}
}

/* The index of this length among those that are checked, or -1 if there are too many */
static int span_index(struct ebpf_jit *jit, int64_t len)
{
	for (int i = 0; i < EBPF_SPANS; i++) {
		if (!jit->spans[i])
			jit->spans[i] = (uint8_t)len;
		if (jit->spans[i] == len)
			return i;
	}
	return -1;
}

/* --- the check -------------------------------------------------------------------------------- */

static struct x86_mem window_field(unsigned int window, size_t field)
{
	return JIT_AT(offsetof(struct ebpf_run, window) + window * sizeof(struct ebpf_window) +
		      field);
}

/* Windows are numbered as the code comes to need them. */
static unsigned int window_number(struct jit_making *m, unsigned int base, unsigned int rights)
{
	uint8_t *number = &m->window_of[base * 3 + rights / 2];

	if (!*number) {
		m->jit->window_rights[m->jit->window_count] = (uint8_t)rights;
		*number = (uint8_t)++m->jit->window_count;
	}
	return *number - 1u;
}

static void window_check(struct jit_making *m, uint32_t pc)
{
	const struct ebpf_insn *in = &m->obj->insns[pc];
	unsigned int base = ebpf_base(in), rights = rights_of(in);
	unsigned int window = window_number(m, base, rights);
	int64_t lo = in->off, hi = lo + ebpf_bytes(in);
	struct x86 *c = &m->c;
	struct jit_site site;
	int span;

	span_widen(m, pc, &lo, &hi);
	/* From the register itself on: one instruction less on the way of the address */
	if (lo > 0 && hi <= EBPF_SPAN_MAX)
		lo = 0;
	span = span_index(m->jit, hi - lo);
	if (span < 0) {
		lo = in->off;
		hi = lo + ebpf_bytes(in);
		span = span_index(m->jit, hi - lo);
	}
	site = (struct jit_site){ pc,
				  m->charged,
				  (uint32_t)c->len,
				  (int32_t)lo,
				  (uint8_t)base,
				  (uint8_t)(hi - lo),
				  (uint8_t)rights,
				  (uint8_t)window };
	if (lo)
		x86_rm(c, X86_WIDE(0x8d), JIT_T1,
		       (struct x86_mem){ jit_reg(base), X86_NONE, (int32_t)lo });
	else
		x86_mov(c, JIT_T1, jit_reg(base));
	x86_rm(c, X86_WIDE(0x2b), JIT_T1, window_field(window, offsetof(struct ebpf_window, addr)));
	x86_rm(c, X86_WIDE(0x3b), JIT_T1,
	       window_field(window, offsetof(struct ebpf_window, limit) + 8 * (size_t)span));
	jit_exit(m, X86_AE, &site);
	x86_rm(c, X86_WIDE(0x23), JIT_T1, window_field(window, offsetof(struct ebpf_window, mask)));
	x86_load(c, JIT_T2, window_field(window, offsetof(struct ebpf_window, host)));
	m->held = (struct jit_held){ true, base, rights, lo, hi, lo };
}

static bool held_serves(const struct jit_making *m, const struct ebpf_insn *in)
{
	const struct jit_held *h = &m->held;

	return h->valid && h->base == ebpf_base(in) && h->rights == rights_of(in) &&
	       h->rights != EBPF_MAY_ATOMIC && in->off >= h->lo &&
	       in->off + ebpf_bytes(in) <= h->hi;
}

static struct x86_mem operand(struct jit_making *m, uint32_t pc)
{
	const struct ebpf_insn *in = &m->obj->insns[pc];
	const struct ebpf_fact *fact = &m->obj->facts[pc];

	switch (fact->place) {
	case EBPF_IN_FRAME:
		return (struct x86_mem){ X86_RBP, X86_NONE, fact->at };
	case EBPF_IN_DATA:
		m->held.valid = false;
		x86_load(&m->c, JIT_T1, JIT_RUN(data));
		return (struct x86_mem){ JIT_T1, X86_NONE, fact->at };
	case EBPF_IN_CONSTANTS:
		m->held.valid = false;
		x86_mov_imm(&m->c, JIT_T1, (uintptr_t)m->obj->constants);
		return (struct x86_mem){ JIT_T1, X86_NONE, fact->at };
	}
	if (!held_serves(m, in))
		window_check(m, pc);
	return (struct x86_mem){ JIT_T2, JIT_T1, (int32_t)(in->off - m->held.org) };
}

/* The same address in rcx alone, so that r9 is free */
static struct x86_mem operand_alone(struct jit_making *m, struct x86_mem at)
{
	x86_rm(&m->c, X86_WIDE(0x8d), JIT_T1, at);
	m->held.valid = false;
	return (struct x86_mem){ JIT_T1, X86_NONE, 0 };
}

/* --- the access ------------------------------------------------------------------------------- */

static void load(struct jit_making *m, const struct ebpf_insn *in, struct x86_mem at)
{
	enum x86_reg dst = jit_reg(ebpf_dst(in));
	bool extended = ebpf_mode(in) == EBPF_MEMSX;
	unsigned int code = 0x8b;

	if (ebpf_bytes(in) == 1)
		code = extended ? 0x0fbe : 0x0fb6;
	else if (ebpf_bytes(in) == 2)
		code = extended ? 0x0fbf : 0x0fb7;
	else if (extended)
		code = 0x63;
	x86_rm(&m->c, X86_OP(code, extended || ebpf_bytes(in) == 8), dst, at);
}

static struct x86_op store_op(const struct ebpf_insn *in, unsigned int code)
{
	unsigned int bytes = ebpf_bytes(in);

	return (struct x86_op){ .code = bytes == 1 ? code - 1 : code,
				.wide = bytes == 8,
				.narrow = bytes == 2,
				.byte = bytes == 1 };
}

static void store(struct jit_making *m, const struct ebpf_insn *in, struct x86_mem at)
{
	if (ebpf_class(in) == EBPF_STX) {
		if (ebpf_src(in) == EBPF_FP)
			at = operand_alone(m, at);
		x86_rm(&m->c, store_op(in, 0x89), jit_operand(m, ebpf_src(in)), at);
		return;
	}
	x86_rm(&m->c, store_op(in, 0xc7), 0, at);
	if (ebpf_bytes(in) >= 4) {
		x86_word(&m->c, (uint32_t)in->imm);
		return;
	}
	x86_byte(&m->c, (uint8_t)in->imm);
	if (ebpf_bytes(in) == 2)
		x86_byte(&m->c, (uint8_t)(in->imm >> 8));
}

/* x86 has or, and, xor that give the old value only as a loop around cmpxchg, which wants rax. */
static void fetch_loop(struct jit_making *m, const struct ebpf_insn *in, struct x86_mem at,
		       bool wide)
{
	unsigned int op = in->imm & ~EBPF_FETCH;
	unsigned int code = op == EBPF_OR ? 0x0b : op == EBPF_AND ? 0x23 : 0x33;
	enum x86_reg src = jit_reg(ebpf_src(in));
	struct x86 *c = &m->c;
	size_t again;

	x86_store(c, JIT_RUN(scratch), X86_RAX);
	x86_rm(c, X86_OP(0x8b, wide), X86_RAX, at);
	again = c->len;
	x86_mov(c, JIT_T2, X86_RAX);
	if (src == X86_RAX)
		x86_rm(c, X86_OP(code, wide), JIT_T2, JIT_RUN(scratch));
	else
		x86_rr(c, X86_OP(code, wide), JIT_T2, src);
	x86_rm(c, (struct x86_op){ .code = 0x0fb1, .wide = wide, .lock = true }, JIT_T2, at);
	x86_link(c, x86_jump(c, X86_NE), again);
	x86_rr(c, X86_OP(0x89, wide), X86_RAX, src);
	if (src != X86_RAX)
		x86_load(c, X86_RAX, JIT_RUN(scratch));
}

static void exchange(struct jit_making *m, const struct ebpf_insn *in, struct x86_mem at, bool wide)
{
	bool compare = in->imm == (EBPF_CMPXCHG | EBPF_FETCH);
	bool add = in->imm == (EBPF_ADD | EBPF_FETCH);
	unsigned int code = compare ? 0x0fb1 : add ? 0x0fc1 : 0x87;
	enum x86_reg src = jit_operand(m, ebpf_src(in));

	x86_rm(&m->c, (struct x86_op){ .code = code, .wide = wide, .lock = code != 0x87 }, src, at);
	if (compare && !wide) /* where it was equal, rax is not written */
		x86_rr(&m->c, X86_OP(0x89, false), X86_RAX, X86_RAX);
}

static void atomic(struct jit_making *m, uint32_t pc, struct x86_mem at)
{
	static const uint8_t plain[16] = { [EBPF_ADD >> 4] = 0x01,
					   [EBPF_OR >> 4] = 0x09,
					   [EBPF_AND >> 4] = 0x21,
					   [EBPF_XOR >> 4] = 0x31 };
	const struct ebpf_insn *in = &m->obj->insns[pc];
	bool wide = ebpf_bytes(in) == 8;
	struct jit_site site = { .pc = pc, .refund = m->charged };

	at = operand_alone(m, at);
	if (m->obj->facts[pc].place == EBPF_ANYWHERE) {
		x86_rr(&m->c, (struct x86_op){ .code = 0xf6, .byte = true }, 0, JIT_T1);
		x86_byte(&m->c, ebpf_bytes(in) - 1);
		jit_exit(m, X86_NE, &site);
	}
	if (!(in->imm & EBPF_FETCH))
		x86_rm(&m->c,
		       (struct x86_op){ .code = plain[in->imm >> 4], .wide = wide, .lock = true },
		       jit_operand(m, ebpf_src(in)), at);
	else if (in->imm == (EBPF_ADD | EBPF_FETCH) || in->imm >= EBPF_XCHG)
		exchange(m, in, at, wide);
	else
		fetch_loop(m, in, at, wide);
}

void jit_memory(struct jit_making *m, uint32_t pc)
{
	const struct ebpf_insn *in = &m->obj->insns[pc];
	struct x86_mem at = operand(m, pc);

	if (ebpf_class(in) == EBPF_LDX)
		load(m, in, at);
	else if (ebpf_is_atomic(in))
		atomic(m, pc, at);
	else
		store(m, in, at);
}
