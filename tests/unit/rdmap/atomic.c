/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Atomic operations against a model that goes bit by bit, as RFC 7306 section 5.1 tells them.
 */
#include "rdmap/atomic.h"

#include <criterion/criterion.h>
#include <pthread.h>

static __u64 model_add(__u64 old, __u64 addend, __u64 mask)
{
	__u64 sum = 0;
	unsigned int carry = 0;

	for (unsigned int bit = 0; bit < 64; bit++) {
		unsigned int n = (old >> bit & 1) + (addend >> bit & 1) + carry;

		sum |= (__u64)(n & 1) << bit;
		carry = mask >> bit & 1 ? 0 : n >> 1;
	}
	return sum;
}

static __u64 model_swap(__u64 old, const struct rdmap_inbound *in)
{
	__u64 new = 0;

	for (unsigned int bit = 0; bit < 64; bit++) {
		__u64 one = 1ull << bit;

		if ((in->op.compare_mask & one) && (old & one) != (in->op.compare & one))
			return old;
		new |= (in->op.mask & one ? in->op.data : old) & one;
	}
	return new;
}

/* xorshift64*, so that a failure comes again */
static __u64 random_state;

static __u64 next_random(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 2685821657736338717ull;
}

/* Few, half or nearly all bits set, or one of the ends */
static __u64 next_mask(void)
{
	switch (next_random() % 6) {
	case 0:
		return 0;
	case 1:
		return ~0ull;
	case 2:
		return next_random() & next_random() & next_random();
	case 3:
		return next_random() | next_random() | next_random();
	case 4:
		return 1ull << next_random() % 64;
	default:
		return next_random();
	}
}

Test(rdmap_atomic, known_examples)
{
	static const struct {
		__u64 old, addend, mask, want;
	} rows[] = {
		{ 1, 2, 0, 3 },
		{ ~0ull, 1, 0, 0 },
		{ 0xFFFFFFFF, 1, 0x80000000, 0 },
		{ 0xFFFFFFFF, 1, 0, 0x100000000 },
		{ 0x00FF00FF00FF00FF, 0x0001000100010001, 0x0080008000800080, 0x0000000000000000 },
		{ 0x7FFFFFFFFFFFFFFF, 1, 0x8000000000000000, 0x8000000000000000 },
		{ 0x8000000000000000, 0x8000000000000000, 0x8000000000000000, 0 },
		{ 5, 3, ~0ull, 6 }, /* fields of one bit */
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rdmap_inbound in = { .aop = RDMAP_FETCH_ADD,
					    .op = { .data = rows[i].addend,
						    .mask = rows[i].mask } };
		__u64 number = rows[i].old;

		cr_expect_eq(rdmap_atomic_execute(&in, (__u8 *)&number), rows[i].old, "%u", i);
		cr_expect_eq(number, rows[i].want, "%u: %llx", i, number);
	}
}

Test(rdmap_atomic, fetch_add_like_the_model)
{
	random_state = 20060913;
	for (unsigned int i = 0; i < 100000; i++) {
		struct rdmap_inbound in = { .aop = RDMAP_FETCH_ADD,
					    .op = { .data = next_mask(), .mask = next_mask() } };
		__u64 old = next_mask(), number = old;

		cr_assert_eq(rdmap_atomic_execute(&in, (__u8 *)&number), old);
		cr_assert_eq(number, model_add(old, in.op.data, in.op.mask),
			     "%llx + %llx mask %llx", old, in.op.data, in.op.mask);
	}
}

Test(rdmap_atomic, compare_and_swap_like_the_model)
{
	unsigned int swapped = 0;

	random_state = 19991231;
	for (unsigned int i = 0; i < 100000; i++) {
		__u64 old = next_mask(), number = old;
		struct rdmap_inbound in = { .aop = RDMAP_CMP_SWAP,
					    .op = { .data = next_mask(),
						    .mask = next_mask(),
						    .compare_mask = next_mask() } };

		/* two in three alike where it matters, and different where it does not */
		in.op.compare = i % 3 ? (old & in.op.compare_mask) |
						(next_random() & ~in.op.compare_mask)
				      : next_mask();
		cr_assert_eq(rdmap_atomic_execute(&in, (__u8 *)&number), old);
		cr_assert_eq(number, model_swap(old, &in), "%u", i);
		swapped += number != old;
	}
	cr_assert_gt(swapped, 30000);
	cr_assert_lt(swapped, 70000);
}

enum { ADDERS = 4, ADDS = 2000000 };

static pthread_barrier_t start;

/* Fields of 16 bits, of which the second one overflows again and again */
static void *adder(void *number)
{
	struct rdmap_inbound in = { .aop = RDMAP_FETCH_ADD,
				    .op = { .data = 0x0000000110000001,
					    .mask = 0x0000000080008000 } };

	pthread_barrier_wait(&start);
	for (unsigned int i = 0; i < ADDS; i++)
		rdmap_atomic_execute(&in, number);
	return NULL;
}

Test(rdmap_atomic, threads_lose_nothing)
{
	pthread_t threads[ADDERS];
	__u64 number = 0, n = ADDERS * ADDS;

	pthread_barrier_init(&start, NULL, ADDERS);
	for (unsigned int i = 0; i < ADDERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, adder, &number), 0);
	for (unsigned int i = 0; i < ADDERS; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(number & 0xFFFF, n & 0xFFFF);
	cr_assert_eq(number >> 16 & 0xFFFF, n * 0x1000 & 0xFFFF);
	cr_assert_eq(number >> 32, n);
}

Test(rdmap_atomic, known_codes)
{
	for (unsigned int aop = 0; aop < 16; aop++)
		cr_expect_eq(rdmap_aop_known(aop), aop == 0 || aop == 2);
}
