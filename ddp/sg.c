/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Scatter/gather lists as one run of octets.
 *
 * A list is addressed by the offset into the run that its pieces make up, which is what
 * MO and TO - base are. Pieces without octets are allowed anywhere and never appear in
 * a result.
 */
#include "base/bits.h"
#include "ddp/ddp.h"

/*
 * The piece that holds octet *@off of the list; *@off becomes the offset into it. @nsg:
 * the list is shorter.
 */
static unsigned int piece_at(const struct iovec *sg, unsigned int nsg, __u64 *off)
{
	unsigned int i;

	for (i = 0; i < nsg && *off >= sg[i].iov_len; i++)
		*off -= sg[i].iov_len;
	return i;
}

void ddp_scatter(const struct iovec *sg, unsigned int nsg, __u64 off, const void *src, size_t len)
{
	const __u8 *p = src;

	for (unsigned int i = piece_at(sg, nsg, &off); len && i < nsg; i++) {
		size_t n = base_min(len, sg[i].iov_len - off);

		if (n)
			memcpy((__u8 *)sg[i].iov_base + off, p, n);
		p += n;
		len -= n;
		off = 0;
	}
}

unsigned int ddp_gather(const struct iovec *sg, unsigned int nsg, __u64 off, size_t *len,
			struct iovec *out, unsigned int cap)
{
	unsigned int used = 0;
	size_t left = *len;

	for (unsigned int i = piece_at(sg, nsg, &off); left && used < cap && i < nsg; i++) {
		size_t n = base_min(left, sg[i].iov_len - off);

		if (n)
			out[used++] = (struct iovec){ (__u8 *)sg[i].iov_base + off, n };
		left -= n;
		off = 0;
	}
	*len -= left;
	return used;
}
