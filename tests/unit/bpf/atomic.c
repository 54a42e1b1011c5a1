/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each atomic of RFC 9669, of 32 and 64 bits, in all registers; alignment; and that they are
 * atomic.
 */
#include <pthread.h>

#include "bpf/program.h"
#ifdef __x86_64__
#include "bpf/jit.h"
#endif
#include "both.h"

enum { ADDR = 0x4000 };

static uint64_t memory[8] __attribute__((aligned(64)));

#define OLD 0xf0f0f0f0a5a5a5a5u
#define NEW 0x0ff00ff012345678u

static const struct row {
	int op;
	uint64_t want64, want32; /* what is in memory then */
} rows[] = {
	{ EBPF_ADD, OLD + NEW, (OLD & ~0xffffffffull) | (uint32_t)(OLD + NEW) },
	{ EBPF_OR, OLD | NEW, OLD | (uint32_t)NEW },
	{ EBPF_AND, OLD &NEW, (OLD & ~0xffffffffull) | (uint32_t)(OLD &NEW) },
	{ EBPF_XOR, OLD ^ NEW, OLD ^ (uint32_t)NEW },
	{ EBPF_XCHG, NEW, (OLD & ~0xffffffffull) | (uint32_t)NEW },
};

static struct ebpf_result run_in(const struct ebpf_insn *insns, size_t count)
{
	const struct ebpf_region region = { memory, ADDR, sizeof(memory), 0,
					    EBPF_MAY_READ | EBPF_MAY_WRITE | EBPF_MAY_ATOMIC };
	const struct ebpf_params params = { .regions = &region, .count = 1, .arg = { ADDR } };

	return both_run(insns, count, NULL, &params, BOTH_FUEL);
}

#define RUN_IN(...)                                                \
	__extension__({                                            \
		const struct ebpf_insn insns_[] = { __VA_ARGS__ }; \
		run_in(insns_, base_array_size(insns_));           \
	})

static void check(const struct row *row, bool wide, bool fetch, unsigned int base, unsigned int src)
{
	unsigned int size = wide ? EBPF_DW : EBPF_W, witness = (base + 1) % EBPF_FP;
	int op = row->op | (fetch ? EBPF_FETCH : 0);
	struct ebpf_result r;

	while (witness == src || witness == base)
		witness = (witness + 1) % EBPF_FP;
	memory[1] = OLD;
	r = RUN_IN(LDDW(base, ADDR + 4), LDDW(src, NEW), MOV(witness, 77),
		   ATOMIC(size, op, base, src, 4), ALU64X(EBPF_SUB, witness, witness),
		   ALU64X(EBPF_ADD, witness, src), MOVX(0, witness), EXIT);
	cr_assert_eq(r.status, EBPF_DONE);
	cr_assert_eq(memory[1], wide ? row->want64 : row->want32, "0x%x: 0x%lx", op, memory[1]);
	cr_assert_eq(r.value,
		     !fetch ? NEW
		     : wide ? OLD
			    : (uint32_t)OLD,
		     "0x%x r%u r%u", op, base, src);
}

Test(bpf_atomic, every_operation_in_every_register)
{
	for (size_t i = 0; i < base_array_size(rows); i++)
		for (unsigned int base = 0; base < EBPF_FP; base++)
			for (unsigned int src = 0; src < EBPF_FP; src++) {
				if (base == src)
					continue;
				for (unsigned int how = 0; how < 4; how++)
					if (how & 1 || rows[i].op != EBPF_XCHG)
						check(&rows[i], how & 2, how & 1, base, src);
			}
}

Test(bpf_atomic, compare_and_exchange)
{
	const int op = EBPF_CMPXCHG | EBPF_FETCH;
	struct ebpf_result r;

	for (unsigned int base = 1; base < EBPF_FP; base++)
		for (unsigned int src = 1; src < EBPF_FP; src++) {
			if (base == src)
				continue;
			memory[0] = OLD;
			r = RUN_IN(LDDW(base, ADDR), LDDW(src, NEW), LDDW(0, OLD),
				   ATOMIC(EBPF_DW, op, base, src, 0), EXIT);
			cr_assert_eq(r.value, OLD);
			cr_assert_eq(memory[0], NEW);
			r = RUN_IN(LDDW(base, ADDR), LDDW(src, 5), LDDW(0, OLD),
				   ATOMIC(EBPF_DW, op, base, src, 0), EXIT);
			cr_assert_eq(r.value, NEW);
			cr_assert_eq(memory[0], NEW);
			/* 32 bits: the upper half of r0 is not compared, and cleared */
			r = RUN_IN(LDDW(base, ADDR), LDDW(src, 5),
				   LDDW(0, OLD << 32 | (uint32_t)NEW),
				   ATOMIC(EBPF_W, op, base, src, 0), EXIT);
			cr_assert_eq(r.value, (uint32_t)NEW);
			cr_assert_eq(memory[0], (NEW & ~0xffffffffull) | 5);
			r = RUN_IN(LDDW(base, ADDR), LDDW(src, 6), LDDW(0, OLD),
				   ATOMIC(EBPF_W, op, base, src, 0), EXIT);
			cr_assert_eq(r.value, 5);
			cr_assert_eq(memory[0], (NEW & ~0xffffffffull) | 5);
		}
}

