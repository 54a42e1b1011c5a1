/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes programs at random. Each function first writes all registers, so that the verifier has
 * nothing to refuse; then come instructions of all kinds with registers, offsets and constants
 * that are likely to be at an edge. For the engines there are loops (the fuel ends them), calls,
 * and accesses in and out of regions; the kernel gets straight programs with jumps forward that
 * use nothing but their stack.
 */
#include "generate.h"

#include <string.h>

#include "base/bits.h"
#include "bpf/object.h"

struct making {
	struct ebpf_insn *at;
	size_t count;
	uint64_t random;
	enum generate_for what;
	unsigned int functions; /* beside the first */
	/*
	 * Linux 6.18 goes the wrong way at a branch, about once in thirty thousand programs, and
	 * each of those had an atomic that fetches from the stack: both operands are the same in
	 * both, and without the atomic it goes the right way. So programs for it have one or the
	 * other.
	 */
	bool branches, fetches;
};

uint64_t generate_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static unsigned int below(struct making *m, unsigned int n)
{
	return (unsigned int)(generate_random(&m->random) % n);
}

static void put(struct making *m, unsigned int code, unsigned int dst, unsigned int src, int off,
		int64_t imm)
{
	if (m->count < GENERATED_MAX)
		m->at[m->count++] = (struct ebpf_insn){ (uint8_t)code, (uint8_t)(src << 4 | dst),
							(int16_t)off, (int32_t)imm };
}

static void put_constant(struct making *m, unsigned int dst, uint64_t v)
{
	if (m->count + 2 > GENERATED_MAX)
		return;
	put(m, EBPF_LDDW, dst, 0, 0, (int32_t)v);
	put(m, 0, 0, 0, 0, (int32_t)(v >> 32));
}

static int32_t edge32(struct making *m)
{
	static const int32_t edges[] = { 0,	1,	-1,	 2,	    -2,	      7,    8,
					 31,	32,	63,	 64,	    127,      -128, 255,
					 256,	0x7fff, -0x8000, 0xffff,    16,	      33,   65,
					 0x100, 0x8000, 0x12345, INT32_MAX, INT32_MIN };

	return below(m, 4) ? edges[below(m, base_array_size(edges))]
			   : (int32_t)generate_random(&m->random);
}

static uint64_t edge64(struct making *m)
{
	switch (below(m, 6)) {
	case 0:
		return generate_random(&m->random);
	case 1:
		return 1ull << below(m, 64);
	case 2:
		return (1ull << below(m, 64)) - 1;
	case 3:
		return (uint32_t)edge32(m);
	case 4:
		return 0x8000000000000000u + (uint64_t)edge32(m);
	}
	return (uint64_t)edge32(m);
}

static uint64_t address(struct making *m)
{
	switch (below(m, 32)) {
	case 0:
		return GENERATED_READONLY + below(m, GENERATED_READONLY_SIZE);
	case 1:
		return GENERATED_FAR + below(m, GENERATED_FAR_SIZE);
	case 2:
		return EBPF_STACK_ADDR + below(m, EBPF_FRAME_SIZE * EBPF_DEPTH_MAX);
	case 3: /* rarely among its own addresses, where the verifier knows better */
		return below(m, 16) ? edge64(m) & INT64_MAX : edge64(m);
	}
	return GENERATED_REGION +
	       (below(m, GENERATED_SIZE) & (below(m, 8) ? ~7u : ~0u) & (below(m, 8) ? 63 : ~0u));
}

static unsigned int any_reg(struct making *m)
{
	return below(m, EBPF_FP);
}

/* Also r10, where the program may read it as a number */
static unsigned int any_source(struct making *m)
{
	bool fp = m->what == GENERATE_FOR_ENGINES && !below(m, 24);

	return fp ? (unsigned int)EBPF_FP : any_reg(m);
}

static void put_alu(struct making *m)
{
	static const uint8_t ops[] = { EBPF_ADD, EBPF_SUB, EBPF_MUL,  EBPF_DIV, EBPF_OR,
				       EBPF_AND, EBPF_LSH, EBPF_RSH,  EBPF_NEG, EBPF_MOD,
				       EBPF_XOR, EBPF_MOV, EBPF_ARSH, EBPF_END };
	static const uint8_t widths[] = { 0, 8, 16, 32 };
	unsigned int op = ops[below(m, sizeof(ops))];
	unsigned int class = below(m, 2) ? EBPF_ALU64 : EBPF_ALU, x = below(m, 2) ? EBPF_X : EBPF_K;
	bool strict = m->what == GENERATE_FOR_KERNEL, division = op == EBPF_DIV || op == EBPF_MOD;
	int off = division ? (int)below(m, 2) : 0;
	int32_t imm = edge32(m);

	if (op == EBPF_END) {
		put(m, class | op | (class == EBPF_ALU64 ? EBPF_K : x), any_reg(m), 0, 0,
		    16 << below(m, 3));
		return;
	}
	if (op == EBPF_NEG) {
		put(m, class | op, any_reg(m), 0, 0, 0);
		return;
	}
	if (op == EBPF_MOV && x)
		off = widths[below(m, class == EBPF_ALU64 ? 4 : 3)];
	if (strict && !x && (op == EBPF_LSH || op == EBPF_RSH || op == EBPF_ARSH))
		imm &= class == EBPF_ALU64 ? 63 : 31;
	if (strict && !x && division && !imm)
		imm = 3;
	put(m, class | op | x, any_reg(m), x ? any_source(m) : 0, off, x ? 0 : imm);
}

