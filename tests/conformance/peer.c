/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The peer at work: it sends what it is told and waits for what must come.
 *
 * While it waits it lets the other side work, so one thread is enough for both. Every FPDU that
 * it receives is held to what holds for all of them: length, PAD of zeroes, markers at their
 * places, CRC, versions and reserved bits, an opcode that fits T and the queue, numbers in order.
 */
#include "peer.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "suite.h"

#define WAIT_MS 4000

void peer_init(struct peer *p, struct llp *l, void (*pump)(void *), void *ctx)
{
	memset(p, 0, offsetof(struct peer, in));
	p->llp = l;
	p->pump = pump;
	p->ctx = ctx;
	for (int qn = 0; qn < DDP_QUEUES; qn++)
		p->msn[qn] = p->rx_msn[qn] = 1;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* --- octets ------------------------------------------------------------------------------- */

/* Takes in what is there: whether anything was */
static bool take(struct peer *p)
{
	struct iovec iov = { p->in + p->fill, PEER_IN - p->fill };
	ssize_t n;

	if (p->ended || p->broken || !iov.iov_len)
		return false;
	n = p->llp->ops->recv(p->llp, &iov, 1);
	if (n == -EAGAIN)
		return false;
	if (n > 0)
		p->fill += (size_t)n;
	else if (n == 0)
		p->ended = true;
	else
		p->broken = (int)n;
	return true;
}

/* Lets the other side work, and a kernel in between have its time */
static void wait_a_little(struct peer *p)
{
	struct pollfd fd = { .fd = p->llp->fd, .events = POLLIN };

	p->pump(p->ctx);
	if (p->quiet_ms)
		poll(&fd, 1, 1);
}

bool peer_fill(struct peer *p, size_t n)
{
	int64_t until = now_ms() + WAIT_MS;
	unsigned int idle = 0;

	check(n <= PEER_IN, "the peer is to hold %zu octets", n);
	while (p->fill < n) {
		if (take(p)) {
			idle = 0;
			continue;
		}
		if (p->ended || p->broken || now_ms() > until)
			return false;
		/* in memory all that can happen has happened after a few turns */
		if (!p->quiet_ms && ++idle > 16)
			return false;
		wait_a_little(p);
	}
	return true;
}

void peer_drop(struct peer *p, size_t n)
{
	p->fill -= n;
	memmove(p->in, p->in + n, p->fill);
}

bool peer_try_send(struct peer *p, const void *octets, size_t n)
{
	const uint8_t *at = octets;
	int64_t until = now_ms() + WAIT_MS;

	while (n) {
		struct iovec iov = { (void *)at, p->cut && p->cut < n ? p->cut : n };
		ssize_t sent = p->llp->ops->send(p->llp, &iov, 1, 0);

		if (sent == -EAGAIN) {
			check(now_ms() < until, "the end does not read, %zu octets are left", n);
			take(p);
			wait_a_little(p);
			continue;
		}
		if (sent < 0)
			return false;
		at += sent;
		n -= (size_t)sent;
		if (p->cut)
			p->pump(p->ctx);
		if (p->pace_ms)
			poll(NULL, 0, (int)p->pace_ms);
	}
	return true;
}

void peer_send(struct peer *p, const void *octets, size_t n)
{
	check(peer_try_send(p, octets, n), "the end closed while the peer was sending");
}

/* Takes an empty Write in that a provider may send while its first FPDU is not answered */
static bool drop_write_retry(struct peer *p)
{
	static const uint8_t write_retry[16] = { 0, 14, 0xc1, 0x40, 0, 0, 0, 1 };
	static struct seg s;

	if (!p->write_retries || !p->rx_pos || p->fill < 20 || differ(p->in, write_retry, 16) < 16)
		return false;
	return peer_try_recv(p, &s);
}

void peer_expect_quiet(struct peer *p)
{
	int64_t until = now_ms() + p->quiet_ms;

	for (int turn = 0; turn < 4 || now_ms() < until; turn++) {
		take(p);
		while (drop_write_retry(p))
			;
		check(!p->fill, "%zu octets came that should not, the first is %#x", p->fill,
		      p->in[0]);
		wait_a_little(p);
	}
}

void peer_expect_end(struct peer *p)
{
	bool more = peer_fill(p, p->fill + 1);

	while (more && peer_fill(p, 20) && drop_write_retry(p))
		more = peer_fill(p, p->fill + 1);
	check(!more, "octet %#x came where the end of the connection was due, the first of %zu",
	      p->in[0], p->fill);
	check(p->ended || p->broken, "the connection is still there");
}

void peer_close(struct peer *p)
{
	p->llp->ops->shutdown(p->llp);
}

/* --- start-up frames ---------------------------------------------------------------------- */

static void send_frame(struct peer *p, const uint8_t *key, uint8_t flags, uint8_t rev,
		       const void *pd, size_t len)
{
	uint8_t out[20 + 65535];

	peer_send(p, out, raw_frame(out, key, flags, rev, pd, len));
}

void peer_send_request(struct peer *p, uint8_t flags, uint8_t rev, const void *pd, size_t len)
{
	send_frame(p, raw_req_key, flags, rev, pd, len);
}

void peer_send_reply(struct peer *p, uint8_t flags, uint8_t rev, const void *pd, size_t len)
{
	send_frame(p, raw_rep_key, flags, rev, pd, len);
}

void peer_recv_frame(struct peer *p, struct frame *f)
{
	check(peer_fill(p, 20), "no start-up frame: %zu octets", p->fill);
	memcpy(f->key, p->in, 16);
	f->flags = p->in[16];
	f->rev = p->in[17];
	f->pd_len = (uint16_t)raw_get(p->in + 18, 2);
	check(f->pd_len <= 512, "PD_Length is %u", f->pd_len);
	check(!(f->flags & 0x0f), "reserved bits are set: %#x", f->flags);
	check(f->rev == 1 || f->rev == 2, "revision %u", f->rev);
	check(f->rev == 2 || !(f->flags & 0x10), "S with revision 1");
	check(peer_fill(p, 20u + f->pd_len), "the start-up frame ends after %zu octets", p->fill);
	memcpy(f->pd, p->in + 20, f->pd_len);
	peer_drop(p, 20u + f->pd_len);
}

/* --- FPDUs out ---------------------------------------------------------------------------- */

void peer_fpdu(struct peer *p, const uint8_t *ulpdu, size_t n)
{
	static uint8_t out[FPDU_ROOM];

	/* in steps: a call with another length or place would build another FPDU */
	n = raw_fpdu(p, out, ulpdu, n);
	peer_try_send(p, out, n);
}

void peer_tagged(struct peer *p, uint8_t opcode, bool last, uint32_t stag, uint64_t to,
		 const void *payload, size_t n)
{
	static uint8_t u[ULPDU_ROOM];
	size_t hdr = raw_tagged(u, last ? 0xc1 : 0x81, 0x40 | opcode, stag, to);

	if (n)
		memcpy(u + hdr, payload, n);
	peer_fpdu(p, u, hdr + n);
}

static void untagged(struct peer *p, const uint8_t *header, const void *payload, size_t n)
{
	static uint8_t u[ULPDU_ROOM];

	memcpy(u, header, 18);
	if (n)
		memcpy(u + 18, payload, n);
	peer_fpdu(p, u, 18 + n);
}

void peer_untagged(struct peer *p, uint8_t opcode, bool last, uint32_t qn, uint32_t msn,
		   uint32_t mo, const void *payload, size_t n)
{
	uint8_t header[18];

	raw_untagged(header, last ? 0x41 : 0x01, 0x40 | opcode, 0, qn, msn, mo);
	untagged(p, header, payload, n);
}

void peer_write(struct peer *p, uint32_t stag, uint64_t to, const void *payload, size_t n)
{
	peer_tagged(p, RDMAP_WRITE, true, stag, to, payload, n);
}

void peer_send_op(struct peer *p, uint8_t opcode, uint32_t inv, const void *payload, size_t n)
{
	uint8_t header[18];

	raw_untagged(header, 0x41, 0x40 | opcode, inv, 0, p->msn[0]++, 0);
	untagged(p, header, payload, n);
}

void peer_send_message(struct peer *p, const void *payload, size_t n)
{
	peer_send_op(p, RDMAP_SEND, 0, payload, n);
}

void peer_read(struct peer *p, uint32_t sink_stag, uint64_t sink_to, uint32_t size,
	       uint32_t src_stag, uint64_t src_to)
{
	uint8_t h[28];

	raw_read_req(h, sink_stag, sink_to, size, src_stag, src_to);
	peer_untagged(p, RDMAP_READ_REQ, true, 1, p->msn[1]++, 0, h, sizeof(h));
}

void peer_atomic(struct peer *p, const struct atomic *a)
{
	uint8_t h[52];

	raw_atomic_req(h, a);
	peer_untagged(p, RDMAP_ATOMIC_REQ, true, 1, p->msn[1]++, 0, h, sizeof(h));
}

void peer_terminate(struct peer *p, const void *payload, size_t n)
{
	peer_untagged(p, RDMAP_TERMINATE, true, 2, p->msn[2]++, 0, payload, n);
}

/* --- FPDUs in ----------------------------------------------------------------------------- */

/* A marker of the FPDU @s whose octet @n stands next in in[]: held to where it is */
static void take_marker(struct peer *p, struct seg *s, size_t n, size_t start, bool between)
{
	size_t ptr = between ? 0 : n - start;

	check(peer_fill(p, n + 4), "no marker at stream octet %llu",
	      (unsigned long long)(p->rx_pos + n));
	check(raw_get(p->in + n, 2) == 0, "reserved octets of a marker");
	check(raw_get(p->in + n + 2, 2) == ptr, "FPDUPTR is %u, not %zu",
	      (unsigned int)raw_get(p->in + n + 2, 2), ptr);
	s->markers++;
}

static bool marker_here(const struct peer *p, size_t n)
{
	return p->rx_marked && (p->rx_pos + n) % 512 == 0;
}

/* The body of the FPDU without its markers into body[]: octets of in[] that it took, 0 for none */
static size_t take_body(struct peer *p, struct seg *s, uint8_t *body, size_t *body_len)
{
	size_t n = 0, start;

	if (marker_here(p, 0)) {
		if (!peer_fill(p, 8))
			return 0;
		take_marker(p, s, 0, 0, true);
		n = 4;
	}
	start = n;
	*body_len = 4;
	for (size_t at = 0; at < *body_len; at += 4) {
		if (at && marker_here(p, n)) {
			take_marker(p, s, n, start, false);
			n += 4;
		}
		if (!peer_fill(p, n + 4))
			return 0;
		memcpy(body + at, p->in + n, 4);
		n += 4;
		s->ulpdu_len = raw_get(body, 2);
		*body_len = (2 + s->ulpdu_len + 3) / 4 * 4;
	}
	if (marker_here(p, n)) {
		take_marker(p, s, n, start, false);
		n += 4;
	}
	return n;
}

static bool take_fpdu(struct peer *p, struct seg *s)
{
	static uint8_t body[ULPDU_ROOM + 8];
	size_t len, n = take_body(p, s, body, &len);
	uint32_t crc;

	if (!n || !peer_fill(p, n + 4))
		return false;
	for (size_t i = 2 + s->ulpdu_len; i < len; i++)
		check(!body[i] || p->any_pad, "PAD is %#x", body[i]);
	if (p->crc) {
		crc = raw_crc32c(p->in, n);
		for (int i = 0; i < 4; i++)
			check(p->in[n + i] == (uint8_t)(crc >> 8 * i), "CRC octet %d is wrong", i);
	}
	check(s->ulpdu_len <= 64768, "a ULPDU of %zu octets", s->ulpdu_len);
	s->at = p->rx_pos;
	s->fpdu_len = n + 4;
	memcpy(s->fpdu, p->in, s->fpdu_len);
	memcpy(s->ulpdu, body + 2, s->ulpdu_len);
	p->rx_pos += s->fpdu_len;
	peer_drop(p, s->fpdu_len);
	return true;
}

/* RFC 5040 Figure 4, RFC 7306 Figure 3 */
static const struct {
	bool tagged;
	uint32_t qn;
} opcode_rows[RDMAP_OPCODES] = {
	[RDMAP_WRITE] = { true, 0 },	    [RDMAP_READ_REQ] = { false, 1 },
	[RDMAP_READ_RESP] = { true, 0 },    [RDMAP_SEND] = { false, 0 },
	[RDMAP_SEND_INV] = { false, 0 },    [RDMAP_SEND_SE] = { false, 0 },
	[RDMAP_SEND_SE_INV] = { false, 0 }, [RDMAP_TERMINATE] = { false, 2 },
	[RDMAP_IMM] = { false, 0 },	    [RDMAP_IMM_SE] = { false, 0 },
	[RDMAP_ATOMIC_REQ] = { false, 1 },  [RDMAP_ATOMIC_RESP] = { false, 3 },
};

static void split_untagged(struct peer *p, struct seg *s)
{
	const uint8_t *u = s->ulpdu;
	bool invalidates = s->opcode == RDMAP_SEND_INV || s->opcode == RDMAP_SEND_SE_INV;

	check(s->ulpdu_len >= 18, "a ULPDU of %zu octets", s->ulpdu_len);
	s->stag = (uint32_t)raw_get(u + 2, 4);
	s->qn = (uint32_t)raw_get(u + 6, 4);
	s->msn = (uint32_t)raw_get(u + 10, 4);
	s->mo = (uint32_t)raw_get(u + 14, 4);
	s->payload = u + 18;
	s->len = s->ulpdu_len - 18;
	check(s->qn == opcode_rows[s->opcode].qn, "opcode %u on queue %u", s->opcode, s->qn);
	check(invalidates || !s->stag, "Invalidate STag %#x with opcode %u", s->stag, s->opcode);
	check(s->msn == p->rx_msn[s->qn], "MSN %u on queue %u, not %u", s->msn, s->qn,
	      p->rx_msn[s->qn]);
	p->rx_msn[s->qn] += s->last;
}

static void split(struct peer *p, struct seg *s)
{
	const uint8_t *u = s->ulpdu;

	check(s->ulpdu_len >= 14, "a ULPDU of %zu octets", s->ulpdu_len);
	check((u[0] & 0x3f) == 1, "DDP control octet %#x", u[0]);
	check((u[1] & 0xf0) == 0x40, "RDMAP control octet %#x", u[1]);
	s->tagged = u[0] & 0x80;
	s->last = u[0] & 0x40;
	s->opcode = u[1] & 0x0f;
	check(s->opcode < RDMAP_OPCODES, "opcode %#x", s->opcode);
	check(s->tagged == opcode_rows[s->opcode].tagged, "opcode %u with T %d", s->opcode,
	      s->tagged);
	if (!s->tagged) {
		split_untagged(p, s);
		return;
	}
	s->stag = (uint32_t)raw_get(u + 2, 4);
	s->to = raw_get(u + 6, 8);
	s->payload = u + 14;
	s->len = s->ulpdu_len - 14;
}

bool peer_try_recv(struct peer *p, struct seg *s)
{
	memset(s, 0, offsetof(struct seg, fpdu));
	if (!take_fpdu(p, s))
		return false;
	split(p, s);
	return true;
}

void peer_recv(struct peer *p, struct seg *s)
{
	while (p->write_retries && peer_fill(p, 20) && drop_write_retry(p))
		;
	check(peer_try_recv(p, s), "no FPDU came: %zu octets, %s", p->fill,
	      p->ended || p->broken ? "and the connection ended" : "and time is up");
}

void peer_recv_op(struct peer *p, struct seg *s, uint8_t opcode)
{
	peer_recv(p, s);
	if (s->opcode == RDMAP_TERMINATE && opcode != RDMAP_TERMINATE)
		fail("Terminate %#llx instead of opcode %u",
		     (unsigned long long)raw_get(s->payload, 3), opcode);
	check(s->opcode == opcode, "opcode %u, not %u", s->opcode, opcode);
}

size_t peer_recv_message(struct peer *p, uint8_t opcode, uint8_t *out, size_t room)
{
	static struct seg s;
	size_t n = 0;

	do {
		peer_recv_op(p, &s, opcode);
		check(n + s.len <= room, "a message of more than %zu octets", room);
		memcpy(out + n, s.payload, s.len);
		n += s.len;
	} while (!s.last);
	return n;
}
