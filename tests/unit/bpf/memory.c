/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loads and stores, in regions of all sizes up to their last byte and not one further, with their
 * rights; and by machine code through windows that cover a part of a region, or several accesses
 * at once.
 */
#include "both.h"

enum { ADDR = 0x4000, ROOM = 512 };

static uint8_t memory[ROOM] __attribute__((aligned(64)));
static const unsigned int sizes[] = { EBPF_B, EBPF_H, EBPF_W, EBPF_DW };

static void fill(void)
{
	for (size_t i = 0; i < ROOM; i++)
		memory[i] = (uint8_t)(i * 7 + 0x81);
}

static struct ebpf_result run_in(const struct ebpf_insn *insns, size_t count, uint64_t size,
				 unsigned int rights)
{
	const struct ebpf_region region = { memory, ADDR, size, 0, rights };
	const struct ebpf_params params = { .regions = &region, .count = 1, .arg = { ADDR, size } };

	return both_run(insns, count, NULL, &params, BOTH_FUEL);
}

#define RUN_IN(size, rights, ...)                                      \
	__extension__({                                                \
		const struct ebpf_insn insns_[] = { __VA_ARGS__ };     \
		run_in(insns_, base_array_size(insns_), size, rights); \
	})

static void fails(const struct ebpf_result *r, enum ebpf_status status, uint64_t addr, uint64_t len)
{
	cr_assert_eq(r->status, status, "%s", ebpf_status_text(r->status));
	cr_assert_eq(r->addr, addr, "at 0x%lx", r->addr);
	cr_assert_eq(r->len, len);
}

Test(bpf_memory, loads_of_every_size, .init = fill)
{
	for (unsigned int i = 0; i < 4; i++) {
		uint64_t want = 0;
		struct ebpf_result r = RUN_IN(64, EBPF_MAY_READ, LDX(sizes[i], 0, 1, 3), EXIT);

		memcpy(&want, memory + 3, 1u << i);
		cr_assert_eq(r.value, want);
		if (i == 3)
			break;
		r = RUN_IN(64, EBPF_MAY_READ, LDSX(sizes[i], 0, 1, 0), EXIT);
		memcpy(&want, memory, 8);
		cr_assert_eq(r.value,
			     (uint64_t)((int64_t)(want << (64 - (8 << i))) >> (64 - (8 << i))));
	}
}

Test(bpf_memory, stores_of_every_size, .init = fill)
{
	for (unsigned int i = 0; i < 4; i++) {
		uint8_t want[ROOM];
		uint64_t v = 0xf1e2d3c4b5a69788;
		int64_t minus = -2;

		fill();
		memcpy(want, memory, ROOM);
		memcpy(want + 5, &v, 1u << i);
		RUN_IN(64, EBPF_MAY_WRITE, LDDW(2, v), STX(sizes[i], 1, 2, 5), MOV(0, 0), EXIT);
		cr_assert_arr_eq(memory, want, ROOM);
		memcpy(want + 17, &minus, 1u << i);
		RUN_IN(64, EBPF_MAY_WRITE, ST(sizes[i], 1, 17, -2), MOV(0, 0), EXIT);
		cr_assert_arr_eq(memory, want, ROOM);
	}
}

/* Every register as address and as value, with displacements near and far */
Test(bpf_memory, every_register, .init = fill)
{
	for (unsigned int base = 0; base < EBPF_FP; base++)
		for (unsigned int v = 0; v < EBPF_FP; v++) {
			int off = (int)(base * 37 + v) - 150;
			struct ebpf_result r = RUN_IN(ROOM, EBPF_MAY_READ | EBPF_MAY_WRITE,
						      LDDW(v, 0x123456789abcdef0),
						      LDDW(base, ADDR + 160),
						      STX(EBPF_H, base, v, off),
						      LDX(EBPF_H, v, base, off), MOVX(0, v), EXIT);
			uint64_t want = base == v ? ADDR + 160 : 0xdef0;

			cr_assert_eq(r.value, want & 0xffff, "r%u, r%u", base, v);
		}
}

Test(bpf_memory, ends_at_the_last_byte_of_a_region, .init = fill)
{
	for (uint64_t size = 1; size < 70; size++)
		for (unsigned int i = 0; i < 4; i++)
			for (int64_t at = -9; at < (int64_t)size + 2; at++) {
				int64_t len = 1 << i;
				struct ebpf_result r = RUN_IN(size, EBPF_MAY_READ, ADD(1, at),
							      LDX(sizes[i], 0, 1, 0), EXIT);

				if (at >= 0 && at + len <= (int64_t)size)
					cr_assert_eq(r.status, EBPF_DONE, "%lu %ld", size, at);
				else
					fails(&r, EBPF_ADDRESS, ADDR + (uint64_t)at, (uint64_t)len);
			}
}

