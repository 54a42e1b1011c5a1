/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What clang makes of C, for the loader's tests: constants, data, sections of their own, pointers
 * in data, calls between functions, helpers by id and by name.
 */
typedef unsigned long u64;
typedef unsigned int u32;
typedef unsigned char u8;

static u64 (*const by_id)(u64, u64, u64, u64, u64) = (void *)11;
extern u64 sum(u64 a, u64 b, u64 c, u64 d, u64 e);
extern long output(const void *from, u64 len);

static const u32 table[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };
const char greeting[] = "hello";
static u64 counter = 40;
static u64 zeroed[4];
u64 shared = 7;
static u64 *volatile pointer = &shared;
static const char *const names[2] = { "ab", greeting };
static u64 in_section __attribute__((section(".data.more"), used)) = 9;

u64 constants(u64 i)
{
	return table[i & 7] + (u8)greeting[(i >> 3) % 5];
}

/* Each run has its own data */
u64 data(u64 add)
{
	counter += add;
	zeroed[2] += counter;
	return zeroed[2] + shared + in_section;
}

u64 pointers(u64 i)
{
	return *pointer * 1000 + (u8)names[i & 1][0];
}

static __attribute__((noinline)) u64 twice(u64 v)
{
	return v * 2;
}

static __attribute__((noinline)) void store_it(u64 *to, u64 v)
{
	*to = twice(v) + 1;
}

__attribute__((noinline)) u64 shared_function(u64 v)
{
	return twice(v) + 100;
}

u64 calls(u64 v)
{
	u64 local = 1;

	store_it(&local, v);
	return local + shared_function(v);
}

__attribute__((section("other"))) u64 another_section(u64 v)
{
	return shared_function(v) + 1;
}

u64 helpers(u64 v)
{
	return by_id(v, 1, 1, 1, 1) * 1000 + sum(v, 0, 0, 0, 0);
}

u64 says_hello(void)
{
	return output(greeting, sizeof(greeting));
}

struct node {
	struct node *next;
	u64 value;
};

u64 walk(const struct node *at)
{
	u64 sum = 0;

	for (; at; at = at->next)
		sum += at->value;
	return sum;
}

/* An array on the stack, addressed by an index that is known only when it runs */
u64 stack_array(u64 n)
{
	volatile u64 counts[8] = { 0 };

	for (u64 i = 0; i < n; i++)
		counts[i * 5 % 8] += i;
	return counts[3] * 1000 + counts[5];
}
