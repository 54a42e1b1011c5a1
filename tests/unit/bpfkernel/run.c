/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs in the kernel: loops, fuel, the program's own memory, and what clang makes.
 */
#include "arena.h"

#include <stdio.h>
#include <stdlib.h>

enum { SPOIL = 12 };

static const struct ebpf_helper list[] = { { "output", 1, 2, ebpf_helper_output },
					   { "spoil", SPOIL, 1, NULL } };
static const struct ebpf_helpers helpers = { list, 2 };
static struct kernel_engine *k;

static struct ebpf_result run_object(const struct ebpf_object *object, uint32_t entry, uint64_t a,
				     uint64_t b, uint64_t fuel)
{
	static const uint8_t zeros[sizeof(k->block->stack) + sizeof(k->block->data)];
	const uint64_t arg[5] = { a, b };
	int fd = kernel_engine_load(k, object, entry);

	cr_assert_geq(fd, 0, "%s", k->text);
	cr_assert_eq(kernel_engine_run(k, fd, arg, fuel, 1, NULL), 0);
	close(fd);
	cr_assert_arr_eq(k->block->stack, zeros, sizeof(zeros), "something stays in the block");
	return kernel_engine_result(k);
}

static struct ebpf_result run(const struct ebpf_insn *insns, size_t count, uint64_t a, uint64_t b,
			      uint64_t fuel)
{
	struct ebpf_object *object;
	struct ebpf_error err;
	struct ebpf_result r;

	cr_assert_eq(ebpf_object_assemble(insns, count, &helpers, EBPF_LOAD_NO_JIT, &object, &err),
		     0, "%s", err.text);
	r = run_object(object, 0, a, b, fuel);
	ebpf_object_destroy(object);
	return r;
}

#define RUN(a, b, fuel, ...)                     \
	run((struct ebpf_insn[]){ __VA_ARGS__ }, \
	    sizeof((struct ebpf_insn[]){ __VA_ARGS__ }) / sizeof(struct ebpf_insn), a, b, fuel)

/* Regions at their own addresses, as a server has them */
static uint64_t region_open(uint32_t place, uint32_t size, unsigned int rights)
{
	uint64_t addr = (uintptr_t)k->arena.memory + place;

	kernel_engine_window(k, addr, place, size, rights);
	return addr;
}

static void set_up(void)
{
	k = kernel_open();
}

static void tear_down(void)
{
	kernel_engine_close(k);
}

TestSuite(bpfkernel_run, .init = set_up, .fini = tear_down, .timeout = 30);

static const struct ebpf_insn walk[] = { MOV(3, 0),
					 JX(EBPF_JGE, 3, 2, 3),
					 LDX(EBPF_DW, 1, 1, 0),
					 ADD(3, 1),
					 JA(-4),
					 LDX(EBPF_DW, 0, 1, 8),
					 EXIT };

/* 2,000,000 hops: more than the kernel's verifier would follow */
Test(bpfkernel_run, a_long_loop)
{
	uint64_t at = region_open(0, 0x8000, EBPF_MAY_READ);
	uint64_t *nodes = (void *)k->arena.memory;
	struct ebpf_result r;

	for (int i = 0; i < 1000; i++) {
		nodes[2 * i] = at + (uint64_t)((i + 1) % 1000) * 16;
		nodes[2 * i + 1] = (uint64_t)i;
	}
	r = run(walk, base_array_size(walk), at, 2000345, 10000000);
	cr_assert_eq(r.status, EBPF_DONE);
	cr_assert_eq(r.value, 345);
	cr_assert_eq(10000000 - r.fuel, 2000346 * 4 + 7);
}

Test(bpfkernel_run, waits_for_programs)
{
	cr_assert_not(bpfkernel_wait());
}

Test(bpfkernel_run, fuel_ends_a_loop_where_it_begins)
{
	uint64_t at = region_open(0, 0x8000, EBPF_MAY_READ);
	struct ebpf_result r;

	*(uint64_t *)(void *)k->arena.memory = at;
	r = run(walk, base_array_size(walk), at, UINT64_MAX, 100000);
	cr_assert_eq(r.status, EBPF_FUEL);
	cr_assert_eq(r.pc, 1);
	cr_assert_lt((int64_t)r.fuel, 0);
	cr_assert_gt((int64_t)r.fuel, -8);
}

