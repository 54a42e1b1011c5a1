/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The STag table: who may reach which octets, and that removal loses nobody.
 */
#include "ddp/stag.h"

#include <errno.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "base/bits.h"

enum { PD = 7, LW = DDP_LOCAL_WRITE, RW = DDP_REMOTE_WRITE, RR = DDP_REMOTE_READ };

static struct ddp_stag_table table;

static void setup(void)
{
	cr_assert_eq(ddp_stag_table_init(&table, 4), 0);
}

static void teardown(void)
{
	ddp_stag_table_uninit(&table);
}

TestSuite(stag, .init = setup, .fini = teardown);

Test(stag, capacity)
{
	static const struct {
		__u32 capacity, size;
		int want;
	} rows[] = { { 0, 16, 0 },
		     { 1, 16, 0 },
		     { 8, 16, 0 },
		     { 9, 32, 0 },
		     { 1000, 2048, 0 },
		     { 1u << 20, 1u << 21, 0 },
		     { (1u << 23) + 1, 0, -EINVAL },
		     { UINT32_MAX, 0, -EINVAL } };

	for (size_t i = 0; i < base_array_size(rows); i++) {
		struct ddp_stag_table t = { 0 };

		cr_expect_eq(ddp_stag_table_init(&t, rows[i].capacity), rows[i].want, "row %zu", i);
		cr_expect_eq(t.size, rows[i].size, "row %zu: size %u", i, t.size);
		ddp_stag_table_uninit(&t);
	}
}

Test(stag, only_the_exact_name_finds_the_region)
{
	struct ddp_region r = { .len = 1 };

	cr_assert_eq(ddp_stag_insert(&table, &r), 0);
	cr_assert(r.valid);
	cr_assert_geq(r.stag, 256, "index 0 was given");
	cr_expect_eq(ddp_stag_lookup(&table, r.stag), &r);
	for (int bit = 0; bit < 32; bit++)
		cr_expect_null(ddp_stag_lookup(&table, r.stag ^ 1u << bit), "bit %d", bit);
	ddp_stag_remove(&table, &r);
	cr_expect_null(ddp_stag_lookup(&table, r.stag));
	cr_expect_eq(table.used, 0);
	ddp_stag_remove(&table, &r);
	cr_expect_eq(table.used, 0, "a second removal counts");
}

#define TOP UINT64_MAX

Test(stag, check)
{
	static __u8 memory[4096];
	static const struct {
		__u64 base, size, to, len;
		unsigned int access;
		__u32 pd;
		enum ddp_stag_error want;
		__u64 at; /* offset into memory */
	} rows[] = {
		/* in the middle, whole, first and last octet */
		{ 1000, 100, 1040, 10, RW, PD, DDP_STAG_OK, 40 },
		{ 1000, 100, 1000, 100, RW, PD, DDP_STAG_OK, 0 },
		{ 1000, 100, 1000, 1, RW, PD, DDP_STAG_OK, 0 },
		{ 1000, 100, 1099, 1, RW, PD, DDP_STAG_OK, 99 },
		/* one octet too many at either end */
		{ 1000, 100, 999, 1, RW, PD, DDP_STAG_BOUNDS, 0 },
		{ 1000, 100, 999, 101, RW, PD, DDP_STAG_BOUNDS, 0 },
		{ 1000, 100, 1000, 101, RW, PD, DDP_STAG_BOUNDS, 0 },
		{ 1000, 100, 1001, 100, RW, PD, DDP_STAG_BOUNDS, 0 },
		{ 1000, 100, 1099, 2, RW, PD, DDP_STAG_BOUNDS, 0 },
		{ 1000, 100, 1100, 1, RW, PD, DDP_STAG_BOUNDS, 0 },
		{ 1000, 100, 0, 1, RW, PD, DDP_STAG_BOUNDS, 0 },
		{ 1000, 100, TOP, 1, RW, PD, DDP_STAG_BOUNDS, 0 },
		/* beyond 2^64 */
		{ 1000, 100, TOP, 2, RW, PD, DDP_STAG_WRAP, 0 },
		{ 1000, 100, 1000, TOP - 998, RW, PD, DDP_STAG_WRAP, 0 },
		{ 1000, 100, 1000, TOP - 999, RW, PD, DDP_STAG_BOUNDS, 0 },
		{ 1000, 100, 1000, TOP, RW, PD, DDP_STAG_WRAP, 0 },
		/* a region that ends exactly at 2^64 */
		{ TOP - 99, 100, TOP - 99, 100, RW, PD, DDP_STAG_OK, 0 },
		{ TOP - 99, 100, TOP, 1, RW, PD, DDP_STAG_OK, 99 },
		{ TOP - 99, 100, TOP, 2, RW, PD, DDP_STAG_WRAP, 0 },
		{ TOP - 99, 100, TOP - 100, 101, RW, PD, DDP_STAG_BOUNDS, 0 },
		{ TOP - 99, 100, TOP - 99, 101, RW, PD, DDP_STAG_WRAP, 0 },
		/* one that begins at 0 */
		{ 0, 100, 0, 100, RW, PD, DDP_STAG_OK, 0 },
		{ 0, 100, 0, 101, RW, PD, DDP_STAG_BOUNDS, 0 },
		/* rights: all that are asked for */
		{ 1000, 100, 1000, 1, RR, PD, DDP_STAG_ACCESS, 0 },
		{ 1000, 100, 1000, 1, LW, PD, DDP_STAG_OK, 0 },
		{ 1000, 100, 1000, 1, LW | RW, PD, DDP_STAG_OK, 0 },
		{ 1000, 100, 1000, 1, RR | RW, PD, DDP_STAG_ACCESS, 0 },
		{ 1000, 100, 1000, 1, DDP_REMOTE_ATOMIC, PD, DDP_STAG_ACCESS, 0 },
		/* which of several faults is told: stream, access, wrap, bounds */
		{ 1000, 100, 1000, 1, RW, PD + 1, DDP_STAG_STREAM, 0 },
		{ 1000, 100, TOP, 2, RR, PD + 1, DDP_STAG_STREAM, 0 },
		{ 1000, 100, TOP, 2, RR, PD, DDP_STAG_ACCESS, 0 },
		{ 1000, 100, 2000, 1, RR, PD, DDP_STAG_ACCESS, 0 },
	};

	for (size_t i = 0; i < base_array_size(rows); i++) {
		struct ddp_region r = { .to = rows[i].base,
					.len = rows[i].size,
					.addr = memory,
					.pd = PD,
					.access = LW | RW };
		__u8 *addr = NULL;
		enum ddp_stag_error e;

		cr_assert_eq(ddp_stag_insert(&table, &r), 0);
		e = ddp_stag_check(&table, r.stag, rows[i].pd, rows[i].to, rows[i].len,
				   rows[i].access, &addr);
		cr_expect_eq(e, rows[i].want, "row %zu: %d", i, e);
		cr_expect_eq(addr, rows[i].want ? NULL : memory + rows[i].at, "row %zu", i);
		ddp_stag_remove(&table, &r);
	}
}

