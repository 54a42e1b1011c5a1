/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs: fuel to the last instruction, in one piece or many; calls, their depth and what survives
 * them; helpers; what a caller may give as regions; and the text of results.
 */
#include <errno.h>

#include <time.h>

#include "both.h"

enum { ADDR = 0x4000 };

static uint64_t memory[64] __attribute__((aligned(64)));

/* --- fuel ------------------------------------------------------------------------------------- */

/* 12 instructions in several blocks, and 3 in a function that is called twice */
static const struct ebpf_insn mixed[] = {
	MOV(0, 0),
	MOV(6, 3),
	ADD(0, 1),
	ADD(6, -1),
	JK(EBPF_JNE, 6, 0, -3),
	MOV(1, 5),
	CALL_LOCAL(5),
	JK(EBPF_JGT, 0, 100, 2),
	MOVX(1, 0),
	CALL_LOCAL(2),
	ADD(0, 0),
	EXIT,
	/* 12: */ MOVX(0, 1),
	ALU64K(EBPF_MUL, 0, 7),
	EXIT,
};

Test(bpf_run, fuel_ends_at_any_instruction)
{
	struct ebpf_params params = { 0 };

	for (uint64_t fuel = 0; fuel < 40; fuel++) {
		struct ebpf_result r = both_run(mixed, base_array_size(mixed), NULL, &params, fuel);
		uint64_t whole = 2 + 9 + 2 + 3 + 1 + 2 + 3 + 2;

		cr_assert_eq(r.status, fuel < whole ? EBPF_FUEL : EBPF_DONE, "%lu", fuel);
		cr_assert_eq(r.fuel, fuel < whole ? 0 : fuel - whole);
		if (fuel >= whole)
			cr_assert_eq(r.value, 5 * 7 * 7);
	}
}

Test(bpf_run, goes_on_in_pieces_of_any_size)
{
	struct ebpf_params params = { 0 };

	for (unsigned int flags = 0; flags < 2; flags++)
		for (uint64_t piece = 1; piece < 30; piece++) {
			struct ebpf_object *obj =
				both_load(mixed, base_array_size(mixed), NULL, flags);
			struct ebpf_result r;
			struct ebpf_run *run;
			int pieces = 1;

			cr_assert(!ebpf_run_create(&run) && !ebpf_run_start(run, obj, &params));
			while (ebpf_run_continue(run, piece, &r) == EBPF_FUEL)
				pieces++;
			cr_assert_eq(r.status, EBPF_DONE);
			cr_assert_eq(r.value, 5 * 7 * 7);
			cr_assert_eq(pieces, (int)((24 + piece - 1) / piece), "%d", pieces);
			/* what is over stays over */
			cr_assert_eq(ebpf_run_continue(run, 5, &r), EBPF_DONE);
			cr_assert_eq(r.value, 5 * 7 * 7);
			ebpf_run_destroy(run);
			ebpf_object_destroy(obj);
		}
}

/* Of branches that are most likely taken: machine code pays for where they lead */
Test(bpf_run, fuel_where_branches_lead_on)
{
	static const struct ebpf_insn insns[] = {
		MOV(0, 0),
		MOV(2, 3),
		ADD(0, 1), /* a loop of several stretches */
		JK(EBPF_JEQ, 0, 2, 1),
		ADD(0, 16),
		ADD(2, -1),
		JK(EBPF_JNE, 2, 0, -5),
		JX(EBPF_JNE, 0, 1, 1), /* around an end, which others reach too */
		EXIT,
		JK(EBPF_JEQ, 0, 51, 1),
		JA(-3),
		MOV(0, 7),
		MOV(1, 7),
		JK(EBPF_JNE, 1, 7, 1),
		EXIT,
		JA(-8), /* never */
	};

	for (uint64_t first = 0; first < 2; first++)
		for (uint64_t fuel = 0; fuel < 40; fuel++) {
			const struct ebpf_params params = { .arg = { first ? 51 : 0 } };
			struct ebpf_result r =
				both_run(insns, base_array_size(insns), NULL, &params, fuel);
			uint64_t whole = first ? 19 : 23;

			cr_assert_eq(r.status, fuel < whole ? EBPF_FUEL : EBPF_DONE, "%lu: %d",
				     fuel, (int)r.status);
			if (fuel >= whole)
				cr_assert(r.value == (first ? 51 : 7) && r.fuel == fuel - whole,
					  "%lu left of %lu", r.fuel, fuel);
		}
}

