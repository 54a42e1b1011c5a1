/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pools of objects and the table of descriptors.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>

#include "preload/table/fdtab.h"
#include "preload/table/pool.h"

struct thing {
	struct fdent ent;
	int released, ended;
	void *link;
};

static struct pool pool = POOL_INIT(struct thing, link, 4);

static void release(struct fdent *ent)
{
	((struct thing *)(void *)ent)->released++;
}

static void end(struct fdent *ent)
{
	((struct thing *)(void *)ent)->ended++;
}

static const struct fdent_ops ops = { .release = release, .end = end };

static struct thing *thing(enum fd_kind kind)
{
	struct thing *t = pool_get(&pool);

	*t = (struct thing){ .ent = { 1, kind, 1, 0, &ops } };
	return t;
}

Test(pool, objects_are_apart_and_known)
{
	struct thing *t[200];
	uintptr_t other;

	for (int i = 0; i < 200; i++) {
		t[i] = pool_get(&pool);
		cr_assert_not_null(t[i]);
		t[i]->released = i;
	}
	for (int i = 0; i < 200; i++) {
		cr_expect_eq(t[i]->released, i);
		cr_expect(pool_owns(&pool, t[i]));
		cr_expect_not(pool_owns(&pool, (char *)t[i] + 1));
	}
	cr_expect_not(pool_owns(&pool, &other));
	cr_expect_not(pool_owns(&pool, NULL));
}

Test(pool, memory_comes_back)
{
	void *first = pool_get(&pool);

	pool_put(&pool, first);
	cr_expect_eq(pool_get(&pool), first);
}

Test(fdtab, entries_and_kinds)
{
	struct thing *t = thing(FD_SOCK);

	cr_expect_not(fdtab_is_ours(5000));
	cr_assert_eq(fdtab_set(5000, &t->ent), 0);
	cr_expect(fdtab_is_ours(5000));
	cr_expect_not(fdtab_is_ours(5001));
	cr_expect_null(fdtab_get(5000, FD_EPOLL));
	cr_expect_eq(fdtab_get(5000, FD_SOCK), &t->ent);
	cr_expect_eq(t->ent.refs, 2u);
	fdtab_put(&t->ent);
	cr_expect_eq(fdtab_take(5000, NULL, NULL), &t->ent);
	cr_expect_null(fdtab_take(5000, NULL, NULL));
	cr_expect_not(fdtab_is_ours(5000));
	fdtab_put(&t->ent);
	cr_expect_eq(t->released, 1);
}

Test(fdtab, what_stood_there_goes)
{
	struct thing *a = thing(FD_SOCK), *b = thing(FD_SOCK);

	cr_assert_eq(fdtab_set(7, &a->ent), 0);
	cr_assert_eq(fdtab_set(7, &b->ent), 0);
	cr_expect_eq(a->released, 1);
	cr_expect_null(fdtab_take(7, &a->ent, NULL));
	cr_expect_eq(fdtab_take(7, &b->ent, NULL), &b->ent);
}

Test(fdtab, numbers_out_of_range)
{
	struct thing *t = thing(FD_SOCK);

	cr_expect_not(fdtab_is_ours(-1));
	cr_expect_not(fdtab_is_ours(INT32_MAX));
	cr_expect_eq(fdtab_set(-1, &t->ent), -ENOMEM);
	cr_expect_eq(fdtab_set(FDTAB_MAX, &t->ent), -ENOMEM);
	cr_expect_eq(fdtab_set(FDTAB_MAX - 1, &t->ent), 0);
	cr_expect_null(fdtab_take(-1, NULL, NULL));
}

static void count(int fd, struct fdent *ent, void *ctx)
{
	*(int *)ctx += fd;
}

Test(fdtab, each)
{
	struct thing *a = thing(FD_SOCK), *b = thing(FD_SOCK);
	int sum = 0;

	fdtab_set(3, &a->ent);
	fdtab_set(70000, &b->ent);
	fdtab_each(count, &sum);
	cr_expect_eq(sum, 70003);
}

/* An entry whose last user has gone is not found again, even though its pointer stands there */
Test(fdtab, the_dead_stay_dead)
{
	struct thing *t = thing(FD_SOCK);

	fdtab_set(9, &t->ent);
	fdtab_put(fdtab_take(9, NULL, NULL));
	cr_expect_eq(t->released, 1);
	cr_expect_null(fdtab_get(9, FD_SOCK));
}

/* Two numbers of one file: the last that goes ends it, whoever still works on it */
Test(fdtab, numbers_are_counted)
{
	struct thing *t = thing(FD_SOCK);
	bool last;

	fdtab_set(11, &t->ent);
	cr_assert(fdtab_number_get(&t->ent));
	fdtab_set(12, &t->ent);
	cr_expect_eq(fdtab_take(11, NULL, &last), &t->ent);
	cr_expect_not(last);
	cr_expect_eq(fdtab_take(12, NULL, &last), &t->ent);
	cr_expect(last);
	cr_expect_not(fdtab_number_get(&t->ent), "the last one has gone");
	fdtab_put(&t->ent);
	cr_expect_eq(t->released, 0);
	fdtab_put(&t->ent);
	cr_expect_eq(t->released, 1);
	cr_expect_eq(t->ended, 0, "that is for who takes it");
}

Test(fdtab, replaced_by_dup2)
{
	struct thing *a = thing(FD_SOCK), *b = thing(FD_SOCK);

	fdtab_set(21, &a->ent);
	fdtab_set(22, &b->ent);
	cr_assert(fdtab_number_get(&a->ent));
	cr_expect_eq(fdtab_replace(22, &a->ent), 0);
	cr_expect_eq(b->ended, 1);
	cr_expect_eq(b->released, 1);
	cr_expect_eq(fdtab_replace(22, NULL), 0);
	cr_expect_eq(a->ended, 0);
	cr_expect_eq(fdtab_replace(21, NULL), 0);
	cr_expect_eq(a->ended, 1);
	cr_expect_eq(fdtab_replace(23, NULL), 0);
	cr_expect_not(fdtab_is_ours(22));
}

/* A number that never came into the table is the last one, because the others went meanwhile */
Test(fdtab, a_number_that_failed)
{
	struct thing *t = thing(FD_SOCK);

	fdtab_set(31, &t->ent);
	cr_assert(fdtab_number_get(&t->ent));
	fdtab_put(fdtab_take(31, NULL, NULL));
	cr_expect_eq(t->ended, 0);
	fdtab_number_put(&t->ent);
	cr_expect_eq(t->ended, 1);
	cr_expect_eq(t->released, 1);
}

/* The bit is a hint: it is there with the entry, and stays behind it */
Test(fdtab, a_number_that_had_an_entry_has_its_bit)
{
	static const int numbers[] = { 0, 63, 64, 1000, 1024, (int)FDTAB_MAX - 1 };
	struct thing *t;

	for (unsigned int i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		cr_expect_eq(fdtab_had_bit(numbers[i]) & 1, 0, "%d", numbers[i]);
		t = thing(FD_SOCK);
		cr_assert_eq(fdtab_set(numbers[i], &t->ent), 0);
		cr_expect_eq(fdtab_had_bit(numbers[i]) & 1, 1, "%d", numbers[i]);
		fdtab_put(fdtab_take(numbers[i], NULL, NULL));
		cr_expect_eq(fdtab_had_bit(numbers[i]) & 1, 1, "%d, when it has gone", numbers[i]);
	}
	cr_expect_eq(fdtab_had_bit(62) & 1, 0);
	fdtab_had_bit(-1);
	fdtab_had_bit(INT32_MIN);
}
