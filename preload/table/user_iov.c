/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Buffers of the program.
 *
 * To ask the kernel of each address whether there is memory would cost every call a system call.
 * What programs do give by mistake is NULL, or a member of what NULL points to; that, and what is
 * out of the address space, is seen here. Any other bad address is what it would be to memcpy():
 * docs/limits.md says so.
 */
#include "preload/table/user_iov.h"

#include <errno.h>
#include <stdint.h>

#include "base/bits.h"
#include "stream/cursor.h"

/* As in the kernel: so much is moved by one call at most, in so many pieces */
#define LEN_MAX 0x7ffff000u
#define PIECES_MAX 1024

int user_iov_init(struct user_iov *p, const struct iovec *iov, long n)
{
	size_t sum = 0;

	if (n < 0 || n > PIECES_MAX)
		return -EINVAL;
	if (n && user_iov_wild(iov, (size_t)n * sizeof(*iov)))
		return -EFAULT;
	*p = (struct user_iov){ .iov = iov, .n = (int)n, .n_sound = (int)n };
	for (int i = 0; i < n; i++) {
		size_t len = iov[i].iov_len;

		if ((ssize_t)len < 0)
			return -EINVAL;
		if (user_iov_far(iov[i].iov_base, len))
			return -EFAULT;
		if (len && p->n_sound == n && (uintptr_t)iov[i].iov_base < USER_IOV_FIRST) {
			p->n_sound = i;
			p->sound = sum;
		}
		sum = base_min(sum + len, LEN_MAX);
	}
	p->len = sum;
	if (p->n_sound == n)
		p->sound = sum;
	return 0;
}

int user_iov_rest(const struct user_iov *p, size_t done, size_t max, struct iovec *rest, int room)
{
	struct stream_cursor c = { p->iov, p->n, 0 };
	int k = 0;
	char *at;

	stream_cursor_skip(&c, done);
	while (k < room && max) {
		size_t len = stream_cursor_next(&c, max, &at);

		if (!len)
			break;
		rest[k++] = (struct iovec){ at, len };
		max -= len;
	}
	return k;
}