Test(bpf_run, an_endless_loop_ends)
{
	const struct ebpf_insn insns[] = { JA(-1) };
	struct ebpf_params params = { 0 };
	struct ebpf_result r = both_run(insns, 1, NULL, &params, 1000000);

	cr_assert_eq(r.status, EBPF_FUEL);
	cr_assert_eq(r.fuel, 0);
}

/* --- calls ------------------------------------------------------------------------------------ */

Test(bpf_run, a_call_keeps_r6_to_r9_and_the_stack)
{
	cr_assert_eq(BOTH_VALUE(MOV(6, 1), MOV(7, 2), MOV(8, 3), MOV(9, 4), ST(EBPF_DW, 10, -8, 5),
				CALL_LOCAL(7), LDX(EBPF_DW, 0, 10, -8), ALU64X(EBPF_ADD, 0, 6),
				ALU64X(EBPF_ADD, 0, 7), ALU64X(EBPF_ADD, 0, 8),
				ALU64X(EBPF_ADD, 0, 9), MOVX(0, 0), EXIT, MOV(6, 90), MOV(7, 90),
				MOV(8, 90), MOV(9, 90), ST(EBPF_DW, 10, -8, 90), MOV(0, 0), EXIT),
		     15);
}

Test(bpf_run, a_function_may_use_its_callers_stack)
{
	cr_assert_eq(BOTH_VALUE(ST(EBPF_DW, 10, -8, 5), MOVX(1, 10), ADD(1, -8), CALL_LOCAL(2),
				LDX(EBPF_DW, 0, 10, -8), EXIT, ST(EBPF_DW, 1, 0, 6), MOV(0, 0),
				EXIT),
		     6);
}

/* f(n) = n ? f(n - 1) + 1 : 0 */
Test(bpf_run, depth)
{
	const struct ebpf_insn insns[] = { CALL_LOCAL(1), EXIT,
					   MOV(0, 0),	  JK(EBPF_JEQ, 1, 0, 3),
					   ADD(1, -1),	  CALL_LOCAL(-4),
					   ADD(0, 1),	  EXIT };

	for (uint64_t n = 0; n < 12; n++) {
		const struct ebpf_params params = { .arg = { n } };
		struct ebpf_result r =
			both_run(insns, base_array_size(insns), NULL, &params, BOTH_FUEL);

		if (n + 2 <= EBPF_DEPTH_MAX) {
			cr_assert_eq(r.value, n);
		} else {
			cr_assert_eq(r.status, EBPF_DEPTH);
			cr_assert_eq(r.pc, 5);
		}
	}
}

/* An error deep inside leaves nothing behind: the next run is as good as the first. */
Test(bpf_run, an_error_in_a_function)
{
	const struct ebpf_insn insns[] = { MOVX(6, 1), CALL_LOCAL(1), EXIT, LDX(EBPF_W, 0, 1, 0),
					   EXIT };
	const struct ebpf_region region = { memory, ADDR, 8, 0, EBPF_MAY_READ };
	struct ebpf_params params = { .regions = &region, .count = 1, .arg = { 16 } };
	struct ebpf_result r;

	for (int i = 0; i < 3; i++) {
		r = both_run(insns, base_array_size(insns), NULL, &params, BOTH_FUEL);
		cr_assert_eq(r.status, EBPF_ADDRESS);
		cr_assert_eq(r.pc, 3);
		cr_assert_eq(r.addr, 16);
	}
	params.arg[0] = ADDR;
	r = both_run(insns, base_array_size(insns), NULL, &params, BOTH_FUEL);
	cr_assert_eq(r.status, EBPF_DONE);
}

/* --- helpers ---------------------------------------------------------------------------------- */

static int sum(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	uint64_t *cookie = ebpf_run_cookie(run);

	*result =
		arg[0] + 2 * arg[1] + 3 * arg[2] + 4 * arg[3] + 5 * arg[4] + (cookie ? *cookie : 0);
	return 0;
}