Test(bpf_memory, rights)
{
	static const unsigned int all[] = { EBPF_MAY_READ, EBPF_MAY_WRITE, EBPF_MAY_ATOMIC };

	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int rights = 0; rights < 8; rights++) {
			const struct ebpf_insn access[] = { LDX(EBPF_W, 2, 1, 8),
							    ST(EBPF_W, 1, 8, 1),
							    ATOMIC(EBPF_W, EBPF_ADD, 1, 1, 8) };
			const struct ebpf_insn insns[] = { MOV(0, 5), access[i], EXIT };
			struct ebpf_result r = run_in(insns, 3, 64, rights);

			if (rights & all[i]) {
				cr_assert_eq(r.status, EBPF_DONE);
				continue;
			}
			fails(&r, EBPF_RIGHTS, ADDR + 8, 4);
			cr_assert_eq(r.rights, all[i]);
			cr_assert_eq(r.pc, 1);
		}
}

/* Addresses that wrap around, and those of a region as the host knows it */
Test(bpf_memory, wild_addresses)
{
	static const uint64_t wild[] = { 0,
					 1,
					 8,
					 ADDR - 1,
					 ADDR + 64,
					 UINT64_MAX,
					 UINT64_MAX - 7,
					 UINT64_MAX - ADDR,
					 0x7fffffffffffffff,
					 EBPF_OWN_ADDR,
					 EBPF_STACK_ADDR - 1,
					 0x800000010000fff8 };

	for (size_t i = 0; i < base_array_size(wild); i++) {
		struct ebpf_result r = RUN_IN(64, EBPF_MAY_READ, LDDW(2, wild[i]),
					      LDX(EBPF_B, 0, 1, 0), ALU64X(EBPF_SUB, 1, 1),
					      ALU64X(EBPF_ADD, 1, 2), ALU64X(EBPF_MUL, 2, 0),
					      LDX(EBPF_DW, 0, 1, 0), EXIT);

		fails(&r, EBPF_ADDRESS, wild[i], 8);
	}
	struct ebpf_result r =
		RUN_IN(64, EBPF_MAY_READ, LDDW(2, (uintptr_t)memory), LDX(EBPF_B, 0, 2, 0), EXIT);

	fails(&r, EBPF_ADDRESS, (uintptr_t)memory, 1);
	r = RUN_IN(64, EBPF_MAY_READ, LDDW(2, UINT64_MAX - 3), LDX(EBPF_DW, 0, 2, 8), EXIT);
	fails(&r, EBPF_ADDRESS, 4, 8);
}

Test(bpf_memory, neighbours_are_checked_together, .init = fill)
{
	uint64_t want = 0, v;
	struct ebpf_result r;

	for (int i = 0; i < 4; i++) {
		memcpy(&v, memory + 8 * i, 8);
		want += v;
	}
	for (uint64_t size = 1; size <= 40; size++) {
		r = RUN_IN(size, EBPF_MAY_READ, LDX(EBPF_DW, 0, 1, 0), LDX(EBPF_DW, 2, 1, 24),
			   ALU64X(EBPF_ADD, 0, 2), LDX(EBPF_DW, 2, 1, 8), ALU64X(EBPF_ADD, 0, 2),
			   ADD(1, 16), LDX(EBPF_DW, 2, 1, 0), ALU64X(EBPF_ADD, 0, 2), EXIT);
		if (size >= 32)
			cr_assert_eq(r.value, want);
		else if (size < 8)
			fails(&r, EBPF_ADDRESS, ADDR, 8);
		else
			fails(&r, EBPF_ADDRESS, ADDR + 24, 8);
	}
}

/* What follows a branch may not be touched if it is not executed. */
Test(bpf_memory, a_neighbour_behind_a_branch, .init = fill)
{
	for (int taken = 0; taken < 2; taken++) {
		struct ebpf_result r = RUN_IN(8, EBPF_MAY_READ, MOV(2, taken), LDX(EBPF_B, 0, 1, 0),
					      JK(EBPF_JEQ, 2, 1, 1), LDX(EBPF_DW, 0, 1, 8), EXIT);

		if (taken)
			cr_assert_eq(r.value, memory[0]);
		else
			fails(&r, EBPF_ADDRESS, ADDR + 8, 8);
	}
}