static void put_branch(struct making *m, size_t begin, size_t end)
{
	static const uint8_t ops[] = { EBPF_JEQ, EBPF_JGT,  EBPF_JGE,  EBPF_JSET,
				       EBPF_JNE, EBPF_JSGT, EBPF_JSGE, EBPF_JLT,
				       EBPF_JLE, EBPF_JSLT, EBPF_JSLE };
	bool back = m->what == GENERATE_FOR_ENGINES && !below(m, 4);
	size_t room = back ? m->count - begin : end - m->count;
	int off = (int)below(m, (unsigned int)base_min(room + 1, (size_t)12));
	unsigned int class = below(m, 2) ? EBPF_JMP : EBPF_JMP32, x = below(m, 2) ? EBPF_X : EBPF_K;

	if (back)
		off = -off;
	if (!below(m, 12)) {
		/* The kernel refuses what no way leads to */
		off = m->what == GENERATE_FOR_KERNEL ? 0 : off;
		put(m, class | EBPF_JA, 0, 0, class == EBPF_JMP ? off : 0,
		    class == EBPF_JMP ? 0 : off);
		return;
	}
	put(m, class | ops[below(m, sizeof(ops))] | x, any_source(m), x ? any_source(m) : 0, off,
	    x ? 0 : edge32(m));
}

static void put_stack(struct making *m)
{
	static const uint8_t sizes[] = { EBPF_B, EBPF_H, EBPF_W, EBPF_DW };
	unsigned int which = below(m, 4), code = EBPF_MEM | sizes[which];
	int off = -(int)(1 + below(m, 8)) * 8 + (int)((below(m, 8) >> which) << which);

	switch (below(m, 3)) {
	case 0:
		put(m, EBPF_ST | code, EBPF_FP, 0, off, edge32(m));
		break;
	case 1:
		put(m, EBPF_STX | code, EBPF_FP, any_source(m), off, 0);
		break;
	default:
		if (which < 3 && below(m, 2))
			code = EBPF_MEMSX | sizes[which];
		put(m, EBPF_LDX | code, any_reg(m), EBPF_FP, off, 0);
	}
}

static int atomic_op(struct making *m)
{
	static const uint8_t ops[] = { EBPF_ADD, EBPF_OR, EBPF_AND, EBPF_XOR };

	if (m->fetches && !below(m, 3))
		return (below(m, 2) ? EBPF_XCHG : EBPF_CMPXCHG) | EBPF_FETCH;
	return ops[below(m, 4)] | (m->fetches ? (int)below(m, 2) : 0);
}

static void put_atomic(struct making *m, unsigned int base, int off)
{
	bool wide = below(m, 2);
	unsigned int src = any_reg(m);
	int op = atomic_op(m);

	put(m, EBPF_STX | EBPF_ATOMIC | (wide ? EBPF_DW : EBPF_W), base, src, off, op);
	/*
	 * RFC 9669 wants the upper half of r0 cleared. Linux 6.18 leaves it on some ways, so the
	 * program clears it.
	 */
	if (m->what == GENERATE_FOR_KERNEL && !wide && op == (EBPF_CMPXCHG | EBPF_FETCH))
		put(m, EBPF_ALU | EBPF_MOV | EBPF_X, 0, 0, 0, 0);
}

/* Several accesses by one register, so that checks are shared, or cannot be */
static void put_memory(struct making *m)
{
	static const uint8_t sizes[] = { EBPF_B, EBPF_H, EBPF_W, EBPF_DW };
	unsigned int base = any_reg(m);

	put_constant(m, base, address(m));
	for (unsigned int n = 1 + below(m, 5); n--;) {
		unsigned int code = EBPF_MEM | sizes[below(m, 4)];
		int off = (int)below(m, 4) * 8 + (below(m, 24) ? 0 : (int)below(m, 32) - 16);

		switch (below(m, 8)) {
		case 0:
			put(m, EBPF_ST | code, base, 0, off, edge32(m));
			break;
		case 1:
			put(m, EBPF_STX | code, base, any_source(m), off, 0);
			break;
		case 2:
			put_atomic(m, base, off);
			break;
		case 3:
			put(m, EBPF_ALU64 | EBPF_ADD | EBPF_K, base, 0, 0, (int)below(m, 16) - 4);
			break;
		case 4:
			put_alu(m);
			break;
		default:
			if ((code & EBPF_DW) != EBPF_DW && below(m, 2))
				code = EBPF_MEMSX | (code & EBPF_DW);
			put(m, EBPF_LDX | code, any_reg(m), base, off, 0);
		}
	}
}

