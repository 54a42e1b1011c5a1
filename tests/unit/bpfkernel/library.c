/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Helpers that are code: against the C library's functions, at all lengths and distances.
 */
#include "arena.h"

#include <stdlib.h>

enum { COPY = 6, FILL = 7, COMPARE = 8, FIND = 9, CHOOSE = 4, LEN = 256 };

static int never(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	return -ENOSYS;
}

static const struct ebpf_helper list[] = {
	{ "output", 1, 2, never },	  { "copy", COPY, 3, never }, { "fill", FILL, 3, never },
	{ "compare", COMPARE, 3, never }, { "find", FIND, 3, never }, { "choose", CHOOSE, 1, never }
};
static const struct ebpf_helpers helpers = { list, base_array_size(list) };
static struct kernel_engine *k;
static uint64_t base;
static uint8_t *at;
static int fd;

static void program_load(int32_t id)
{
	const struct ebpf_insn insns[] = { MOVX(6, 1),
					   LDX(EBPF_DW, 1, 6, 0),
					   LDX(EBPF_DW, 2, 6, 8),
					   LDX(EBPF_DW, 3, 6, 16),
					   CALL(id),
					   EXIT };
	struct ebpf_object *object;
	struct ebpf_error err;

	cr_assert_eq(ebpf_object_assemble(insns, base_array_size(insns), &helpers, 0, &object,
					  &err),
		     0, "%s", err.text);
	fd = kernel_engine_load(k, object, 0);
	cr_assert_geq(fd, 0, "%s", k->text);
	ebpf_object_destroy(object);
}

static uint64_t call(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t *args = (void *)(k->arena.memory + 0x2000);

	args[0] = a;
	args[1] = b;
	args[2] = c;
	cr_assert_eq(kernel_engine_run(k, fd, (uint64_t[5]){ base + 0x2000 }, 1000000, 1, NULL), 0);
	return k->block->value;
}

static void set_up(void)
{
	static const uint64_t values[] = { 11, 0xfedcba9876543210, 13 };

	k = kernel_open();
	at = k->arena.memory;
	base = (uintptr_t)at;
	kernel_engine_window(k, base, 0, 0x1000, EBPF_MAY_READ | EBPF_MAY_WRITE);
	kernel_engine_window(k, base + 0x2000, 0x2000, 64, EBPF_MAY_READ);
	cr_assert(!bpfkernel_library_add(k->library, COPY, BPFKERNEL_COPY, NULL, 0));
	cr_assert(!bpfkernel_library_add(k->library, FILL, BPFKERNEL_FILL, NULL, 0));
	cr_assert(!bpfkernel_library_add(k->library, COMPARE, BPFKERNEL_COMPARE, NULL, 0));
	cr_assert(!bpfkernel_library_add(k->library, FIND, BPFKERNEL_FIND, NULL, 0));
	cr_assert(!bpfkernel_library_add(k->library, CHOOSE, BPFKERNEL_CHOOSE, values, 3));
}

static void tear_down(void)
{
	close(fd);
	kernel_engine_close(k);
}

TestSuite(bpfkernel_library, .init = set_up, .fini = tear_down, .timeout = 60);

static void pattern(uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)(i * 7 + i / 251);
}

Test(bpfkernel_library, copy)
{
	uint8_t want[LEN];

	program_load(COPY);
	for (int distance = -20; distance <= 20; distance++)
		for (unsigned int len = 0; len < 40; len++) {
			pattern(want, LEN);
			pattern(at, LEN);
			memmove(want + 100 + distance, want + 100, len);
			cr_assert_eq(call(base + 100 + (uint64_t)distance, base + 100, len), 0);
			cr_assert_eq(k->block->status, EBPF_DONE);
			cr_assert_arr_eq(at, want, LEN, "%u by %d", len, distance);
		}
	call(base + 0xff0, base, 17);
	cr_assert_eq(k->block->status, EBPF_ADDRESS);
	call(base + 0x2000, base, 1);
	cr_assert_eq(k->block->status, EBPF_RIGHTS);
}

Test(bpfkernel_library, fill)
{
	uint8_t want[LEN];

	program_load(FILL);
	for (unsigned int len = 0; len < 40; len++) {
		pattern(want, LEN);
		pattern(at, LEN);
		memset(want + 3, 0xc3, len);
		cr_assert_eq(call(base + 3, 0x1c3, len), 0);
		cr_assert_arr_eq(at, want, LEN, "%u", len);
	}
}

static int sign(int64_t n)
{
	return (n > 0) - (n < 0);
}

Test(bpfkernel_library, compare)
{
	program_load(COMPARE);
	for (unsigned int len = 0; len < 30; len++)
		for (unsigned int differs = 0; differs < 30; differs++) {
			pattern(at, 64);
			pattern(at + 64, 64);
			at[differs] ^= 0x80;
			cr_assert_eq(sign((int64_t)call(base, base + 64, len)),
				     sign(memcmp(at, at + 64, len)), "%u, %u", len, differs);
		}
}

Test(bpfkernel_library, find)
{
	program_load(FIND);
	memset(at, 1, LEN);
	for (unsigned int len = 0; len < 20; len++)
		for (unsigned int place = 0; place < 20; place++) {
			at[place] = 0xfe;
			cr_assert_eq(call(base, 0x7fe, len), place < len ? place : len);
			at[place] = 1;
		}
}

Test(bpfkernel_library, output)
{
	program_load(1);
	pattern(at, LEN);
	cr_assert_eq(call(base + 1, KERNEL_OUTPUT, 0), KERNEL_OUTPUT);
	cr_assert_eq(k->block->output, KERNEL_OUTPUT);
	cr_assert_arr_eq((uint8_t *)k->block + sizeof(*k->block), at + 1, KERNEL_OUTPUT);
	cr_assert_eq(call(base, KERNEL_OUTPUT + 1, 0), (uint64_t)-E2BIG);
	cr_assert_eq(call(base, UINT64_MAX, 0), (uint64_t)-E2BIG);
	cr_assert_eq(k->block->output, 0);
	call(base + 0x1000, 8, 0);
	cr_assert_eq(k->block->status, EBPF_ADDRESS);
}

/* What helpers have for themselves is out of reach for addresses that a program gives them */
Test(bpfkernel_library, no_helper_leads_to_the_block)
{
	static const int ids[] = { 1, COPY, FILL, COMPARE, FIND };

	for (size_t i = 0; i < base_array_size(ids); i++)
		for (uint64_t len = 1; len <= 9; len += 8) {
			program_load(ids[i]);
			call(BPFKERNEL_BLOCK_ADDR, len, len);
			cr_expect_eq(k->block->status, EBPF_ADDRESS, "helper %d", ids[i]);
			call(base, ids[i] == 1 ? len : BPFKERNEL_BLOCK_ADDR, len);
			if (ids[i] == COPY || ids[i] == COMPARE)
				cr_expect_eq(k->block->status, EBPF_ADDRESS, "helper %d", ids[i]);
			close(fd);
		}
	program_load(1);
}

Test(bpfkernel_library, choose)
{
	program_load(CHOOSE);
	cr_assert_eq(call(0, 0, 0), 11);
	cr_assert_eq(call(1, 0, 0), 0xfedcba9876543210);
	cr_assert_eq(call(2, 0, 0), 13);
	cr_assert_eq(call(3, 0, 0), 0);
	cr_assert_eq(call(UINT64_MAX, 0, 0), 0);
}
