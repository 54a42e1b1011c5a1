/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Start-up of a stream (RFC 5044 section 7.1, RFC 6581): a frame each way, then FPDUs.
 *
 * A frame is handed to the carrier in one piece, for some peers take nothing else; of the peer's
 * frame exactly its own bytes are received, so that what follows it stays where it is until the
 * stream is open. Nothing here knows of time.
 */
#include "soft/soft_core.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/bits.h"
#include "base/point.h"

static void phase_set(struct soft_core *c, enum soft_phase phase)
{
	__atomic_store_n(&c->phase, (__u8)phase, __ATOMIC_RELEASE);
}

static void private_data_keep(const struct soft_io *io, const struct mpa_startup *in)
{
	memcpy(io->in + io->pd_at, in->pd, in->pd_len);
	io->core->pd_len = in->pd_len;
}

/*
 * Receives from byte @fill on, up to @need of the frame in all: 0 when there are more than before.
 * They are judged as they come, for a peer that says something else may say no more than that
 */
static int frame_fill(const struct soft_io *io, size_t fill, size_t need)
{
	ssize_t got = soft_rx_recv(io, (__u32)fill, need - fill);

	if (got == 0)
		return -ECONNRESET;
	if (got < 0)
		return (int)got;
	io->core->in_fill = (__u32)(fill + (size_t)got);
	return 0;
}

typedef int frame_get_fn(struct mpa_conn *c, const __u8 *p, size_t n, struct mpa_startup *in,
			 size_t *used);

/*
 * The peer's frame: -EAGAIN until it is whole. What has come of it is judged in a copy, to which
 * @in points: in memory that others write to it might change meanwhile
 */
static int frame_get(const struct soft_io *io, frame_get_fn *get, size_t there,
		     __u8 frame[MPA_START_MAX], struct mpa_startup *in)
{
	struct soft_core *c = io->core;
	size_t used = 0, fill;
	int err;

	for (;;) {
		fill = base_once(c->in_fill);
		if (fill > MPA_START_MAX)
			return -EPROTO;
		memcpy(frame, io->in, fill);
		err = get(&c->rdmap.ddp.mpa, frame, fill, in, &used);
		if (err != -EAGAIN)
			break;
		used = base_max(used, there);
		err = used > MPA_START_MAX ? -EPROTO : frame_fill(io, fill, used);
		if (err)
			return err;
	}
	c->in_fill = 0;
	c->rx_alone = io->llp->empty;
	return err;
}

static int stream_open(const struct soft_io *io)
{
	struct soft_core *c = io->core;
	enum iwarp_fault f;

	soft_tx_emss_set(io, io->llp->ops->emss(io->llp));
	c->record = (c->rdmap.ddp.mpa.flags & MPA_F_CRC) != 0;
	f = rdmap_stream_started(&c->rdmap);
	phase_set(c, SOFT_OPEN);
	if (!f)
		return 0;
	rdmap_fault(&c->rdmap, f);
	return -EPROTO;
}

static int initiator_request(const struct soft_io *io, const void *pd, size_t len)
{
	struct soft_core *c = io->core;
	__u8 frame[MPA_START_MAX];
	size_t n;
	int err = mpa_start_request_put(&c->rdmap.ddp.mpa, pd, len, frame, &n);

	if (err)
		return err;
	phase_set(c, SOFT_REQUESTED);
	BASE_POINT(soft_start_requested);
	return soft_tx_raw(io, frame, n);
}

/* The two faults that are found in a good Reply and told by a Terminate (RFC 6581 section 8) */
static bool fault_is_told(const struct mpa_conn *m)
{
	return m->fault == MPA_E_IRD || m->fault == MPA_E_RTR;
}

static int initiator_reply(const struct soft_io *io)
{
	struct soft_core *c = io->core;
	struct mpa_startup in = { .pd_len = 0 };
	__u8 frame[MPA_START_MAX];
	int err = frame_get(io, mpa_start_reply_get, 0, frame, &in);

	if (!err || err == -ECONNREFUSED)
		private_data_keep(io, &in);
	if (err == -ECONNREFUSED)
		phase_set(c, SOFT_REJECTED);
	if (err == -EPROTO && fault_is_told(&c->rdmap.ddp.mpa)) {
		soft_tx_emss_set(io, io->llp->ops->emss(io->llp));
		rdmap_fault(&c->rdmap, c->rdmap.ddp.mpa.fault);
		phase_set(c, SOFT_OPEN);
	}
	return err ? err : stream_open(io);
}

int soft_start_initiator(const struct soft_io *io, const void *pd, size_t len, short *events)
{
	int err;

	if (io->core->phase == SOFT_IDLE)
		err = initiator_request(io, pd, len);
	else
		err = soft_tx_rest(io);
	if (err == -EAGAIN)
		*events = POLLOUT;
	if (err)
		return err;
	err = initiator_reply(io);
	if (err == -EAGAIN)
		*events = POLLIN;
	return err;
}

/* Of a frame with this head; what is too long its judge refuses */
static size_t start_octets(const __u8 head[MPA_RR_LEN])
{
	struct mpa_rr rr;

	memcpy(&rr, head, sizeof(rr));
	return base_min(sizeof(rr) + be16toh(rr.pd_len), (size_t)MPA_START_MAX);
}

int soft_start_recognise(int fd, size_t *there, short *events)
{
	__u8 head[MPA_RR_LEN];
	bool ended;
	ssize_t n = llp_tcp_peek(fd, head, sizeof(head), &ended);

	if (n == -EAGAIN)
		*events = POLLIN;
	if (n < 0)
		return (int)n;
	if (n == 0 || memcmp(head, MPA_KEY_REQ, (size_t)base_min(n, (ssize_t)MPA_KEY_LEN)))
		return -ENOMSG;
	if (n == MPA_RR_LEN)
		*there = start_octets(head);
	if (n >= MPA_KEY_LEN)
		return 0;
	if (ended)
		return -ENOMSG;
	*events = POLLIN;
	return -EAGAIN;
}

int soft_start_responder(const struct soft_io *io, size_t there, short *events)
{
	struct mpa_startup in = { .pd_len = 0 };
	__u8 frame[MPA_START_MAX];
	int err = frame_get(io, mpa_start_request_get, there, frame, &in);

	if (err == -EAGAIN)
		*events = POLLIN;
	if (err)
		return err;
	BASE_POINT(soft_start_request);
	private_data_keep(io, &in);
	phase_set(io->core, SOFT_REQUEST);
	return 0;
}

int soft_start_accept(const struct soft_io *io, const void *pd, size_t len)
{
	__u8 frame[MPA_START_MAX];
	size_t n;
	int err;

	if (io->core->phase != SOFT_REQUEST)
		return -EINVAL;
	err = mpa_start_reply_put(&io->core->rdmap.ddp.mpa, pd, len, frame, &n);
	if (err)
		return err;
	err = stream_open(io);
	if (err)
		return err;
	err = soft_tx_raw(io, frame, n);
	BASE_POINT(soft_start_replied);
	return err == -EAGAIN ? 0 : err;
}

int soft_start_reject(const struct soft_io *io, const void *pd, size_t len)
{
	__u8 frame[MPA_START_MAX];
	size_t n;
	int err;

	if (io->core->phase != SOFT_REQUEST)
		return -EINVAL;
	err = mpa_start_reject_put(&io->core->rdmap.ddp.mpa, pd, len, frame, &n);
	if (err)
		return err;
	phase_set(io->core, SOFT_REJECTED);
	err = soft_tx_raw(io, frame, n);
	return err == -EAGAIN ? 0 : err;
}
