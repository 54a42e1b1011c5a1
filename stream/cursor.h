/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef STREAM_CURSOR_H
#define STREAM_CURSOR_H

#include <stddef.h>
#include <sys/uio.h>

#include "base/bits.h"

/* A place in the bytes of an iovec */
struct stream_cursor {
	const struct iovec *iov;
	int n;
	size_t off;
};

static inline size_t stream_iov_len(const struct iovec *iov, int n)
{
	size_t len = 0;

	for (int i = 0; i < n; i++)
		len += iov[i].iov_len;
	return len;
}

/*
 * The next bytes that lie together, up to @max; 0: there are no more. The cursor moves behind
 * them.
 */
static inline size_t stream_cursor_next(struct stream_cursor *c, size_t max, char **p)
{
	size_t len;

	while (c->n > 0 && c->off == c->iov->iov_len) {
		c->iov++;
		c->n--;
		c->off = 0;
	}
	if (c->n <= 0) {
		*p = NULL;
		return 0;
	}
	len = base_min(max, c->iov->iov_len - c->off);
	*p = (char *)c->iov->iov_base + c->off;
	c->off += len;
	return len;
}

static inline void stream_cursor_skip(struct stream_cursor *c, size_t len)
{
	char *p;

	while (len) {
		size_t step = stream_cursor_next(c, len, &p);

		if (!step)
			break;
		len -= step;
	}
}

#endif
