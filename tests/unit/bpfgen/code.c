/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Code that is made by hand: labels, jumps of any length, functions, files, and each error.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "bpf/run.h"
#include "bpfgen/code.h"
#include "tests/bpfgen/both.h"

static struct both both;

static struct bpfgen_code *code(void)
{
	struct bpfgen_code *c = NULL;

	cr_assert_not(bpfgen_code_create(&c));
	return c;
}

static uint64_t value(struct bpfgen_code *c, const char *entry, uint64_t a, uint64_t b)
{
	struct bpfgen_error err = { 0 };
	const uint64_t arg[5] = { a, b };
	const char *wrong;
	uint64_t v = 0;

	cr_assert_not(bpfgen_code_finish(c, &err), "%s", err.text);
	wrong = both_open(&both, c);
	if (!wrong)
		wrong = both_run(&both, entry, arg, NULL, 0, &v);
	cr_assert_null(wrong, "%s", wrong);
	both_close(&both);
	bpfgen_code_destroy(c);
	return v;
}

static void refused(struct bpfgen_code *c, int error, const char *text)
{
	struct bpfgen_error err = { 0 };
	size_t len;
	void *elf;

	cr_assert_eq(bpfgen_code_finish(c, &err), error);
	cr_assert_str_eq(err.text, text);
	cr_assert_eq(err.at, BPFGEN_NOWHERE);
	cr_assert_eq(bpfgen_code_finish(c, NULL), error);
	cr_assert_eq(bpfgen_code_elf(c, &elf, &len), -EINVAL);
	bpfgen_code_destroy(c);
}

/* The sum of 1 to r1, by a loop with a jump back */
static void sum_write(struct bpfgen_code *c, unsigned int label, const char *name)
{
	unsigned int again = bpfgen_label(c), end = bpfgen_label(c);

	bpfgen_function(c, label, name);
	bpfgen_alu_imm(c, EBPF_MOV, 0, 0);
	bpfgen_here(c, again);
	bpfgen_if_imm(c, EBPF_JEQ, 1, 0, end);
	bpfgen_alu(c, EBPF_ADD, 0, 1);
	bpfgen_alu_imm(c, EBPF_SUB, 1, 1);
	bpfgen_goto(c, again);
	bpfgen_here(c, end);
	bpfgen_exit(c);
}

Test(bpfgen_code, loop)
{
	struct bpfgen_code *c = code();

	sum_write(c, bpfgen_label(c), "main");
	cr_assert_eq(value(c, "main", 10, 0), 55);
}

Test(bpfgen_code, functions)
{
	struct bpfgen_code *c = code();
	unsigned int inner = bpfgen_label(c);

	bpfgen_function(c, bpfgen_label(c), "outer");
	bpfgen_alu(c, EBPF_MOV, 6, 2);
	bpfgen_call(c, inner);
	bpfgen_alu(c, EBPF_MUL, 0, 6);
	bpfgen_exit(c);
	sum_write(c, inner, NULL);
	cr_assert_eq(value(c, "outer", 4, 7), 70);
}

Test(bpfgen_code, constants)
{
	static const uint64_t values[] = {
		0,	    1,		UINT64_MAX,	    INT32_MAX, INT64_MAX,
		1ull << 31, 1ull << 32, 0x123456789abcdef0, INT64_MIN, 0xffffffff0000,
		-1ull << 31
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct bpfgen_code *c = code();

		bpfgen_function(c, bpfgen_label(c), "main");
		bpfgen_constant(c, 0, values[i]);
		bpfgen_exit(c);
		cr_assert_eq(value(c, "main", 0, 0), values[i], "0x%lx", values[i]);
	}
}

/* A branch and a goto over @filler instructions, and back */
static uint64_t far(size_t filler, uint64_t arg)
{
	struct bpfgen_code *c = code();
	unsigned int behind = bpfgen_label(c), back = bpfgen_label(c), last = bpfgen_label(c);

	bpfgen_function(c, bpfgen_label(c), "main");
	bpfgen_alu_imm(c, EBPF_MOV, 0, 1);
	bpfgen_if_imm(c, EBPF_JEQ, 1, 5, behind);
	bpfgen_goto(c, last);
	bpfgen_here(c, back);
	bpfgen_alu_imm(c, EBPF_ADD, 0, 10);
	bpfgen_exit(c);
	for (size_t i = 0; i < filler; i++)
		bpfgen_alu_imm(c, EBPF_MOV, 3, 0);
	bpfgen_here(c, behind);
	bpfgen_alu_imm(c, EBPF_ADD, 0, 100);
	bpfgen_if_imm(c, EBPF_JSET, 1, 4, back);
	bpfgen_exit(c);
	bpfgen_here(c, last);
	bpfgen_alu_imm(c, EBPF_ADD, 0, 1000);
	bpfgen_goto(c, back);
	return value(c, "main", arg, 0);
}

Test(bpfgen_code, jumps_of_any_length)
{
	static const size_t fillers[] = { 0,	 1,	32750, 32760, 32761, 32762, 32763,
					  32764, 32765, 32766, 32767, 32768, 32769, 60000 };

	for (size_t i = 0; i < sizeof(fillers) / sizeof(fillers[0]); i++) {
		cr_assert_eq(far(fillers[i], 5), 111, "%zu", fillers[i]);
		cr_assert_eq(far(fillers[i], 1), 1011, "%zu", fillers[i]);
	}
}

