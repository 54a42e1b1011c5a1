/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exactly once: every kind of fault on both sides, and each request and each reply still runs
 * its handler one time.
 */
#include "pair.h"

#include <errno.h>

#define MESSAGES 3000

static unsigned char ran[MESSAGES], answered[MESSAGES];
static int returned;

static void on_request(void *token, void *buf, int nbytes, int i)
{
	ran[i]++;
	cr_assert_eq(((unsigned char *)buf)[0], (unsigned char)i);
	cr_assert_eq(((unsigned char *)buf)[nbytes - 1], (unsigned char)i);
	if (i % 3 == 0)
		AM_ReplyXfer1(token, (uintptr_t)(i % 512) * 8000, 2, buf, nbytes, i);
	else
		AM_ReplyI1(token, 2, buf, nbytes, i);
}

static void on_reply(void *token, void *buf, int nbytes, int i)
{
	answered[i]++;
	cr_assert_eq(((unsigned char *)buf)[nbytes - 1], (unsigned char)i);
}

static void on_returned(int status, op_t opcode, void *token)
{
	returned++;
}

static int sum(const unsigned char *v, int value)
{
	int i, n = 0;

	for (i = 0; i < MESSAGES; i++)
		n += v[i] == value;
	return n;
}

/* Both ends are in this process: a call that waits would wait for ever. */
static int transfer(struct pair *p, unsigned char *data, int n, int i)
{
	int ret;

	do {
		pair_poll(p);
		ret = AM_RequestXferAsync1(p->ep[0], 0, (uintptr_t)(i % 512) * 8000, 1, data, n, i);
	} while (ret == AM_ERR_IN_USE);
	return ret;
}

static void run(const char *drop, const char *duplicate, const char *reorder, const char *delay,
		const char *corrupt, int size)
{
	static unsigned char data[8000];
	struct pair p;
	int i;

	setenv("FAULT_RATE", drop, 1);
	setenv("FAULT_DUPLICATE", duplicate, 1);
	setenv("AMUDP_FAULT_REORDER", reorder, 1);
	setenv("FAULT_DELAY", delay, 1);
	setenv("FAULT_CORRUPT", corrupt, 1);
	setenv("AMUDP_REQUESTTIMEOUT_INITIAL", "2000", 1);
	pair_open(&p, AM_SEQ);
	for (i = 0; i < 2; i++) {
		AM_SetHandler(p.ep[i], 0, on_returned);
		AM_SetHandler(p.ep[i], 1, on_request);
		AM_SetHandler(p.ep[i], 2, on_reply);
	}
	pair_map(&p, 16);
	for (i = 0; i < MESSAGES; i++) {
		int n = size ? size : 1 + i % 700;

		memset(data, i, (size_t)n);
		while (p.ep[0]->outstanding >= 16)
			pair_poll(&p);
		if (!size && i % 2)
			cr_assert_eq(AM_RequestI1(p.ep[0], 0, 1, data, n, i), AM_OK);
		else
			cr_assert_eq(transfer(&p, data, n, i), AM_OK);
	}
	pair_until(&p, p.ep[0]->outstanding == 0);
	for (i = 0; i < 2000; i++)
		pair_poll(&p);
	cr_assert_eq(sum(ran, 1), MESSAGES, "%d requests ran once", sum(ran, 1));
	cr_assert_eq(sum(answered, 1), MESSAGES, "%d replies ran once", sum(answered, 1));
	cr_assert_eq(returned, 0);
	pair_close(&p);
}

Test(faults, none, .timeout = 60)
{
	run("0", "0", "0", "0", "0", 0);
}

Test(faults, loss, .timeout = 60)
{
	run("0.3", "0", "0", "0", "0", 0);
}

Test(faults, duplicates_and_reordering, .timeout = 60)
{
	run("0", "0.3", "0.3", "0", "0", 0);
}

Test(faults, delay_and_corruption, .timeout = 60)
{
	run("0", "0", "0", "0.1", "0.1", 0);
}

Test(faults, all_at_once, .timeout = 60)
{
	run("0.1", "0.1", "0.1", "0.1", "0.1", 0);
}

Test(faults, fragments_on_a_lossy_path, .timeout = 60)
{
	setenv("AMUDP_MAX_PACKET", "1400", 1);
	run("0.05", "0.05", "0.05", "0", "0.02", 7000);
}

Test(faults, same_seed_same_faults)
{
	struct am_fault a, b, c;

	setenv("FAULT_RATE", "0.5", 1);
	setenv("FAULT_SEED", "7", 1);
	am_fault_init(&a, 3);
	am_fault_init(&b, 3);
	am_fault_init(&c, 4);
	cr_assert_neq(a.state, c.state);
	setenv("FAULT_SEED", "8", 1);
	am_fault_init(&c, 3);
	cr_assert(a.on);
	cr_assert_eq(a.state, b.state);
	cr_assert_neq(a.state, c.state);
	cr_assert_eq(a.drop, 1u << 31);
}
