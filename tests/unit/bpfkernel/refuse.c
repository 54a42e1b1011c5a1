/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What cannot go into the kernel is refused with a reason, before the kernel is asked.
 */
#include "arena.h"

static int nothing(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	*result = 0;
	return 0;
}

static const struct ebpf_helper list[] = { { "warp_thing", 5, 0, nothing } };
static const struct ebpf_helpers helpers = { list, 1 };

static struct bpfkernel_params params;
static struct ebpf_error err;

static int emit(const struct ebpf_insn *insns, size_t count)
{
	struct ebpf_object *object;
	struct bpfgen_code *c;
	int ret;

	cr_assert_eq(ebpf_object_assemble(insns, count, &helpers, EBPF_LOAD_NO_JIT, &object, &err),
		     0, "%s", err.text);
	cr_assert_eq(bpfgen_code_create(&c), 0);
	params.object = object;
	params.arena = 0x100000000;
	ret = bpfkernel_emit(c, &params, &err);
	bpfgen_code_destroy(c);
	ebpf_object_destroy(object);
	return ret;
}

#define EMIT(...)                                 \
	emit((struct ebpf_insn[]){ __VA_ARGS__ }, \
	     sizeof((struct ebpf_insn[]){ __VA_ARGS__ }) / sizeof(struct ebpf_insn))

Test(bpfkernel_refuse, a_helper_that_nothing_stands_for)
{
	cr_assert_eq(EMIT(MOV(1, 1), CALL(5), EXIT), -EOPNOTSUPP);
	cr_assert_str_eq(err.text, "the kernel has nothing for warp_thing; 1: call 5");
	cr_assert_eq(err.pc, 1);
}

Test(bpfkernel_refuse, a_helper_in_code_that_nothing_leads_to_is_no_reason)
{
	cr_assert_eq(EMIT(MOV(0, 1), EXIT, CALL(5), EXIT), 0);
}

Test(bpfkernel_refuse, atomics_that_arenas_do_not_have)
{
	static const int ops[] = { EBPF_AND, EBPF_OR, EBPF_XOR };

	for (size_t i = 0; i < base_array_size(ops); i++) {
		cr_assert_eq(EMIT(MOV(0, 1), ATOMIC(EBPF_DW, ops[i] | EBPF_FETCH, 1, 0, 0), EXIT),
			     -EOPNOTSUPP);
		cr_assert_str_eq(strtok(err.text, ";"), "the kernel has no such atomic for arenas");
		cr_assert_eq(EMIT(MOV(0, 1), ATOMIC(EBPF_DW, ops[i], 1, 0, 0), EXIT), 0);
	}
}

Test(bpfkernel_refuse, too_many_and_too_large_windows)
{
	struct bpfkernel_window windows[BPFKERNEL_WINDOWS_MAX + 1] = { 0 };

	params.windows = windows;
	params.window_count = BPFKERNEL_WINDOWS_MAX;
	cr_assert_eq(EMIT(MOV(0, 1), EXIT), 0);
	params.window_count++;
	cr_assert_eq(EMIT(MOV(0, 1), EXIT), -E2BIG);
	params.window_count = 1;
	windows[0].size = (uint32_t)INT32_MAX + 1;
	cr_assert_eq(EMIT(MOV(0, 1), EXIT), -E2BIG);
	cr_assert_str_eq(err.text, "a region of 2 GiB or more");
}

/* Each call is written out, so eight levels of four calls are more than 65,536 */
Test(bpfkernel_refuse, code_that_is_too_long)
{
	cr_assert_eq(EMIT(CALL_LOCAL(1), EXIT, MOV(1, 1), CALL_LOCAL(-2), CALL_LOCAL(-3),
			  CALL_LOCAL(-4), CALL_LOCAL(-5), CALL_LOCAL(-6), CALL_LOCAL(-7),
			  CALL_LOCAL(-8), MOV(0, 0), EXIT),
		     -E2BIG);
	cr_assert_str_eq(strtok(err.text, ";"), "too long for the kernel");
}
