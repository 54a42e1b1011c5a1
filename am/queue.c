/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets being put together: docs/amudp-wire.md, section 2.
 *
 * Small frames for one peer share a packet until it is full, which is what makes many small
 * messages cheap: they share a header, a checksum and a system call. Large data stand in an
 * iovec of their own and are not copied. Nothing stays here across a return to the program,
 * except requests that AMUDP_SetBatch() told us to hold.
 */
#include "am/queue.h"

#include <errno.h>
#include <poll.h>

#include "base/bits.h"
#include "base/log.h"

#define PACKET_SIZE sizeof(struct am_wire_packet)
#define SEND_TRIES 3
#define CACHE_LINE 64
#define COPY_MAX 512	       /* data bytes worth copying into a shared packet */
#define BYTES_MAX (256u << 10) /* of data: the cache has them still when the kernel copies them */

/*
 * Between two ends on one host the bytes never leave the memory, and a checksum finds nothing:
 * it is left out for a peer that has said that it takes such packets. A peer that has sent nothing
 * since something went again may have a successor, which wants checksums, and else does not answer.
 */
static bool must_seal(const struct amudp_ep *ep, const struct am_peer *peer)
{
	if (ep->options.checksum != AM_CHOICE_AUTO)
		return ep->options.checksum == AM_CHOICE_YES;
	return !peer || !peer->near || !peer->takes_unsealed || peer->resends;
}

static struct am_queued *packet_open(struct amudp_ep *ep, struct am_peer *peer,
				     const struct sockaddr_in *to, uint32_t incarnation)
{
	struct am_packet header = { .dest_inc = incarnation };
	struct am_queued *q;

	if (ep->queue.count == AM_NIC_BATCH)
		am_queue_flush(ep);
	q = &ep->queue.packets[ep->queue.count];
	if (peer)
		peer->queued = ep->queue.count;
	ep->queue.count++;
	q->peer = peer;
	q->closed = false;
	q->used = PACKET_SIZE;
	q->datagram.to = *to;
	q->datagram.count = 1;
	q->datagram.length = 0;
	q->datagram.bulk = false;
	q->sealed = must_seal(ep, peer);
	header.flags = (q->sealed ? AM_PACKET_CRC : 0) | (ep->sleeps ? AM_PACKET_SLEEPS : 0) |
		       (am_endpoint_takes_unsealed(ep, peer) ? AM_PACKET_UNSEALED : 0);
	header.window = ep->window_kib;
	header.source_inc = ep->incarnation;
	header.nonce = ep->nonce;
	header.addr = ep->name.sin_addr.s_addr;
	header.port = ep->name.sin_port;
	am_packet_put(q->buffer, &header);
	return q;
}

/* An open packet of this peer's with room for n bytes, or a new one. */
static struct am_queued *packet_for(struct amudp_ep *ep, struct am_peer *peer, uint32_t n)
{
	struct am_queued *q;
	uint32_t limit =
		base_min(peer->frame_max + (uint32_t)PACKET_SIZE, (uint32_t)AM_QUEUE_BUFFER);

	if (peer->queued >= 0) {
		q = &ep->queue.packets[peer->queued];
		if (!q->closed && q->used + n <= limit)
			return q;
	}
	return packet_open(ep, peer, &peer->path, peer->incarnation);
}

static void append(struct am_queued *q, const uint8_t *p, uint32_t n)
{
	memcpy(q->buffer + q->used, p, n);
	q->used += n;
}

static void append_padding(struct am_queued *q)
{
	static const uint8_t zero[8];

	append(q, zero, -q->used & 7);
}

void am_queue_frame(struct amudp_ep *ep, struct am_peer *peer, const uint8_t *p, uint32_t n)
{
	struct am_queued *q = packet_for(ep, peer, n);

	append(q, p, n);
	append_padding(q);
}