Test(stag, a_wrong_key_is_told_before_anything_else)
{
	struct ddp_region r = { .to = 0, .len = 10, .pd = PD, .access = RW };
	__u8 *addr;

	cr_assert_eq(ddp_stag_insert(&table, &r), 0);
	cr_expect_eq(ddp_stag_check(&table, r.stag ^ 1, PD, 0, 1, RW, &addr), DDP_STAG_INVALID);
	cr_expect_eq(ddp_stag_check(&table, r.stag ^ 0x80, PD + 1, 99, 1, RR, &addr),
		     DDP_STAG_INVALID);
	cr_expect_eq(ddp_stag_check(&table, 0, PD, 0, 1, RW, &addr), DDP_STAG_INVALID);
}

Test(stag, invalidate)
{
	static const struct {
		__u32 pd;
		bool shared;
		enum ddp_stag_error want;
	} rows[] = { { PD, false, DDP_STAG_OK },
		     { PD + 1, false, DDP_STAG_STREAM },
		     { PD, true, DDP_STAG_STREAM } };
	__u8 *addr;

	for (size_t i = 0; i < base_array_size(rows); i++) {
		struct ddp_region r = { .len = 8, .pd = PD, .access = RW };
		bool gone = rows[i].want == DDP_STAG_OK;

		r.shared = rows[i].shared;
		cr_assert_eq(ddp_stag_insert(&table, &r), 0);
		cr_expect_eq(ddp_stag_invalidate(&table, r.stag ^ 1, PD), DDP_STAG_INVALID);
		cr_expect_eq(ddp_stag_invalidate(&table, r.stag, rows[i].pd), rows[i].want,
			     "row %zu", i);
		cr_expect_eq(r.valid, !gone, "row %zu", i);
		cr_expect_eq(ddp_stag_check(&table, r.stag, PD, 0, 8, RW, &addr),
			     gone ? DDP_STAG_INVALID : DDP_STAG_OK, "row %zu", i);
		cr_expect_eq(ddp_stag_lookup(&table, r.stag), gone ? NULL : &r, "row %zu", i);
		if (gone)
			cr_expect_eq(ddp_stag_invalidate(&table, r.stag, PD), DDP_STAG_INVALID);
		ddp_stag_remove(&table, &r);
		cr_expect_eq(table.used, 0, "row %zu: an invalid region stays", i);
	}
}