static int refuse(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	return -EPROTO;
}

static int touch(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	void *at;
	int ret = ebpf_run_memory(run, arg[0], arg[1], EBPF_MAY_READ | EBPF_MAY_WRITE, &at);

	if (!ret)
		memset(at, 0xee, arg[1]);
	return ret;
}

static int charge(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	ebpf_run_charge(run, arg[0]);
	return 0;
}

static const struct ebpf_helper list[] = { { "sum", 11, 5, sum },
					   { "refuse", 12, 0, refuse },
					   { "touch", 13, 2, touch },
					   { "charge", 14, 1, charge },
					   { "output", 15, 2, ebpf_helper_output } };
static const struct ebpf_helpers helpers = { list, base_array_size(list) };

static struct ebpf_result run_with(const struct ebpf_insn *insns, size_t count, uint64_t fuel)
{
	static uint64_t cookie = 1000000;
	static uint8_t output[16];
	const struct ebpf_region region = { memory, ADDR, 64, 0, EBPF_MAY_READ | EBPF_MAY_WRITE };
	const struct ebpf_params params = { .regions = &region,
					    .count = 1,
					    .cookie = &cookie,
					    .output = output,
					    .output_room = sizeof(output) };
	struct ebpf_result r = both_run(insns, count, &helpers, &params, fuel);

	if (r.output)
		cr_assert_eq(output[0], (uint8_t)memory[0]);
	return r;
}

#define RUN_WITH(fuel, ...)                                        \
	__extension__({                                            \
		const struct ebpf_insn insns_[] = { __VA_ARGS__ }; \
		run_with(insns_, base_array_size(insns_), fuel);   \
	})

Test(bpf_run, a_helper_gets_its_arguments_and_leaves_the_rest)
{
	struct ebpf_result r = RUN_WITH(BOTH_FUEL, MOV(6, 1), MOV(7, 2), MOV(8, 3), MOV(9, 4),
					MOV(1, 1), MOV(2, 10), MOV(3, 100), MOV(4, 1000),
					MOV(5, 10000), CALL(11), ALU64X(EBPF_ADD, 0, 6),
					ALU64X(EBPF_ADD, 0, 7), ALU64X(EBPF_ADD, 0, 8),
					ALU64X(EBPF_ADD, 0, 9), EXIT);

	cr_assert_eq(r.value, 1 + 20 + 300 + 4000 + 50000 + 1000000 + 10);
}

Test(bpf_run, a_helper_in_a_function)
{
	struct ebpf_result r = RUN_WITH(BOTH_FUEL, MOV(1, 1), CALL_LOCAL(1), EXIT, MOV(2, 0),
					MOV(3, 0), MOV(4, 0), MOV(5, 0), CALL(11), EXIT);

	cr_assert_eq(r.value, 1000001);
	r = RUN_WITH(BOTH_FUEL, MOV(1, 1), CALL_LOCAL(1), EXIT, CALL(12), EXIT);
	cr_assert_eq(r.status, EBPF_HELPER);
	cr_assert_eq(r.error, -EPROTO);
	cr_assert_eq(r.pc, 3);
}

Test(bpf_run, a_helpers_memory_is_the_programs)
{
	struct ebpf_result r = RUN_WITH(BOTH_FUEL, MOV(1, ADDR + 8), MOV(2, 56), CALL(13), EXIT);

	cr_assert_eq(r.status, EBPF_DONE);
	cr_assert_eq(memory[1], 0xeeeeeeeeeeeeeeee);
	r = RUN_WITH(BOTH_FUEL, MOV(1, ADDR + 8), MOV(2, 57), CALL(13), EXIT);
	cr_assert_eq(r.status, EBPF_HELPER);
	cr_assert_eq(r.error, -EFAULT);
	cr_assert_eq(r.addr, ADDR + 8);
	cr_assert_eq(r.len, 57);
}

