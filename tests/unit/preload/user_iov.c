/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Buffers of a program, judged as the kernel judges them.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>

#include "preload/table/user_iov.h"

static char octets[100];

#define NEAR ((void *)16)
#define FAR ((void *)-4096)

Test(pieces, judged)
{
	static const struct {
		struct iovec iov[3];
		long n;
		int err, n_sound;
		size_t len, sound;
	} cases[] = {
		{ { { octets, 10 } }, 1, 0, 1, 10, 10 },
		{ { { octets, 10 }, { octets, 0 }, { octets, 5 } }, 3, 0, 3, 15, 15 },
		{ { { NULL, 0 } }, 1, 0, 1, 0, 0 },
		{ { { NULL, 0 } }, 0, 0, 0, 0, 0 },
		{ { { octets, 10 }, { NULL, 1 }, { octets, 5 } }, 3, 0, 1, 16, 10 },
		{ { { NEAR, 10 }, { octets, 1 } }, 2, 0, 0, 11, 0 },
		{ { { octets, 1 }, { FAR, 10 } }, 2, -EFAULT, 0, 0, 0 },
		{ { { FAR, 0 } }, 1, -EFAULT, 0, 0, 0 },
		{ { { octets, SSIZE_MAX } }, 1, -EFAULT, 0, 0, 0 },
		{ { { octets, (size_t)SSIZE_MAX + 1 } }, 1, -EINVAL, 0, 0, 0 },
		{ { { octets, INT_MAX }, { octets, INT_MAX } }, 2, 0, 2, 0x7ffff000, 0x7ffff000 },
		{ { { octets, 1 } }, -1, -EINVAL, 0, 0, 0 },
		{ { { octets, 1 } }, 1025, -EINVAL, 0, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct user_iov p = { .n = 0 };

		cr_expect_eq(user_iov_init(&p, cases[i].iov, cases[i].n), cases[i].err, "%zu", i);
		if (cases[i].err)
			continue;
		cr_expect_eq(p.len, cases[i].len, "%zu", i);
		cr_expect_eq(p.sound, cases[i].sound, "%zu", i);
		cr_expect_eq(p.n_sound, cases[i].n_sound, "%zu", i);
	}
}

Test(pieces, list_that_is_none)
{
	struct user_iov p;

	cr_expect_eq(user_iov_init(&p, NULL, 1), -EFAULT);
	cr_expect_eq(user_iov_init(&p, FAR, 1), -EFAULT);
	cr_expect_eq(user_iov_init(&p, NULL, 0), 0);
}

/* What is left after each number of octets, however little room there is for it */
Test(pieces, rest)
{
	struct iovec iov[3] = { { octets, 10 }, { octets + 20, 0 }, { octets + 50, 20 } };
	struct iovec rest[3];
	struct user_iov p;

	cr_assert_eq(user_iov_init(&p, iov, 3), 0);
	cr_expect_eq(user_iov_rest(&p, 0, SIZE_MAX, rest, 3), 2);
	cr_expect_eq(user_iov_rest(&p, 0, SIZE_MAX, rest, 1), 1);
	cr_expect_eq(user_iov_rest(&p, 4, SIZE_MAX, rest, 3), 2);
	cr_expect_eq(rest[0].iov_base, octets + 4);
	cr_expect_eq(rest[0].iov_len, 6u);
	cr_expect_eq(user_iov_rest(&p, 12, SIZE_MAX, rest, 3), 1);
	cr_expect_eq(rest[0].iov_base, octets + 52);
	cr_expect_eq(rest[0].iov_len, 18u);
	cr_expect_eq(user_iov_rest(&p, 4, 8, rest, 3), 2);
	cr_expect_eq(rest[1].iov_len, 2u);
	cr_expect_eq(user_iov_rest(&p, 30, SIZE_MAX, rest, 3), 0);
	cr_expect_eq(user_iov_rest(&p, 0, 0, rest, 3), 0);
}