/* Ways with different bases, and the same, meet. */
Test(bpf_memory, where_ways_meet, .init = fill)
{
	for (int way = 0; way < 2; way++) {
		struct ebpf_result r = RUN_IN(64, EBPF_MAY_READ, MOV(2, way), MOVX(3, 1),
					      ADD(3, 32), LDX(EBPF_B, 0, 1, 0),
					      JK(EBPF_JEQ, 2, 1, 2), MOVX(1, 3),
					      LDX(EBPF_B, 0, 1, 0), LDX(EBPF_B, 4, 1, 1),
					      ALU64K(EBPF_LSH, 0, 8), ALU64X(EBPF_OR, 0, 4), EXIT);
		const uint8_t *at = memory + (way ? 0 : 32);

		cr_assert_eq(r.value, (uint64_t)at[0] << 8 | at[1]);
		r = RUN_IN(64, EBPF_MAY_READ, MOV(2, way), LDX(EBPF_B, 0, 1, 0),
			   JK(EBPF_JEQ, 2, 1, 1), MOV(5, 1), LDX(EBPF_B, 4, 1, 1),
			   ALU64K(EBPF_LSH, 0, 8), ALU64X(EBPF_OR, 0, 4), EXIT);
		cr_assert_eq(r.value, (uint64_t)memory[0] << 8 | memory[1]);
	}
}

/* One way has looked at another place last; what it holds is not what the other holds. */
Test(bpf_memory, where_different_ways_meet, .init = fill)
{
	for (int way = 0; way < 2; way++) {
		struct ebpf_result r = RUN_IN(64, EBPF_MAY_READ, MOV(2, way), MOVX(3, 1),
					      ADD(3, 32), LDX(EBPF_B, 0, 1, 0),
					      JK(EBPF_JEQ, 2, 1, 1), LDX(EBPF_B, 4, 3, 0),
					      LDX(EBPF_B, 0, 3, 0), EXIT);

		cr_assert_eq(r.value, memory[32]);
	}
}

/* The register leads elsewhere, by a move and a sum in one: what is held is of another place */
Test(bpf_memory, behind_a_sum, .init = fill)
{
	struct ebpf_result r = RUN_IN(64, EBPF_MAY_READ, MOVX(6, 1), LDX(EBPF_B, 0, 6, 0),
				      MOVX(6, 1), ADD(6, 32), LDX(EBPF_B, 0, 6, 0), EXIT);

	cr_assert_eq(r.value, memory[32]);
	r = RUN_IN(64, EBPF_MAY_READ, MOVX(6, 1), LDX(EBPF_B, 2, 6, 0), MOVX(6, 1),
		   ALU64X(EBPF_ADD, 6, 2), LDX(EBPF_B, 0, 6, 0), EXIT);
	fails(&r, EBPF_ADDRESS, ADDR + memory[0], 1);
}

Test(bpf_memory, several_regions_by_one_register, .init = fill)
{
	const unsigned int all = EBPF_MAY_READ | EBPF_MAY_WRITE;
	const struct ebpf_region regions[] = { { memory + 200, 0x9000, 57, 0, all },
					       { memory, 0x1000, 100, 0, all },
					       { memory + 104, 0x1068, 33, 0, EBPF_MAY_READ } };
	const struct ebpf_params params = { .regions = regions, .count = 3 };
	const struct ebpf_insn insns[] = { MOV(0, 0),
					   MOV(5, 20),
					   LDDW(1, 0x9001),
					   LDX(EBPF_B, 2, 1, 55),
					   ALU64X(EBPF_ADD, 0, 2),
					   LDDW(1, 0x1000),
					   LDX(EBPF_B, 2, 1, 99),
					   ALU64X(EBPF_ADD, 0, 2),
					   LDDW(1, 0x1068),
					   LDX(EBPF_B, 2, 1, 32),
					   ALU64X(EBPF_ADD, 0, 2),
					   LDX(EBPF_B, 2, 1, 0),
					   ALU64X(EBPF_ADD, 0, 2),
					   ADD(5, -1),
					   JK(EBPF_JNE, 5, 0, -16),
					   EXIT };
	struct ebpf_result r = both_run(insns, base_array_size(insns), NULL, &params, BOTH_FUEL);
	uint64_t want = (uint64_t)memory[256] + memory[99] + memory[136] + memory[104];

	cr_assert_eq(r.status, EBPF_DONE);
	cr_assert_eq(r.value, 20 * want);
}