static void registers_init(struct making *m)
{
	for (unsigned int i = 0; i < EBPF_FP; i++)
		put_constant(m, i, edge64(m));
}

/* A call leaves r1 to r5 without a value; those with room for less than the whole are left out. */
static void put_call(struct making *m)
{
	if (m->count + 11 > GENERATED_MAX)
		return;
	if (m->functions && below(m, 2))
		put(m, EBPF_CALL_CODE, 0, EBPF_CALL_LOCAL, 0, 1 + below(m, m->functions));
	else
		put(m, EBPF_CALL_CODE, 0, EBPF_CALL_HELPER, 0,
		    below(m, 16) ? GENERATED_HELPER : GENERATED_HELPER_FAILS);
	for (unsigned int i = 1; i <= 5; i++)
		put_constant(m, i, edge64(m));
}

static void body(struct making *m, size_t begin, size_t end)
{
	while (m->count < end) {
		unsigned int what = below(m, 20);

		if (what < 9)
			put_alu(m);
		else if (what < 12 && m->branches)
			put_branch(m, begin, end);
		else if (what < 15 || m->what == GENERATE_FOR_KERNEL)
			below(m, 4) ? put_stack(m)
				    : put_atomic(m, EBPF_FP, -8 * (int)(1 + below(m, 8)));
		else if (what < 19)
			put_memory(m);
		else
			put_call(m);
	}
}

/* Jumps that would lead out of the function or into a constant go to the next instruction. */
static void repair(struct making *m, size_t begin)
{
	for (size_t i = begin; i < m->count; i++) {
		struct ebpf_insn *in = &m->at[i];
		int64_t to = (int64_t)i + 1 + ebpf_distance(in);
		bool second = to > 0 && to < (int64_t)m->count && m->at[to - 1].code == EBPF_LDDW;

		if ((ebpf_is_branch(in) || ebpf_is_goto(in)) &&
		    (to < (int64_t)begin || to >= (int64_t)m->count || second)) {
			in->off = 0;
			in->imm = in->code == EBPF_GOTOL_CODE ? 0 : in->imm;
		}
		i += in->code == EBPF_LDDW;
	}
}

/* All that the program has computed, folded into the 32 bits that the kernel gives back */
static void fold(struct making *m)
{
	for (unsigned int i = 1; i < EBPF_FP; i++) {
		put(m, EBPF_ALU64 | EBPF_MUL | EBPF_K, 0, 0, 0, 0x01000193);
		put(m, EBPF_ALU64 | EBPF_XOR | EBPF_X, 0, i, 0, 0);
	}
	for (int off = -64; off < 0; off += 8) {
		put(m, EBPF_LDX | EBPF_MEM | EBPF_DW, 1, EBPF_FP, off, 0);
		put(m, EBPF_ALU64 | EBPF_MUL | EBPF_K, 0, 0, 0, 0x01000193);
		put(m, EBPF_ALU64 | EBPF_XOR | EBPF_X, 0, 1, 0, 0);
	}
	put(m, EBPF_ALU64 | EBPF_MOV | EBPF_X, 1, 0, 0, 0);
	put(m, EBPF_ALU64 | EBPF_RSH | EBPF_K, 1, 0, 0, 32);
	put(m, EBPF_ALU64 | EBPF_XOR | EBPF_X, 0, 1, 0, 0);
}

static void function(struct making *m, unsigned int size)
{
	size_t begin = m->count;

	registers_init(m);
	for (int off = -64; off < 0; off += 8)
		put(m, EBPF_ST | EBPF_MEM | EBPF_DW, EBPF_FP, 0, off, edge32(m));
	body(m, m->count, m->count + size);
	if (m->what == GENERATE_FOR_KERNEL)
		fold(m);
	put(m, EBPF_EXIT_CODE, 0, 0, 0, 0);
	repair(m, begin);
}

/* Calls have the number of their function so far; now it is known where that begins. */
static void calls_resolve(struct making *m, const size_t *starts)
{
	for (size_t i = 0; i < m->count; i++) {
		struct ebpf_insn *in = &m->at[i];

		if (ebpf_is_local_call(in))
			in->imm = (int32_t)((int64_t)starts[in->imm] - (int64_t)i - 1);
		i += in->code == EBPF_LDDW;
	}
}

size_t generate(uint64_t seed, enum generate_for what, struct ebpf_insn insns[GENERATED_MAX])
{
	bool kernel = what == GENERATE_FOR_KERNEL;
	struct making m = { .at = insns,
			    .random = seed,
			    .what = what,
			    .branches = !kernel || seed % 4,
			    .fetches = !kernel || seed % 4 == 0 };
	size_t starts[4] = { 0 };

	m.functions = what == GENERATE_FOR_KERNEL ? 0 : below(&m, 3);
	function(&m, 8 + below(&m, what == GENERATE_FOR_KERNEL ? 100 : 60));
	for (unsigned int i = 1; i <= m.functions; i++) {
		starts[i] = m.count;
		function(&m, 4 + below(&m, 12));
	}
	calls_resolve(&m, starts);
	return m.count;
}