Test(bpf_run, a_helper_takes_fuel)
{
	struct ebpf_result r = RUN_WITH(100, MOV(1, 50), CALL(14), EXIT);

	cr_assert_eq(r.status, EBPF_DONE);
	cr_assert_eq(r.fuel, 47);
	r = RUN_WITH(100, MOV(1, 98), CALL(14), EXIT);
	cr_assert_eq(r.status, EBPF_FUEL);
	cr_assert_eq(r.fuel, 0);
	r = RUN_WITH(100, MOV(1, 99), CALL(14), EXIT);
	cr_assert_eq(r.status, EBPF_FUEL);
	cr_assert_eq(r.fuel, 0);
}

/* A helper may take more than one turn has; the run pays before it goes on */
Test(bpf_run, a_helper_takes_fuel_of_later_turns)
{
	static const struct ebpf_insn insns[] = { MOV(1, 25), CALL(14), MOV(0, 7), EXIT };
	const struct ebpf_params params = { 0 };
	struct ebpf_object *obj;
	struct ebpf_result r;
	struct ebpf_run *run;

	for (unsigned int flags = 0; flags <= EBPF_LOAD_NO_JIT; flags++) {
		cr_assert_not(ebpf_object_assemble(insns, base_array_size(insns), &helpers, flags,
						   &obj, NULL));
		cr_assert_not(ebpf_run_create(&run));
		cr_assert_not(ebpf_run_start(run, obj, &params));
		cr_assert_eq(ebpf_run_continue(run, 10, &r), EBPF_FUEL); /* of 27, 8 are paid */
		cr_assert_eq(ebpf_run_continue(run, 10, &r), EBPF_FUEL);
		cr_assert_eq(r.fuel, 0);
		cr_assert_eq(ebpf_run_continue(run, 10, &r), EBPF_DONE);
		cr_assert_eq(r.fuel, 1);
		cr_assert_eq(r.value, 7);
		/* nothing is owed by the next one */
		cr_assert_not(ebpf_run_start(run, obj, &params));
		cr_assert_eq(ebpf_run_continue(run, 2, &r), EBPF_FUEL);
		cr_assert_not(ebpf_run_start(run, obj, &params));
		cr_assert_eq(ebpf_run_continue(run, 29, &r), EBPF_DONE);
		cr_assert_eq(r.fuel, 0);
		ebpf_run_destroy(run);
		ebpf_object_destroy(obj);
	}
}

/* One instruction at a time: registers are those behind it, and what a helper took is known */
Test(bpf_run, is_followed)
{
	static const struct ebpf_insn insns[] = { MOV(1, 25), CALL(14), MOV(0, 7), EXIT };
	const struct ebpf_params params = { .arg = { 3, 4 } };
	struct ebpf_object *obj;
	struct ebpf_result r;
	struct ebpf_run *run;

	for (unsigned int flags = 0; flags <= EBPF_LOAD_NO_JIT; flags++) {
		cr_assert_not(ebpf_object_assemble(insns, base_array_size(insns), &helpers, flags,
						   &obj, NULL));
		cr_assert_not(ebpf_run_create(&run));
		cr_assert_not(ebpf_run_start(run, obj, &params));
		cr_assert(ebpf_run_registers(run)[1] == 3 && ebpf_run_registers(run)[2] == 4);
		cr_assert_eq(ebpf_run_continue(run, 1, &r), EBPF_FUEL);
		cr_assert(ebpf_run_registers(run)[1] == 25 && r.pc == 1 && !ebpf_run_owed(run));
		cr_assert_eq(ebpf_run_continue(run, 1, &r), EBPF_FUEL);
		cr_assert(r.pc == 2 && ebpf_run_owed(run) == 25);
		cr_assert_eq(ebpf_run_continue(run, 1 + 25, &r), EBPF_FUEL);
		cr_assert(ebpf_run_registers(run)[0] == 7 && r.pc == 3 && !ebpf_run_owed(run));
		cr_assert_eq(ebpf_run_continue(run, 1, &r), EBPF_DONE);
		ebpf_run_destroy(run);
		ebpf_object_destroy(obj);
	}
}