/* A region that is no power of two is seen through two windows, and more room is one. */
Test(bpf_memory, rooms, .init = fill)
{
	static const uint64_t rooms[] = { 0, 300, 301, 511, 512 };

	for (size_t i = 0; i < base_array_size(rooms); i++) {
		const struct ebpf_region region = { memory, ADDR, 300, rooms[i], EBPF_MAY_READ };
		const struct ebpf_params params = { .regions = &region,
						    .count = 1,
						    .arg = { ADDR, ADDR + 300 } };
		struct ebpf_params beyond = params;
		const struct ebpf_insn insns[] = { MOV(0, 0),
						   LDX(EBPF_B, 3, 1, 0),
						   ALU64X(EBPF_ADD, 0, 3),
						   ADD(1, 1),
						   JX(EBPF_JLT, 1, 2, -4),
						   LDX(EBPF_B, 3, 1, -1),
						   JK(EBPF_JEQ, 4, 0, 1),
						   LDX(EBPF_B, 3, 1, 0),
						   EXIT };
		uint64_t want = 0;

		struct ebpf_result r =
			both_run(insns, base_array_size(insns), NULL, &params, BOTH_FUEL);

		for (int j = 0; j < 300; j++)
			want += memory[j];
		cr_assert_eq(r.status, EBPF_DONE);
		cr_assert_eq(r.value, want);
		beyond.arg[3] = 1;
		r = both_run(insns, base_array_size(insns), NULL, &beyond, BOTH_FUEL);
		fails(&r, EBPF_ADDRESS, ADDR + 300, 1);
	}
}

/* One run after another has other regions: nothing of the first may be left. */
Test(bpf_memory, the_next_run_has_its_own_regions, .init = fill)
{
	const struct ebpf_insn insns[] = { LDX(EBPF_DW, 0, 1, 0), EXIT };
	struct ebpf_region region = { memory, ADDR, 64, 0, EBPF_MAY_READ };
	struct ebpf_params params = { .regions = &region, .count = 1, .arg = { ADDR } };
	struct ebpf_object *obj = both_load(insns, 2, NULL, 0);
	struct ebpf_result r;
	struct ebpf_run *run;
	uint64_t want;

	cr_assert(!ebpf_run_create(&run) && !ebpf_run_start(run, obj, &params));
	cr_assert_eq(ebpf_run_continue(run, 10, &r), EBPF_DONE);
	region.host = memory + 64;
	cr_assert_not(ebpf_run_start(run, obj, &params));
	cr_assert_eq(ebpf_run_continue(run, 10, &r), EBPF_DONE);
	memcpy(&want, memory + 64, 8);
	cr_assert_eq(r.value, want);
	region.addr = ADDR + 64;
	cr_assert_not(ebpf_run_start(run, obj, &params));
	cr_assert_eq(ebpf_run_continue(run, 10, &r), EBPF_ADDRESS);
	region.addr = ADDR;
	region.rights = EBPF_MAY_WRITE;
	cr_assert_not(ebpf_run_start(run, obj, &params));
	cr_assert_eq(ebpf_run_continue(run, 10, &r), EBPF_RIGHTS);
	params.count = 0;
	cr_assert_not(ebpf_run_start(run, obj, &params));
	cr_assert_eq(ebpf_run_continue(run, 10, &r), EBPF_ADDRESS);
	ebpf_run_destroy(run);
	ebpf_object_destroy(obj);
}

