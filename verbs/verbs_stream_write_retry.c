/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first words on an iWARP connection, which siw does not always take in: as responder it may
 * overlook them (rnic/write_retry.h).
 *
 * As initiator it gives a connection up if anything stands behind the Reply when it reads that. So
 * a responder says nothing before it has heard of its peer (RFC 5044 section 7.1.3), but for a
 * while only: a peer of rsockets may have nothing to say.
 *
 * A timer stands in the connection's epoll set meanwhile, for who waits sleeps there.
 */
#include "base/clock.h"
#include "base/log.h"
#include "rnic/write_retry.h"
#include "verbs/verbs_stream.h"
#include "verbs/verbs_timer.h"

#define GATE_NS (100 * BASE_NS_PER_MS)

/* Without a descriptor for it the peer is left as it is */
static void wait_begin(struct verbs_stream *s, enum verbs_write_retry what, uint64_t ns)
{
	int err = verbs_timer_set(&s->timer, s->native.fd, ns);

	verbs_store(&s->write_retry, err ? VERBS_WRITE_RETRY_OVER : what);
}

void verbs_stream_write_retry_init(struct verbs_stream *s, bool initiator)
{
	if (s->id->verbs->device->transport_type != IBV_TRANSPORT_IWARP)
		return;
	if (initiator)
		verbs_store(&s->write_retry, VERBS_WRITE_RETRY_LATER);
	else if (!s->heard) /* its words may be here before the manager's, that it is open */
		wait_begin(s, VERBS_WRITE_RETRY_GATED, GATE_NS);
}

void verbs_stream_write_retry_look(struct verbs_stream *s)
{
	if (s->write_retry == VERBS_WRITE_RETRY_LATER && verbs_load(&s->posted))
		wait_begin(s, VERBS_WRITE_RETRY_DUE, rnic_write_retry_ns(0));
}

void verbs_stream_write_retry_end(struct verbs_stream *s)
{
	verbs_timer_end(&s->timer, s->native.fd);
	verbs_store(&s->write_retry, VERBS_WRITE_RETRY_OVER);
}

/* There are devices that look the STag up for no byte */
void verbs_stream_nothing(const struct verbs_stream *s, struct ibv_send_wr *wr)
{
	wr->wr.rdma.rkey = rnic_write_retry_stag(verbs_load(&s->window_key));
	wr->wr.rdma.remote_addr = s->window_to;
}

/* It completes only if it fails, and then as a message that has not come */
static void write_retry(struct verbs_stream *s)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .wr_id = verbs_stream_id(true, 0) },
			   *bad;

	verbs_stream_nothing(s, &wr);
	base_debug("verbs: a peer has not answered: a Write of no octets");
	ibv_post_send(s->id->qp, &wr, &bad);
}

/* It may have spoken before it has looked, and looks from then on */
void verbs_stream_write_retry_heard(struct verbs_stream *s)
{
	bool sent = s->write_retry == VERBS_WRITE_RETRY_LATER && verbs_load(&s->posted);

	s->heard = true;
	if (sent || s->write_retry == VERBS_WRITE_RETRY_DUE)
		write_retry(s);
	verbs_stream_write_retry_end(s);
}

bool verbs_stream_write_retry_go(struct verbs_stream *s)
{
	bool gated = s->write_retry == VERBS_WRITE_RETRY_GATED;

	if (!gated) {
		write_retry(s);
		s->write_retries++;
	}
	if (gated || s->write_retries == RNIC_WRITE_RETRIES ||
	    verbs_timer_set(&s->timer, s->native.fd, rnic_write_retry_ns(s->write_retries)))
		verbs_stream_write_retry_end(s);
	return gated;
}
