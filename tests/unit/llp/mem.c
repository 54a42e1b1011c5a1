/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pair in memory: what passes, what the tampering does to it, and what its descriptor says.
 */
#include "tests/llp_mem.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

static struct llp *a, *b;

static void pair_open(void)
{
	cr_assert_eq(llp_mem_pair(16, &a, &b), 0);
}

static void pair_close(void)
{
	llp_mem_destroy(a, b);
}

TestSuite(llp_mem, .init = pair_open, .fini = pair_close);

static ssize_t put(struct llp *l, const char *s)
{
	struct iovec iov = { (void *)s, strlen(s) };

	return l->ops->send(l, &iov, 1, 0);
}

static ssize_t get(struct llp *l, char *buf, size_t room)
{
	struct iovec iov = { buf, room };
	ssize_t n;

	memset(buf, 0, room);
	n = l->ops->recv(l, &iov, 1);
	return n;
}

static bool readable(struct llp *l)
{
	struct pollfd p = { .fd = l->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

Test(llp_mem, octets_pass_both_ways_in_order)
{
	char buf[32];

	cr_assert_eq(put(a, "one"), 3);
	cr_assert_eq(put(a, "two"), 3);
	cr_assert_eq(put(b, "back"), 4);
	cr_assert_eq(get(b, buf, 5), 5);
	cr_assert_arr_eq(buf, "onetw", 5);
	cr_assert_eq(get(b, buf, 31), 1);
	cr_assert_str_eq(buf, "o");
	cr_assert_eq(get(b, buf, 31), -EAGAIN);
	cr_assert_eq(get(a, buf, 31), 4);
	cr_assert_str_eq(buf, "back");
}

Test(llp_mem, pieces_are_gathered_and_scattered)
{
	struct iovec out[3] = { { "ab", 2 }, { "", 0 }, { "cdef", 4 } };
	char x[4] = "", y[4] = "";
	struct iovec in[2] = { { x, 3 }, { y, 3 } };

	cr_assert_eq(a->ops->send(a, out, 3, 0), 6);
	cr_assert_eq(b->ops->recv(b, in, 2), 6);
	cr_assert_str_eq(x, "abc");
	cr_assert_str_eq(y, "def");
}

Test(llp_mem, a_full_pipe_takes_what_fits)
{
	char buf[32];

	cr_assert_eq(put(a, "0123456789"), 10);
	cr_assert_eq(put(a, "abcdefghij"), 6);
	cr_assert_eq(put(a, "x"), -EAGAIN);
	cr_assert_eq(get(b, buf, 4), 4);
	cr_assert_eq(put(a, "wrap"), 4);
	cr_assert_eq(get(b, buf, 31), 16);
	cr_assert_str_eq(buf, "456789abcdefwrap");
}

Test(llp_mem, take_and_cut_limit_each_call)
{
	char buf[32];

	llp_mem_tamper(a, &(struct llp_mem_tamper){ .take = 3, .cut = 2 });
	cr_assert_eq(put(a, "abcdef"), 3);
	cr_assert_eq(put(a, "def"), 3);
	cr_assert_eq(get(b, buf, 31), 2);
	cr_assert_str_eq(buf, "ab");
	cr_assert_eq(get(b, buf, 31), 2);
	cr_assert_eq(get(b, buf, 31), 2);
	cr_assert_str_eq(buf, "ef");
}

Test(llp_mem, delay_answers_eagain_before_each_gift)
{
	char buf[32];

	llp_mem_tamper(a, &(struct llp_mem_tamper){ .delay = 2, .cut = 1 });
	put(a, "xy");
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(get(b, buf, 31), -EAGAIN);
		cr_assert_eq(get(b, buf, 31), -EAGAIN);
		cr_assert_eq(get(b, buf, 31), 1);
	}
	cr_assert_str_eq(buf, "y");
}

Test(llp_mem, flip_changes_one_octet_of_the_stream)
{
	char buf[32];

	put(a, "ab");
	llp_mem_tamper(a, &(struct llp_mem_tamper){ .flip_at = 3, .flip_mask = 0x20 });
	put(a, "cdef");
	cr_assert_eq(get(b, buf, 31), 6);
	cr_assert_str_eq(buf, "abcDef");
	put(a, "abcdef");
	get(b, buf, 31);
	cr_assert_str_eq(buf, "abcdef");
}

Test(llp_mem, the_end_comes_behind_the_octets)
{
	char buf[32];

	put(a, "last");
	cr_assert_eq(a->ops->shutdown(a), 0);
	cr_assert_eq(put(a, "more"), -EPIPE);
	cr_assert_eq(get(b, buf, 31), 4);
	cr_assert_eq(get(b, buf, 31), 0);
	cr_assert_eq(put(b, "still"), 5);
	cr_assert_eq(get(a, buf, 31), 5);
}

Test(llp_mem, abort_ends_both_ways_at_once)
{
	char buf[32];

	put(a, "lost");
	b->ops->abort(b);
	cr_assert_eq(get(b, buf, 31), -ECONNRESET);
	cr_assert_eq(put(a, "x"), -ECONNRESET);
	cr_assert(readable(a));
	cr_assert(readable(b));
}

Test(llp_mem, descriptor_is_readable_exactly_with_input_or_end)
{
	char buf[32];

	cr_assert_not(readable(b));
	put(a, "ab");
	cr_assert(readable(b));
	cr_assert_not(readable(a));
	get(b, buf, 1);
	cr_assert(readable(b));
	get(b, buf, 1);
	cr_assert_not(readable(b));
	a->ops->shutdown(a);
	cr_assert(readable(b));
	get(b, buf, 1);
	cr_assert(readable(b));
}

Test(llp_mem, emss_is_what_was_set)
{
	cr_assert_eq(a->ops->emss(a), 1448);
	llp_mem_set_emss(a, 600);
	cr_assert_eq(a->ops->emss(a), 600);
	cr_assert_eq(b->ops->emss(b), 1448);
}

Test(llp_mem, no_capacity_is_refused)
{
	struct llp *x, *y;

	cr_assert_eq(llp_mem_pair(0, &x, &y), -EINVAL);
}