/* All registers are in use, so none is left for the fuel and the address */
Test(bpfkernel_run, a_loop_that_uses_every_register)
{
	uint64_t at = region_open(0, 0x1000, EBPF_MAY_READ | EBPF_MAY_WRITE);
	struct ebpf_result r;

	r = RUN(at, 100, 100000, MOV(0, 0), MOV(3, 1), MOV(4, 1), MOV(5, 1), MOV(6, 1), MOV(7, 1),
		MOV(8, 1), MOV(9, 0), STX(EBPF_DW, 1, 9, 8), LDX(EBPF_DW, 9, 1, 8),
		ALU64X(EBPF_ADD, 0, 3), ALU64X(EBPF_ADD, 3, 4), ALU64X(EBPF_ADD, 4, 5),
		ALU64X(EBPF_ADD, 5, 6), ALU64X(EBPF_ADD, 6, 7), ALU64X(EBPF_ADD, 7, 8), ADD(9, 1),
		JX(EBPF_JLT, 9, 2, -10), ALU64X(EBPF_ADD, 0, 9), EXIT);
	cr_assert_eq(r.status, EBPF_DONE);
	cr_assert_eq(*(uint64_t *)(void *)(k->arena.memory + 8), 99);
	/* 100 and sums of binomials of 100 */
	cr_assert_eq(r.value, 100 + 100 + 4950 + 161700 + 3921225 + 75287520 + 1192052400ull);
}

Test(bpfkernel_run, neighbours_are_two_regions)
{
	uint64_t at = region_open(0, 0x1000, EBPF_MAY_READ);
	struct ebpf_result r;

	region_open(0x1000, 0x1000, EBPF_MAY_READ | EBPF_MAY_WRITE);
	r = RUN(at + 0xffc, 0, 1000, LDX(EBPF_DW, 0, 1, 0), EXIT);
	cr_assert_eq(r.status, EBPF_ADDRESS);
	cr_assert_eq(r.addr, at + 0xffc);
	cr_assert_eq(r.len, 8);
	r = RUN(at + 0x1000, 0, 1000, ST(EBPF_DW, 1, 0xff8, 7), ST(EBPF_DW, 1, -8, 7), MOV(0, 0),
		EXIT);
	cr_assert_eq(r.status, EBPF_RIGHTS);
	cr_assert_eq(r.pc, 1);
	cr_assert_eq(r.addr, at + 0xff8);
	cr_assert_eq(k->arena.memory[0x1ff8], 7);
}

/* A window whose length is that of the moment */
Test(bpfkernel_run, arguments_have_their_length)
{
	static const struct ebpf_insn load[] = { LDX(EBPF_W, 0, 1, 0), EXIT };
	const uint64_t at = 0x7fff000000000000;
	struct ebpf_object *object;
	struct ebpf_error err;
	int fd;

	k->windows[k->window_count++] =
		(struct bpfkernel_window){ at,
					   64,
					   sizeof(struct bpfkernel_block) + KERNEL_OUTPUT,
					   EBPF_MAY_READ | EBPF_MAY_WRITE,
					   BPFKERNEL_IN_BLOCK,
					   offsetof(struct bpfkernel_block, own) };
	cr_assert_eq(ebpf_object_assemble(load, 2, &helpers, 0, &object, &err), 0);
	fd = kernel_engine_load(k, object, 0);
	cr_assert_geq(fd, 0, "%s", k->text);
	for (uint64_t len = 0; len <= 64; len += 4)
		for (uint64_t off = 0; off < 70; off++) {
			k->own[0] = len;
			cr_assert_eq(kernel_engine_run(k, fd, (uint64_t[5]){ at + off }, 1000, 1,
						       NULL),
				     0);
			cr_assert_eq(k->block->status, off + 4 <= len ? EBPF_DONE : EBPF_ADDRESS,
				     "%d of %d", (int)off, (int)len);
		}
	close(fd);
	ebpf_object_destroy(object);
}

/* Where it finds what it compares with, too */
Test(bpfkernel_run, a_comparison_of_32_bits_sets_all_of_r0)
{
	uint64_t at = region_open(0, 0x1000, EBPF_MAY_ATOMIC);

	for (uint64_t there = 5; there < 7; there++) {
		*(uint64_t *)(void *)k->arena.memory = there;
		cr_assert_eq(RUN(at, 0, 1000, LDDW(0, 0xabcd00000005), MOV(2, 9),
				 ATOMIC(EBPF_W, EBPF_CMPXCHG | EBPF_FETCH, 1, 2, 0), EXIT)
				     .value,
			     there);
	}
}

/* The block is for helpers, although it lies in the program's own half */
Test(bpfkernel_run, the_block_is_out_of_reach)
{
	struct ebpf_result r;

	r = RUN(BPFKERNEL_BLOCK_ADDR, 0, 1000, LDX(EBPF_DW, 0, 1, 0), EXIT);
	cr_assert_eq(r.status, EBPF_ADDRESS);
	r = RUN(BPFKERNEL_BLOCK_ADDR, 0, 1000, ST(EBPF_DW, 1, 0, 1), MOV(0, 0), EXIT);
	cr_assert_eq(r.status, EBPF_ADDRESS);
}