Test(bpf_run, output)
{
	struct ebpf_result r = RUN_WITH(BOTH_FUEL, MOV(1, ADDR), MOV(2, 10), CALL(15), MOVX(6, 0),
					MOV(1, ADDR), MOV(2, 6), CALL(15), MOV(1, ADDR), MOV(2, 1),
					CALL(15), EXIT);

	cr_assert_eq(r.status, EBPF_DONE);
	cr_assert_eq(r.output, 16);
	cr_assert_eq((int64_t)r.value, -E2BIG);
	r = RUN_WITH(BOTH_FUEL, MOV(1, ADDR + 60), MOV(2, 5), CALL(15), EXIT);
	cr_assert_eq(r.status, EBPF_HELPER);
	cr_assert_eq(r.addr, ADDR + 60);
	r = RUN_WITH(BOTH_FUEL, MOV(1, 0), MOV(2, 0), CALL(15), EXIT);
	cr_assert_eq(r.status, EBPF_DONE);
	r = RUN_WITH(BOTH_FUEL, MOV(1, ADDR), MOV(2, -1), CALL(15), EXIT);
	cr_assert_eq((int64_t)r.value, -E2BIG);
}

/* --- what a caller may give ------------------------------------------------------------------- */

static int start_with(const struct ebpf_region *regions, size_t count, uint32_t entry)
{
	const struct ebpf_insn insns[] = { MOV(0, 0), EXIT };
	const struct ebpf_params params = { .regions = regions, .count = count, .entry = entry };
	struct ebpf_object *obj = both_load(insns, 2, NULL, 0);
	struct ebpf_result r;
	struct ebpf_run *run;
	int ret;

	cr_assert_not(ebpf_run_create(&run));
	ret = ebpf_run_start(run, obj, &params);
	cr_assert_eq(ebpf_run_continue(run, 10, &r), EBPF_DONE);
	ebpf_run_destroy(run);
	ebpf_object_destroy(obj);
	return ret;
}

Test(bpf_run, regions_that_make_no_sense)
{
	static const struct ebpf_region bad[] = {
		{ NULL, ADDR, 8, 0, 1 },
		{ memory, ADDR, 0, 0, 1 },
		{ memory, ADDR + 1, 8, 0, 1 },
		{ memory, ADDR, 8, 7, 1 },
		{ memory, EBPF_OWN_ADDR, 8, 0, 1 },
		{ memory, EBPF_OWN_ADDR - 8, 16, 0, 1 },
		{ memory, UINT64_MAX - 7, 8, 0, 1 },
		{ memory, ADDR, UINT64_MAX, 0, 1 },
	};
	static const struct ebpf_region good = { memory, EBPF_OWN_ADDR - 8, 8, 0, 1 };

	for (size_t i = 0; i < base_array_size(bad); i++)
		cr_assert_eq(start_with(&bad[i], 1, 0), -EINVAL, "region %zu", i);
	cr_assert_not(start_with(&good, 1, 0));
	cr_assert_eq(start_with(&good, 1, 1), -EINVAL);
}

Test(bpf_run, regions_that_overlap)
{
	static const struct {
		uint64_t a, b;
		int want;
	} rows[] = {
		{ ADDR, ADDR + 64, 0 },	      { ADDR + 64, ADDR, 0 },	    { ADDR, ADDR, -EINVAL },
		{ ADDR, ADDR + 56, -EINVAL }, { ADDR + 56, ADDR, -EINVAL }, { ADDR, ADDR + 128, 0 },
	};

	for (size_t i = 0; i < base_array_size(rows); i++) {
		const struct ebpf_region regions[] = { { memory, rows[i].a, 64, 0, 1 },
						       { memory, rows[i].b, 64, 0, 1 } };

		cr_assert_eq(start_with(regions, 2, 0), rows[i].want, "row %zu", i);
	}
}

Test(bpf_run, many_regions)
{
	struct ebpf_region regions[EBPF_REGIONS_MAX + 1];

	for (unsigned int i = 0; i <= EBPF_REGIONS_MAX; i++)
		regions[i] = (struct ebpf_region){ memory, ADDR + 64 * ((i * 37) % 65), 64, 0, 1 };
	cr_assert_not(start_with(regions, EBPF_REGIONS_MAX, 0));
	cr_assert_eq(start_with(regions, EBPF_REGIONS_MAX + 1, 0), -E2BIG);
}

/* --- texts ------------------------------------------------------------------------------------ */