Test(bpfgen_code, assembled_without_a_file)
{
	struct bpfgen_code *c = code();
	struct ebpf_object *obj = NULL;
	struct ebpf_error err;
	const struct ebpf_insn *insns;
	size_t count;

	sum_write(c, bpfgen_label(c), "sum");
	cr_assert_not(bpfgen_code_finish(c, NULL));
	insns = bpfgen_code_insns(c, &count);
	cr_assert_eq(count, bpfgen_code_size(c));
	cr_assert_not(ebpf_object_assemble(insns, count, NULL, 0, &obj, &err), "%s", err.text);
	ebpf_object_destroy(obj);
	bpfgen_code_destroy(c);
}

Test(bpfgen_code, names_of_a_file)
{
	struct bpfgen_code *c = code();
	struct ebpf_object *obj = NULL;
	struct ebpf_error err;
	uint32_t pc, first;

	sum_write(c, bpfgen_label(c), "one");
	sum_write(c, bpfgen_label(c), NULL);
	sum_write(c, bpfgen_label(c), "three");
	cr_assert_not(bpfgen_code_finish(c, NULL));
	cr_assert_not(bpfgen_code_object(c, NULL, 0, &obj, &err), "%s", err.text);
	cr_assert_str_eq(ebpf_object_entry_name(obj, 0), "one");
	cr_assert_str_eq(ebpf_object_entry_name(obj, 1), "three");
	cr_assert_null(ebpf_object_entry_name(obj, 2));
	cr_assert(!ebpf_object_entry(obj, NULL, &first) && first == 0);
	cr_assert(!ebpf_object_entry(obj, "three", &pc) && pc == 2 * 6);
	ebpf_object_destroy(obj);
	bpfgen_code_destroy(c);
}

/* --- errors ----------------------------------------------------------------------------------- */

static struct bpfgen_code *begun(void)
{
	struct bpfgen_code *c = code();

	bpfgen_function(c, bpfgen_label(c), "main");
	bpfgen_alu_imm(c, EBPF_MOV, 0, 0);
	return c;
}

Test(bpfgen_code, labels)
{
	struct bpfgen_code *c = begun();

	bpfgen_goto(c, bpfgen_label(c));
	refused(c, -EINVAL, "a jump to a label without a place");
	c = begun();
	bpfgen_goto(c, 77);
	refused(c, -EINVAL, "a jump to a label without a place");
	c = begun();
	bpfgen_here(c, 77);
	refused(c, -EINVAL, "a label that does not exist");
	c = begun();
	bpfgen_here(c, 0);
	refused(c, -EINVAL, "a label has two places");
	c = begun();
	bpfgen_goto(c, bpfgen_label(c));
	bpfgen_here(c, 1);
	refused(c, -EINVAL, "a jump behind the last instruction");
}

Test(bpfgen_code, functions_that_are_none)
{
	struct bpfgen_code *c = code();

	bpfgen_exit(c);
	refused(c, -EINVAL, "no function at the beginning");
	c = code();
	bpfgen_exit(c);
	bpfgen_function(c, bpfgen_label(c), "late");
	bpfgen_exit(c);
	refused(c, -EINVAL, "no function at the beginning");
	c = begun();
	bpfgen_exit(c);
	bpfgen_function(c, bpfgen_label(c), "empty");
	refused(c, -EINVAL, "a function without instructions");
	c = code();
	bpfgen_function(c, bpfgen_label(c), "");
	refused(c, -EINVAL, "a function's name is empty or too long");
	c = code();
	bpfgen_function(c, bpfgen_label(c),
			"a234567890123456789012345678901234567890123456789012345678901234");
	refused(c, -EINVAL, "a function's name is empty or too long");
}

Test(bpfgen_code, registers)
{
	struct bpfgen_code *c = begun();

	bpfgen_alu(c, EBPF_MOV, 11, 0);
	refused(c, -EINVAL, "a register that does not exist");
	c = begun();
	bpfgen_alu(c, EBPF_MOV, 0, 16);
	refused(c, -EINVAL, "a register that does not exist");
}

Test(bpfgen_code, too_many_instructions)
{
	struct bpfgen_code *c = begun();

	while (bpfgen_code_size(c) < EBPF_INSNS_MAX)
		bpfgen_exit(c);
	cr_assert_not(bpfgen_code_finish(c, NULL));
	bpfgen_code_destroy(c);
	c = begun();
	while (bpfgen_code_size(c) < EBPF_INSNS_MAX + 1)
		bpfgen_exit(c);
	refused(c, -E2BIG, "too many instructions");
	c = begun();
	for (int i = 0; i < 2 * EBPF_INSNS_MAX; i++)
		bpfgen_exit(c);
	refused(c, -E2BIG, "too many instructions");
}

Test(bpfgen_code, behind_the_end)
{
	struct bpfgen_code *c = begun();

	bpfgen_exit(c);
	cr_assert_not(bpfgen_code_finish(c, NULL));
	cr_assert_not(bpfgen_code_finish(c, NULL));
	bpfgen_exit(c);
	refused(c, -EINVAL, "an instruction behind the end");
	bpfgen_code_destroy(NULL);
}