/* Through an address that the verifier does not follow */
Test(bpfkernel_run, the_stack_is_zero_when_a_run_begins)
{
	static const struct ebpf_insn add[] = { LDX(EBPF_DW, 0, 1, 0), ADD(0, 1),
						STX(EBPF_DW, 1, 0, 0), EXIT };

	for (int i = 0; i < 3; i++) {
		struct ebpf_result r = run(add, base_array_size(add), EBPF_STACK_ADDR + 64, 0, 99);

		cr_assert_eq(r.status, EBPF_DONE);
		cr_assert_eq(r.value, 1);
	}
}

/* And so it is for a helper */
Test(bpfkernel_run, the_stack_is_zero_for_helpers)
{
	static const uint8_t zeros[16];
	struct ebpf_result r;

	RUN(0, 0, 99, ST(EBPF_DW, 10, -16, -1), ST(EBPF_DW, 10, -8, -1), MOV(0, 0), EXIT);
	r = RUN(0, 0, 99, MOVX(1, 10), ADD(1, -16), MOV(2, 16), CALL(1), EXIT);
	cr_assert(r.status == EBPF_DONE && r.output == 16);
	cr_assert_arr_eq((uint8_t *)k->block + sizeof(*k->block), zeros, 16);
}

/* What a helper writes there does not stay either */
Test(bpfkernel_run, helpers_leave_nothing_in_the_stack)
{
	static const struct ebpf_insn spoil[] = { MOV(0, -1), STX(EBPF_DW, 1, 0, 0), EXIT };
	struct ebpf_result r;

	k->extra[k->extra_count++] = (struct bpfkernel_helper){ SPOIL, spoil, 3 };
	r = RUN(0, 0, 99, MOVX(1, 10), ADD(1, -16), CALL(SPOIL), LDX(EBPF_DW, 0, 10, -16), EXIT);
	cr_assert(r.status == EBPF_DONE && r.value == UINT64_MAX);
}

#ifdef BPF_PROGRAMS
enum { FILE_MAX = 1 << 17 };

static struct ebpf_object *load(const char *name)
{
	static const struct ebpf_helper all_list[] = { { "sum", 11, 5, NULL },
						       { "output", 1, 2, ebpf_helper_output } };
	static const struct ebpf_helpers all = { all_list, 2 };
	uint8_t *bytes = malloc(FILE_MAX);
	struct ebpf_object *obj;
	struct ebpf_error err;
	char path[512];
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.object", BPF_PROGRAMS, name);
	f = fopen(path, "r");
	cr_assert(f, "%s", path);
	len = fread(bytes, 1, FILE_MAX, f);
	fclose(f);
	cr_assert_eq(ebpf_object_load(bytes, len, &all, EBPF_LOAD_NO_JIT, &obj, &err), 0, "%s",
		     err.text);
	free(bytes);
	return obj;
}

/* By the interpreter */
static uint64_t wanted(const struct ebpf_object *obj, uint32_t entry, uint64_t a)
{
	struct ebpf_params params = { .entry = entry, .arg = { a } };
	struct ebpf_result r = { 0 };
	struct ebpf_run *run;

	cr_assert_eq(ebpf_run_create(&run), 0);
	cr_assert_eq(ebpf_run_start(run, obj, &params), 0);
	cr_assert_eq(ebpf_run_continue(run, 1000000, &r), EBPF_DONE);
	ebpf_run_destroy(run);
	return r.value;
}

Test(bpfkernel_run, what_clang_makes)
{
	static const char *const names[] = { "constants",	"data",	      "pointers", "calls",
					     "another_section", "stack_array" };
	static const struct ebpf_insn sum[] = { MOV(0, 0), EXIT };
	struct ebpf_object *obj = load("all");
	uint32_t entry;

	k->extra[k->extra_count++] = (struct bpfkernel_helper){ 11, sum, 2 };
	for (size_t i = 0; i < base_array_size(names); i++) {
		cr_assert_eq(ebpf_object_entry(obj, names[i], &entry), 0);
		/* Twice: each run has its own data */
		for (uint64_t a = 3; a < 30; a += 13)
			for (int twice = 0; twice < 2; twice++)
				cr_expect_eq(run_object(obj, entry, a, 0, 100000).value,
					     wanted(obj, entry, a), "%s(%d)", names[i], (int)a);
	}
	cr_assert_eq(ebpf_object_entry(obj, "says_hello", &entry), 0);
	cr_expect_eq(run_object(obj, entry, 0, 0, 100000).value, 6);
	cr_expect_str_eq((char *)k->block + sizeof(*k->block), "hello");
	ebpf_object_destroy(obj);
}
#endif