Test(bpf_run, texts)
{
	const struct ebpf_insn insns[] = { MOV(0, 0), LDX(EBPF_DW, 0, 0, 16), EXIT };
	struct ebpf_object *obj = both_load(insns, 3, NULL, 0);
	struct ebpf_params params = { 0 };
	struct ebpf_result r = both_run_one(obj, &params, 10);
	char text[200], few[12];

	cr_assert_str_eq(ebpf_result_text(&r, obj, text, sizeof(text)), "an access outside of all "
									"regions: read of 8 bytes "
									"at 0x10; "
									"1: r0 = *(u64 *)(r0 +16)");
	cr_assert_str_eq(ebpf_result_text(&r, obj, few, sizeof(few)), "an access o");
	r = (struct ebpf_result){ .status = EBPF_DONE, .value = 255 };
	cr_assert_str_eq(ebpf_result_text(&r, obj, text, sizeof(text)), "done: 0xff");
	r = (struct ebpf_result){ .status = EBPF_HELPER, .error = -EPROTO, .pc = 2 };
	cr_assert_str_eq(ebpf_result_text(&r, obj, text, sizeof(text)), "a helper refused: "
									"Protocol error; 2: exit");
	/* A peer's mistake */
	r = (struct ebpf_result){ .status = EBPF_FUEL, .pc = 3 };
	cr_assert_str_eq(ebpf_result_text(&r, obj, text, sizeof(text)), "the fuel is used up");
	for (int i = EBPF_DONE; i <= EBPF_HELPER; i++)
		cr_assert_str_neq(ebpf_status_text((enum ebpf_status)i), "unknown status");
	ebpf_object_destroy(obj);
}

/* --- making --------------------------------------------------------------------------------- */

static size_t put(struct ebpf_insn *to, size_t n, struct ebpf_insn in)
{
	to[n] = in;
	return n + 1;
}

/* Many gotos that lead to one long stretch */
static size_t gotos(struct ebpf_insn *to, size_t many)
{
	size_t n = put(to, 0, (struct ebpf_insn)MOV(0, 0));

	for (size_t i = 0; i < many; i++)
		n = put(to, n, (struct ebpf_insn)JK(EBPF_JEQ, 1, i, many));
	n = put(to, n, (struct ebpf_insn)EXIT);
	for (size_t i = 0; i < many; i++)
		n = put(to, n, (struct ebpf_insn)JA(many - 1 - i));
	for (size_t i = 0; i < many; i++)
		n = put(to, n, (struct ebpf_insn)ADD(0, 1));
	return put(to, n, (struct ebpf_insn)EXIT);
}

/* Many accesses to one place, with a check for each, for a jump leads there */
static size_t accesses(struct ebpf_insn *to, size_t many)
{
	size_t n = 0;

	for (size_t i = 0; i < many; i++)
		n = put(to, n, (struct ebpf_insn)LDX(EBPF_DW, 0, 1, 0));
	for (size_t i = 0; i < many; i++)
		n = put(to, n, (struct ebpf_insn)JK(EBPF_JEQ, 2, i, -(int)many - 1));
	return put(to, n, (struct ebpf_insn)EXIT);
}

/* Seconds of this thread's, the least of three */
static double load_seconds(size_t (*make)(struct ebpf_insn *to, size_t many), size_t many)
{
	struct ebpf_insn *insns = malloc((3 * many + 3) * sizeof(*insns));
	size_t count = make(insns, many);
	double least = 1e9;

	for (int i = 0; i < 3; i++) {
		struct timespec begin, end;
		struct ebpf_object *obj;
		double took;

		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
		obj = both_load(insns, count, NULL, 0);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
		ebpf_object_destroy(obj);
		took = (double)(end.tv_sec - begin.tv_sec) +
		       (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
		least = took < least ? took : least;
	}
	free(insns);
	return least;
}

/* An object is loaded in one go, so what takes the square of its length keeps a server busy */
Test(bpf_run, machine_code_is_made_in_time)
{
	double few, many;

	few = load_seconds(gotos, 2500);
	many = load_seconds(gotos, 20000);
	cr_assert_lt(many, 24 * few, "%f s, %f s", few, many);
	few = load_seconds(accesses, 2000);
	many = load_seconds(accesses, 16000);
	cr_assert_lt(many, 24 * few, "%f s, %f s", few, many);
}