/* Nor is anything left of a run that could not begin, or that had other code */
Test(bpf_memory, the_next_run_has_its_own_windows, .init = fill)
{
	const struct ebpf_insn insns[] = { LDX(EBPF_DW, 0, 1, 0), EXIT };
	const struct ebpf_insn longer[] = { LDX(EBPF_DW, 0, 1, 0), LDX(EBPF_DW, 2, 1, 8), EXIT };
	struct ebpf_region regions[] = { { memory, ADDR, 64, 64, EBPF_MAY_READ },
					 { memory + 64, ADDR + 32, 64, 0, EBPF_MAY_READ } };
	struct ebpf_params params = { .regions = regions, .count = 1, .arg = { ADDR } };
	struct ebpf_object *obj = both_load(insns, 2, NULL, 0);
	struct ebpf_object *other = both_load(longer, 3, NULL, 0);
	struct ebpf_result r;
	struct ebpf_run *run;
	uint64_t want;

	cr_assert(!ebpf_run_create(&run) && !ebpf_run_start(run, obj, &params));
	cr_assert_eq(ebpf_run_continue(run, 10, &r), EBPF_DONE);
	regions[0].host = memory + 128;
	params.count = 2;
	cr_assert_eq(ebpf_run_start(run, obj, &params), -EINVAL);
	params.count = 1;
	for (int i = 0; i < 3; i++) {
		cr_assert_not(ebpf_run_start(run, i == 1 ? other : obj, &params));
		cr_assert_eq(ebpf_run_continue(run, 10, &r), EBPF_DONE);
		memcpy(&want, memory + 128, 8);
		cr_assert_eq(r.value, want, "%d", i);
	}
	/* The same code again, and one thing about the region is another one */
	regions[0].rights = EBPF_MAY_WRITE;
	cr_assert_not(ebpf_run_start(run, obj, &params));
	cr_assert_eq(ebpf_run_continue(run, 10, &r), EBPF_RIGHTS);
	regions[0].rights = EBPF_MAY_READ;
	params.arg[0] = ADDR + 8;
	cr_assert_not(ebpf_run_start(run, obj, &params));
	cr_assert_eq(ebpf_run_continue(run, 10, &r), EBPF_DONE);
	regions[0].size = 8;
	cr_assert_not(ebpf_run_start(run, obj, &params));
	cr_assert_eq(ebpf_run_continue(run, 10, &r), EBPF_ADDRESS);
	ebpf_run_destroy(run);
	ebpf_object_destroy(obj);
	ebpf_object_destroy(other);
}

Test(bpf_memory, the_stack)
{
	cr_assert_eq(BOTH_VALUE(ST(EBPF_DW, 10, -8, 77), LDX(EBPF_DW, 0, 10, -8), EXIT), 77);
	cr_assert_eq(BOTH_VALUE(ST(EBPF_DW, 10, -512, 77), LDX(EBPF_DW, 0, 10, -512), EXIT), 77);
	/* by an address that the verifier cannot follow */
	cr_assert_eq(BOTH_VALUE(MOVX(1, 10), STX(EBPF_DW, 10, 1, -8), LDX(EBPF_DW, 2, 10, -8),
				ST(EBPF_DW, 2, -16, 5), LDX(EBPF_DW, 0, 10, -16), EXIT),
		     5);
	/* by an index that is known only when it runs */
	cr_assert_eq(BOTH_VALUE(ST(EBPF_DW, 10, -8, 8), ST(EBPF_DW, 10, -16, 3),
				LDX(EBPF_B, 2, 10, -8), MOVX(3, 10), ADD(3, -16),
				ALU64X(EBPF_ADD, 3, 2), ST(EBPF_DW, 3, 0, 5),
				LDX(EBPF_DW, 0, 10, -16), LDX(EBPF_DW, 1, 10, -8),
				ALU64K(EBPF_LSH, 1, 8), ALU64X(EBPF_OR, 0, 1), EXIT),
		     0x503);
	/* what nobody wrote is 0 */
	cr_assert_eq(BOTH_VALUE(MOVX(1, 10), STX(EBPF_DW, 10, 1, -8), LDX(EBPF_DW, 2, 10, -8),
				LDX(EBPF_DW, 0, 2, -256), EXIT),
		     0);
}

Test(bpf_memory, the_stack_is_clean_in_the_next_run)
{
	const struct ebpf_insn insns[] = { LDDW(3, EBPF_STACK_ADDR), LDX(EBPF_DW, 0, 3, 64),
					   ST(EBPF_DW, 3, 64, 9), EXIT };
	struct ebpf_params params = { 0 };
	struct ebpf_run *run;

	for (unsigned int flags = 0; flags < 2; flags++) {
		struct ebpf_object *obj = both_load(insns, 5, NULL, flags);
		struct ebpf_result r;

		cr_assert_not(ebpf_run_create(&run));
		for (int i = 0; i < 2; i++) {
			cr_assert_not(ebpf_run_start(run, obj, &params));
			cr_assert_eq(ebpf_run_continue(run, 10, &r), EBPF_DONE);
			cr_assert_eq(r.value, 0);
		}
		ebpf_run_destroy(run);
		ebpf_object_destroy(obj);
	}
}