static struct am_queued *message_queue(struct amudp_ep *ep, struct am_peer *peer,
				       const uint8_t *head, uint32_t head_len, const uint8_t *data,
				       uint32_t length)
{
	struct am_queued *q;
	uint32_t padded = (uint32_t)base_align_up(head_len + length, 8);

	if (padded + PACKET_SIZE <= AM_QUEUE_BUFFER && padded <= peer->frame_max &&
	    length <= COPY_MAX) {
		q = packet_for(ep, peer, padded);
		append(q, head, head_len);
		append(q, data, length);
		append_padding(q);
		return q;
	}
	q = packet_open(ep, peer, &peer->path, peer->incarnation);
	append(q, head, head_len);
	q->datagram.iov[1] = (struct iovec){ (void *)data, length };
	q->datagram.count = 2;
	q->datagram.length = length;
	q->closed = true;
	ep->queue.bytes += length;
	return q;
}

static void queue_bound(struct amudp_ep *ep)
{
	if (ep->queue.bytes >= BYTES_MAX)
		am_queue_flush(ep);
}

void am_queue_message(struct amudp_ep *ep, struct am_peer *peer, const uint8_t *head,
		      uint32_t head_len, const uint8_t *data, uint32_t length)
{
	message_queue(ep, peer, head, head_len, data, length);
	queue_bound(ep);
}

void am_queue_fragment(struct amudp_ep *ep, struct am_peer *peer, const uint8_t *head,
		       uint32_t head_len, const uint8_t *data, uint32_t length)
{
	message_queue(ep, peer, head, head_len, data, length)->datagram.bulk = true;
	queue_bound(ep);
}

void am_queue_frame_to(struct amudp_ep *ep, const struct sockaddr_in *to, uint32_t incarnation,
		       const uint8_t *p, uint32_t n)
{
	struct am_queued *q = packet_open(ep, NULL, to, incarnation);

	append(q, p, n);
	q->closed = true;
}

/*
 * AMD's processors copy data that no cache has, in the kernel, at half the speed at which they can
 * be fetched. Intel's fetch ahead while they copy: to fetch the data first costs 13 % there.
 */
static bool copy_fetches(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_is("intel");
#else
	return false;
#endif
}

/* The checksum, where there is one, has fetched them. */
static void data_fetch(const struct iovec *data)
{
	size_t i;

	for (i = 0; i < data->iov_len; i += CACHE_LINE)
		__builtin_prefetch((const char *)data->iov_base + i);
}

static void packets_close(struct amudp_ep *ep, struct am_datagram *v)
{
	bool fetch = !copy_fetches();
	struct am_queued *q;
	int i;

	for (i = 0; i < ep->queue.count; i++) {
		q = &ep->queue.packets[i];
		if (q->peer)
			q->peer->queued = -1;
		q->datagram.iov[0] = (struct iovec){ q->buffer, q->used };
		q->datagram.length += q->used;
		am_packet_seal(q->datagram.iov, q->datagram.count);
		if (q->datagram.count > 1 && fetch && !q->sealed)
			data_fetch(&q->datagram.iov[1]);
		ep->stats.TotalBytesSent += q->datagram.length;
		v[i] = q->datagram;
	}
	ep->xstats.PacketsSent += (uint64_t)ep->queue.count;
}

/* No room in the interface's queue passes soon; what is still there then counts as lost. */
static void wait_for_room(const struct am_nic *nic)
{
	struct pollfd pfd = { .fd = nic->wait_fd, .events = POLLOUT };

	poll(&pfd, 1, 1);
}

void am_queue_flush(struct amudp_ep *ep)
{
	struct am_datagram v[AM_NIC_BATCH];
	struct am_nic *nic = ep->nics[ep->nic];
	int sent = 0, tries = 0, n, count = ep->queue.count;

	ep->held = 0;
	if (!count)
		return;
	packets_close(ep, v);
	ep->queue.count = 0;
	ep->queue.bytes = 0;
	while (sent < count) {
		n = nic->ops->send(nic, v + sent, count - sent);
		if (n < 0) {
			base_warn("am: a packet of %u bytes cannot be sent: %s", v[sent].length,
				  strerror(-n));
			n = 1;
		}
		if (n == 0) {
			if (++tries > SEND_TRIES)
				break;
			wait_for_room(nic);
		}
		sent += n;
	}
}

void am_queue_retire(struct amudp_ep *ep, struct am_message *m)
{
	if (m->head_len && m->length > COPY_MAX)
		am_queue_flush(ep);
	am_message_uninit(m);
}
