/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_UNIT_BPF_BOTH_H
#define TESTS_UNIT_BPF_BOTH_H

/* Runs a program by both engines; they must agree, in the regions' memory, too. */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpf/run.h"
#include "tests/bpf/assemble.h"

enum { BOTH_FUEL = 100000 };

static inline struct ebpf_object *both_load(const struct ebpf_insn *insns, size_t count,
					    const struct ebpf_helpers *helpers, unsigned int flags)
{
	struct ebpf_object *obj = NULL;
	struct ebpf_error err;

	cr_assert(!ebpf_object_assemble(insns, count, helpers, flags, &obj, &err), "%s", err.text);
	return obj;
}

static inline struct ebpf_result both_run_one(const struct ebpf_object *obj,
					      const struct ebpf_params *params, uint64_t fuel)
{
	struct ebpf_result result = { 0 };
	struct ebpf_run *run = NULL;

	cr_assert(!ebpf_run_create(&run) && !ebpf_run_start(run, obj, params));
	ebpf_run_continue(run, fuel, &result);
	ebpf_run_destroy(run);
	return result;
}

static inline void both_same(const struct ebpf_result *a, const struct ebpf_result *b)
{
	cr_assert_eq(a->status, b->status, "%s by one, %s by the other",
		     ebpf_status_text(a->status), ebpf_status_text(b->status));
	cr_assert_eq(a->value, b->value, "0x%lx by the interpreter, 0x%lx by machine code",
		     a->value, b->value);
	cr_assert_eq(a->pc, b->pc);
	cr_assert_eq(a->addr, b->addr);
	cr_assert_eq(a->len, b->len);
	cr_assert_eq(a->rights, b->rights);
	cr_assert_eq(a->error, b->error);
	cr_assert_eq(a->fuel, b->fuel, "%lu by the interpreter, %lu by machine code", a->fuel,
		     b->fuel);
	cr_assert_eq(a->output, b->output);
}

/* The regions' memory is as before for both, and as the second leaves it behind */
static inline struct ebpf_result both_run(const struct ebpf_insn *insns, size_t count,
					  const struct ebpf_helpers *helpers,
					  const struct ebpf_params *params, uint64_t fuel)
{
	static const unsigned int flags[] = { EBPF_LOAD_NO_JIT, 0 };
	struct ebpf_result result[2];
	uint8_t *before[EBPF_REGIONS_MAX], *after[EBPF_REGIONS_MAX];

	for (size_t i = 0; i < params->count; i++) {
		before[i] = malloc(params->regions[i].size);
		after[i] = malloc(params->regions[i].size);
		memcpy(before[i], params->regions[i].host, params->regions[i].size);
	}
	for (int e = 0; e < 2; e++) {
		struct ebpf_object *obj = both_load(insns, count, helpers, flags[e]);

		for (size_t i = 0; i < params->count; i++)
			memcpy(params->regions[i].host, before[i], params->regions[i].size);
		result[e] = both_run_one(obj, params, fuel);
		for (size_t i = 0; i < params->count && !e; i++)
			memcpy(after[i], params->regions[i].host, params->regions[i].size);
		ebpf_object_destroy(obj);
	}
	both_same(&result[0], &result[1]);
	for (size_t i = 0; i < params->count; i++) {
		cr_assert_arr_eq(after[i], params->regions[i].host, params->regions[i].size);
		free(before[i]);
		free(after[i]);
	}
	return result[1];
}

/* A program without regions that comes to its end, and what it returns */
static inline uint64_t both_value(const struct ebpf_insn *insns, size_t count)
{
	struct ebpf_params params = { 0 };
	struct ebpf_result r = both_run(insns, count, NULL, &params, BOTH_FUEL);

	cr_assert_eq(r.status, EBPF_DONE, "%s", ebpf_status_text(r.status));
	return r.value;
}

#define BOTH_VALUE(...)                                            \
	__extension__({                                            \
		const struct ebpf_insn insns_[] = { __VA_ARGS__ }; \
		both_value(insns_, base_array_size(insns_));       \
	})

/* The message of a refusal */
static inline const char *both_refusal(const struct ebpf_insn *insns, size_t count,
				       const struct ebpf_helpers *helpers)
{
	static struct ebpf_error err;
	struct ebpf_object *obj = NULL;
	int ret = ebpf_object_assemble(insns, count, helpers, 0, &obj, &err);

	cr_assert(ret == -EINVAL || ret == -E2BIG, "not refused");
	cr_assert_null(obj);
	return err.text;
}

#endif