Test(stag, faults)
{
	static const struct {
		enum ddp_stag_error e;
		enum iwarp_fault tagged, rdmap;
	} rows[] = {
		{ DDP_STAG_OK, IWARP_OK, IWARP_OK },
		{ DDP_STAG_INVALID, IWARP_FAULT(1, 1, 0), IWARP_FAULT(0, 1, 0) },
		{ DDP_STAG_STREAM, IWARP_FAULT(1, 1, 2), IWARP_FAULT(0, 1, 3) },
		{ DDP_STAG_ACCESS, IWARP_FAULT(1, 1, 0), IWARP_FAULT(0, 1, 2) },
		{ DDP_STAG_WRAP, IWARP_FAULT(1, 1, 3), IWARP_FAULT(0, 1, 4) },
		{ DDP_STAG_BOUNDS, IWARP_FAULT(1, 1, 1), IWARP_FAULT(0, 1, 1) },
	};

	for (size_t i = 0; i < base_array_size(rows); i++) {
		cr_expect_eq(ddp_stag_fault_tagged(rows[i].e), rows[i].tagged, "row %zu", i);
		cr_expect_eq(ddp_stag_fault_rdmap(rows[i].e), rows[i].rdmap, "row %zu", i);
	}
}

Test(stag, half_of_the_names_is_all)
{
	struct ddp_region r = { .len = 1 };
	__u32 size = table.size;

	table.used = 1u << 23;
	cr_expect_eq(ddp_stag_insert(&table, &r), -ENOSPC);
	cr_expect_eq(table.size, size);
	table.used = 0;
}

/* Regions with chosen STags: three whose homes are the last slots, so that the run wraps around */
Test(stag, removal_closes_a_run_across_the_end)
{
	static const __u32 homes[] = { 14, 15, 15, 14, 0, 15, 1 };
	struct ddp_region r[base_array_size(homes)];

	for (size_t gone = 0; gone < base_array_size(homes); gone++) {
		memset(table.slots, 0, table.size * sizeof(*table.slots));
		for (__u32 i = 0; i < base_array_size(homes); i++) {
			__u32 slot = homes[i];

			r[i] = (struct ddp_region){ .valid = true,
						    .stag = (homes[i] + 16 * (i + 1)) << 8 };
			while (table.slots[slot])
				slot = (slot + 1) % table.size;
			table.slots[slot] = &r[i];
		}
		table.used = base_array_size(homes);
		ddp_stag_remove(&table, &r[gone]);
		for (size_t i = 0; i < base_array_size(homes); i++)
			cr_expect_eq(ddp_stag_lookup(&table, r[i].stag), i == gone ? NULL : &r[i],
				     "removed %zu, looked for %zu", gone, i);
	}
}

/* --- against a model that is an array ------------------------------------------------------- */

#define MODEL 600

struct model {
	struct ddp_region r[MODEL];
	bool in[MODEL], valid[MODEL];
	unsigned int count;
};

static void model_step(struct model *m, unsigned int op, size_t i)
{
	struct ddp_region *r = &m->r[i];

	if (!m->in[i] && op < 5) {
		*r = (struct ddp_region){ .to = i, .len = 1, .pd = PD, .access = RW };
		cr_assert_eq(ddp_stag_insert(&table, r), 0);
		m->in[i] = m->valid[i] = true;
		m->count++;
	} else if (m->in[i] && op < 4) {
		ddp_stag_remove(&table, r);
		m->in[i] = m->valid[i] = false;
		m->count--;
	} else if (m->in[i] && op == 4) {
		cr_assert_eq(ddp_stag_invalidate(&table, r->stag, PD),
			     m->valid[i] ? DDP_STAG_OK : DDP_STAG_INVALID);
		m->valid[i] = false;
	} else if (r->stag) {
		cr_assert_eq(ddp_stag_lookup(&table, r->stag), m->valid[i] ? r : NULL);
	}
}

static void model_compare(const struct model *m)
{
	cr_assert_eq(table.used, m->count);
	cr_assert_leq(2 * table.used, table.size);
	for (size_t i = 0; i < MODEL; i++) {
		if (m->in[i])
			cr_assert_eq(ddp_stag_lookup(&table, m->r[i].stag),
				     m->valid[i] ? &m->r[i] : NULL, "region %zu", i);
	}
}

Test(stag, a_hundred_thousand_random_steps, .timeout = 30)
{
	struct model *m = calloc(1, sizeof(*m));

	cr_assert_not_null(m);
	srand(1);
	for (int step = 0; step < 100000; step++) {
		model_step(m, (unsigned int)rand() % 8, (size_t)rand() % MODEL);
		if (step % 1000 == 0)
			model_compare(m);
	}
	model_compare(m);
	free(m);
}
