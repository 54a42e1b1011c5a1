/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way out for Sends of one frame each, which is what nearly every write() of a program brings:
 * without a batch, and so without marks to go back to.
 *
 * A run is as many of them as a longer write() brings over a path with small segments. They are
 * laid out one behind the other in one buffer, which costs a copy: the kernel takes one piece in
 * less time than three for each of some dozens of frames.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/bounce.h"
#include "base/point.h"
#include "rnic/rnic_stream.h"
#include "soft/soft_core.h"

/* Pieces of a Send that is not copied */
#define PIECES 16
/* Of a frame that is */
#define HEAD (MPA_LEN_FIELD + DDP_UNTAGGED_LEN)
#define FRAME(len) (HEAD + (len) + MPA_SINGLE_TAIL)
#define RUN_FRAMES 44u

/* A Send of @len bytes as a frame at @to, which has room for FRAME(@len) */
static bool lay(const struct soft_io *io, const struct iovec *sg, unsigned int nsg, __u32 len,
		__u8 *to, struct mpa_single *f)
{
	__u8 *at = to + HEAD;
	const struct iovec payload = { at, len };
	size_t left = len;

	for (unsigned int i = 0; i < nsg && left; i++) {
		size_t n = base_min(left, sg[i].iov_len);

		memcpy(at, sg[i].iov_base, n);
		at += n;
		left -= n;
	}
	if (left || !rdmap_tx_single(&io->core->rdmap, f, &payload, 1, len) || f->head_len != HEAD)
		return false;
	memcpy(to, f->head, HEAD);
	memcpy(at, f->tail, sizeof(f->tail));
	return true;
}

/* Hands it to the carrier as @n entries; as soft_tx_single() */
static int push(const struct soft_io *io, const struct mpa_single *f, const struct iovec *iov,
		unsigned int n)
{
	struct soft_core *c = io->core;
	ssize_t sent = io->llp->ops->send(io->llp, iov, n, soft_tx_flags(c));
	int err = 0;

	BASE_POINT(soft_tx_sent);
	if (sent <= 0)
		return !sent || sent == -EAGAIN ? -EAGAIN : soft_tx_fail(c, (int)sent);
	rdmap_tx_single_count(&c->rdmap, f);
	if ((__u64)sent < f->octets)
		err = soft_tx_keep(io, iov, (__u64)sent, f->octets);
	return err ? soft_tx_fail(c, err) : 1;
}

/* Few bytes are copied: the kernel takes one piece in less time than four */
static int copied(const struct soft_io *io, const struct iovec *sg, unsigned int nsg, __u32 len)
{
	__u8 copy[FRAME(SOFT_RUN_LEN)];
	struct iovec whole = { copy, 0 };
	struct mpa_single f;

	if (!lay(io, sg, nsg, len, copy, &f))
		return 0;
	whole.iov_len = f.octets;
	return push(io, &f, &whole, 1);
}

int soft_tx_single(const struct soft_io *io, const struct iovec *sg, unsigned int nsg, __u32 len)
{
	struct iovec iov[PIECES + 2];
	struct mpa_single f;

	if (len <= SOFT_RUN_LEN)
		return copied(io, sg, nsg, len);
	if (nsg > PIECES || !rdmap_tx_single(&io->core->rdmap, &f, sg, nsg, len))
		return 0;
	iov[0] = (struct iovec){ f.head, f.head_len };
	for (unsigned int i = 0; i < nsg; i++)
		iov[i + 1] = sg[i];
	iov[nsg + 1] = (struct iovec){ f.tail, f.tail_len };
	return push(io, &f, iov, nsg + 2);
}

/* --- a run --- */

struct run {
	__u8 *buf;
	unsigned int n;
	__u32 end[RUN_FRAMES]; /* of each frame, in the buffer */
};

/* They are counted as if they had left: each has its own message number */
static void run_lay(const struct soft_io *io, struct run *r, const struct rnic_stream_wr *wr,
		    unsigned int n)
{
	struct mpa_single f;
	__u32 at = 0;

	for (r->n = 0; r->n < base_min(n, RUN_FRAMES); r->n++) {
		const struct rnic_stream_wr *w = &wr[r->n];

		if (FRAME(w->len) > BASE_BOUNCE_SIZE - at ||
		    !lay(io, w->iov, w->niov, w->len, r->buf + at, &f))
			return;
		rdmap_tx_single_count(&io->core->rdmap, &f);
		at += f.octets;
		r->end[r->n] = at;
	}
}

/* @sent bytes have left: how many frames are accepted, and of the last one the rest; or -errno */
static int run_settle(const struct soft_io *io, struct run *r, __u32 sent)
{
	const struct iovec iov = { r->buf, r->end[r->n - 1] };
	__u32 begin;
	int err;

	for (; r->n; r->n--) {
		begin = r->n > 1 ? r->end[r->n - 2] : 0;
		if (begin < sent)
			break;
		rdmap_tx_single_strike(&io->core->rdmap, r->end[r->n - 1] - begin);
	}
	if (!r->n || r->end[r->n - 1] == sent)
		return (int)r->n;
	err = soft_tx_keep(io, &iov, sent, r->end[r->n - 1]);
	return err ? err : (int)r->n;
}

/* One call of the carrier's; *@whole: all that it was given */
static int run_push(const struct soft_io *io, struct run *r, bool *whole)
{
	const struct iovec iov = { r->buf, r->end[r->n - 1] };
	ssize_t sent = io->llp->ops->send(io->llp, &iov, 1, soft_tx_flags(io->core));
	int done;

	BASE_POINT(soft_tx_sent);
	*whole = sent == (ssize_t)iov.iov_len;
	done = run_settle(io, r, (__u32)base_max(sent, (ssize_t)0));
	if (sent < 0 && sent != -EAGAIN)
		return soft_tx_fail(io->core, (int)sent);
	return done < 0 ? soft_tx_fail(io->core, done) : done;
}

int soft_tx_run(const struct soft_io *io, const struct rnic_stream_wr *wr, unsigned int n)
{
	struct run r = { .buf = NULL };
	unsigned int done = 0;
	bool whole, begun = false;
	int got = 0;

	if (base_once(io->core->record))
		return 0;
	r.buf = (__u8 *)base_bounce_get();
	whole = r.buf;

	while (whole && done < n) {
		run_lay(io, &r, wr + done, n - done);
		if (!r.n)
			break;
		begun = true;
		got = run_push(io, &r, &whole);
		done += (unsigned int)base_max(got, 0);
	}
	base_bounce_put((char *)r.buf);
	if (done || !begun)
		return (int)done;
	return got < 0 ? got : -EAGAIN;
}
