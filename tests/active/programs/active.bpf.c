/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that tests of Active RDMA send.
 */
#include <warp/active_bpf.h>

typedef unsigned long u64;

/* The first function: the one that runs when none is named */
u64 sum(const unsigned char *args, u64 len)
{
	u64 v = 0;

	for (u64 i = 0; i < len; i++)
		v += args[i];
	return v;
}

u64 echo(const void *args, u64 len)
{
	return (u64)warp_output(args, len);
}

/* The number at an address; it is changed; atomically */
u64 peek(const u64 *args, u64 len)
{
	return *(const u64 *)args[0];
}

u64 poke(const u64 *args, u64 len)
{
	*(u64 *)args[0] = args[1];
	return 0;
}

u64 add(const u64 *args, u64 len)
{
	return __sync_fetch_and_add((u64 *)args[0], args[1]);
}

u64 spin(const u64 *args, u64 len)
{
	volatile u64 n = 0;

	for (;;)
		n++;
	return n;
}

/* A number of steps of which each takes some instructions */
u64 steps(const u64 *args, u64 len)
{
	volatile u64 n = 0;

	while (n < args[0])
		n++;
	return n;
}

struct node {
	u64 value;
	struct node *next;
};

/* The sum of so many nodes of a list */
u64 walk(const u64 *args, u64 len)
{
	const struct node *at = (const struct node *)args[0];
	u64 v = 0;

	for (u64 i = 0; i < args[1] && at; i++, at = at->next)
		v += at->value;
	return v;
}

/* In front of the list at the beginning of region 0; 0: there is no memory */
u64 push(const u64 *args, u64 len)
{
	struct node *node = warp_alloc(0, sizeof(*node)), **first = warp_region(0);

	if (!node)
		return 0;
	node->value = args[0];
	node->next = *first;
	*first = node;
	return (u64)node;
}

/* How many nodes there were */
u64 clear(const u64 *args, u64 len)
{
	struct node **first = warp_region(0);
	u64 n = 0;

	while (*first) {
		struct node *node = *first;

		*first = node->next;
		if (warp_free(node))
			return ~0ul;
		n++;
	}
	return n;
}

u64 take(const u64 *args, u64 len)
{
	return (u64)warp_alloc(args[0], args[1]);
}

u64 give(const u64 *args, u64 len)
{
	return (u64)warp_free((void *)args[0]);
}

u64 where(const u64 *args, u64 len)
{
	return args[1] ? warp_region_size(args[0]) : (u64)warp_region(args[0]);
}

/* What the helpers for memory do, bit by bit; 127 when all is right */
u64 helpers(const void *args, u64 len)
{
	unsigned char a[32], b[32];
	u64 good = 0;

	warp_fill(a, 0x155, sizeof(a));
	good |= a[0] == 0x55 && a[31] == 0x55;
	a[7] = 9;
	warp_copy(b, a, sizeof(b));
	good |= (u64)(warp_compare(a, b, sizeof(a)) == 0) << 1;
	b[20] = 0x56;
	good |= (u64)(warp_compare(a, b, sizeof(a)) < 0) << 2;
	good |= (u64)(warp_compare(b, a, sizeof(a)) > 0) << 3;
	good |= (u64)(warp_find(a, 9, sizeof(a)) == 7) << 4;
	good |= (u64)(warp_find(a, 10, sizeof(a)) == sizeof(a)) << 5;
	warp_copy(a + 1, a, 31); /* overlaps */
	good |= (u64)(a[8] == 9 && a[7] == 0x55) << 6;
	return good;
}

/* A helper's access: which of them, address, length */
u64 touch(const u64 *args, u64 len)
{
	switch (args[0]) {
	case 0:
		return (u64)warp_output((const void *)args[1], args[2]);
	case 1:
		return (u64)warp_fill((void *)args[1], 0, args[2]);
	case 2:
		return (u64)warp_copy((void *)args[1], args, args[2]);
	case 3:
		return (u64)warp_compare(args, (const void *)args[1], args[2]);
	default:
		return warp_find((const void *)args[1], 0, args[2]);
	}
}

/* Takes the lock of a region and ends with it, or gives it back: what warp_lock() said, plus 10 */
u64 seize(const u64 *args, u64 len)
{
	long taken = warp_lock(args[0]);

	if (taken >= 0 && args[1] && warp_unlock(args[0]))
		return 0;
	return (u64)(taken + 10);
}

/* The same, and goes on until the fuel or the time is over */
u64 seize_for_ever(const u64 *args, u64 len)
{
	if (warp_lock(args[0]) < 0)
		return 0;
	while (warp_region(args[0]))
		;
	return 1;
}

/* How often it was to be called again; negative: it failed */
u64 sync_all(const u64 *args, u64 len)
{
	u64 again = 0;
	long ret;

	while ((ret = warp_sync(args[0])) > 0)
		again++;
	return ret ? (u64)ret : again;
}

/* As many pieces of 1,000 bytes as there is room for */
u64 flood(const u64 *args, u64 len)
{
	char piece[100];
	u64 n = 0;

	warp_fill(piece, 'x', sizeof(piece));
	while (warp_output(piece, sizeof(piece)) > 0)
		n++;
	return n;
}