Test(bpf_atomic, the_stack_and_the_frame_pointer)
{
	cr_assert_eq(BOTH_VALUE(ST(EBPF_DW, 10, -8, 5), MOV(1, 3),
				ATOMIC(EBPF_DW, EBPF_ADD | EBPF_FETCH, 10, 1, -8),
				LDX(EBPF_DW, 0, 10, -8), ALU64K(EBPF_MUL, 0, 10),
				ALU64X(EBPF_ADD, 0, 1), EXIT),
		     85);
	cr_assert_eq(BOTH_VALUE(ST(EBPF_DW, 10, -8, 0), ATOMIC(EBPF_DW, EBPF_ADD, 10, 10, -8),
				LDX(EBPF_DW, 0, 10, -8), EXIT),
		     EBPF_STACK_ADDR + EBPF_FRAME_SIZE);
	cr_assert_eq(BOTH_VALUE(MOV(0, 0), ST(EBPF_DW, 10, -8, 0),
				ATOMIC(EBPF_DW, EBPF_CMPXCHG | EBPF_FETCH, 10, 10, -8),
				LDX(EBPF_DW, 0, 10, -8), EXIT),
		     EBPF_STACK_ADDR + EBPF_FRAME_SIZE);
}

Test(bpf_atomic, misaligned)
{
	for (int off = 0; off < 16; off++)
		for (int wide = 0; wide < 2; wide++) {
			int size = wide ? 8 : 4;
			struct ebpf_result r =
				RUN_IN(MOV(0, 0), MOV(2, 1),
				       ATOMIC(wide ? EBPF_DW : EBPF_W, EBPF_ADD, 1, 2, off), EXIT);

			cr_assert_eq(r.status, off % size ? EBPF_ALIGN : EBPF_DONE);
			if (off % size) {
				cr_assert_eq(r.addr, (uint64_t)(ADDR + off));
				cr_assert_eq(r.len, (uint64_t)size);
				cr_assert_eq(r.pc, 2);
			}
		}
}

struct counter {
	const struct ebpf_object *obj;
	uint64_t bit, turns;
	bool good;
};

static void *count(void *arg)
{
	static const struct ebpf_region region = { memory, ADDR, sizeof(memory), 0,
						   EBPF_MAY_ATOMIC };
	struct counter *c = arg;
	const struct ebpf_params params = { .regions = &region,
					    .count = 1,
					    .arg = { ADDR, c->bit, c->turns } };

	c->good = both_run_one(c->obj, &params, 1 << 24).status == EBPF_DONE;
	return NULL;
}

/* One object, many threads at once, each with a bit of its own; not one operation may be lost */
static void race(unsigned int flags, int op, uint64_t turns)
{
	enum { THREADS = 4 };
	const struct ebpf_insn insns[] = { MOVX(4, 2), ATOMIC(EBPF_DW, op, 1, 4, 0),
					   ADD(3, -1), JK(EBPF_JNE, 3, 0, -4),
					   MOV(0, 0),  EXIT };
	struct ebpf_object *obj = both_load(insns, base_array_size(insns), NULL, flags);
	struct counter counters[THREADS];
	pthread_t threads[THREADS];

	memory[0] = 0;
	for (uint64_t i = 0; i < THREADS; i++) {
		counters[i] = (struct counter){ obj, 1ull << i * 16, turns, false };
		cr_assert_not(pthread_create(&threads[i], NULL, count, &counters[i]));
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		cr_assert(counters[i].good);
	}
	cr_assert_eq(memory[0], op & EBPF_XOR ? 0 : turns * 0x0001000100010001u);
	ebpf_object_destroy(obj);
}

Test(bpf_atomic, by_many_threads, .timeout = 30)
{
	static const int ops[] = { EBPF_ADD, EBPF_ADD | EBPF_FETCH, EBPF_XOR | EBPF_FETCH };

	for (size_t i = 0; i < base_array_size(ops); i++) {
		race(EBPF_LOAD_NO_JIT, ops[i], 20000);
		race(0, ops[i], 1000000);
	}
}

/* How often machine code has this opcode behind a lock prefix, and a REX prefix if there is one */
static int locked(const uint8_t *code, size_t size, unsigned int opcode)
{
	int n = 0;

	for (size_t i = 0; i + 4 < size; i++) {
		const uint8_t *at = code + i + 1;

		if (code[i] != 0xf0)
			continue;
		at += (*at & 0xf0) == 0x40;
		n += opcode > 0xff ? at[0] == 0x0f && at[1] == (opcode & 0xff) : at[0] == opcode;
	}
	return n;
}

/* A race may go well a million times, so the instruction itself is looked at. xchg always locks. */
Test(bpf_atomic, machine_code_locks)
{
#ifdef __x86_64__
	static const struct {
		int op;
		unsigned int opcode;
	} table[] = {
		{ EBPF_ADD, 0x01 },
		{ EBPF_OR, 0x09 },
		{ EBPF_AND, 0x21 },
		{ EBPF_XOR, 0x31 },
		{ EBPF_ADD | EBPF_FETCH, 0x0fc1 },
		{ EBPF_OR | EBPF_FETCH, 0x0fb1 },
		{ EBPF_AND | EBPF_FETCH, 0x0fb1 },
		{ EBPF_XOR | EBPF_FETCH, 0x0fb1 },
		{ EBPF_CMPXCHG | EBPF_FETCH, 0x0fb1 },
	};

	for (size_t i = 0; i < base_array_size(table); i++)
		for (int wide = 0; wide < 2; wide++) {
			const struct ebpf_insn insns[] = {
				MOV(0, 0), ATOMIC(wide ? EBPF_DW : EBPF_W, table[i].op, 1, 2, 0),
				EXIT
			};
			struct ebpf_object *obj = both_load(insns, 3, NULL, 0);

			cr_assert_eq(locked(obj->jit->code, obj->jit->size, table[i].opcode), 1,
				     "0x%x", table[i].op);
			ebpf_object_destroy(obj);
		}
#else
	cr_skip_test("the machine has no JIT");
#endif
}
