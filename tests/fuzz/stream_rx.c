/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stream between a peer that says anything and a program that calls anything.
 *
 * The provider below is memory: what the peer says waits in a list until the stream takes it in,
 * and the transport takes as much as the input lets it. The input is a run of commands, some the
 * peer's and some the program's. The octet at each place of the stream is known, so that none may
 * be lost, doubled or altered; what was refused must end the connection.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wire/rsockets.h>

#include "base/bits.h"
#include "base/log.h"
#include "rnic/rnic.h"
#include "stream/life/life.h"

#define RING 8192u
#define BODY 4096u
#define WAITING 64u
#define STAGS 100u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct said {
	bool write;
	uint32_t tag;
	uint64_t off;
	size_t len, cut; /* a Send comes in two parts, the second begins at cut */
	uint8_t octets[BODY + 16];
};

static struct {
	const uint8_t *p, *end;
	struct rnic_window window[RNIC_WINDOWS];
	struct said said[WAITING];
	unsigned int first, n;
	uint8_t pd[256];
	size_t pd_len;
	bool initiator, open, refused;
	int ended; /* 0 no, 1 FIN, else -errno */
	unsigned int room;
	uint64_t at;	   /* octets that the peer has said, */
	uint64_t told;	   /* and that a DATA told of */
	uint64_t accepted; /* of the octets, those that the stream took */
	uint64_t read;
	uint32_t looked;
	bool messages; /* octets of user messages are not followed */
} w;

/* --- input --- */

static uint8_t octet(void)
{
	return w.p < w.end ? *w.p++ : 0;
}

static uint32_t word(unsigned int octets)
{
	uint32_t v = 0;

	while (octets--)
		v = v << 8 | octet();
	return v;
}

static uint8_t pattern(uint64_t at)
{
	return (uint8_t)(at * 37 + (at >> 8));
}

static void need(bool good)
{
	if (!good)
		abort();
}

/* --- the provider --- */

static int fake_init(const struct rnic_stream_mem *mem, int fd,
		     const struct rnic_stream_param *param)
{
	return 0;
}

static int fake_window(const struct rnic_stream_mem *mem, unsigned int i, struct rnic_window *win)
{
	win->stag = STAGS + i;
	w.window[i] = *win;
	return 0;
}

static int fake_start(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len,
		      short *events)
{
	return w.initiator ? RNIC_STREAM_OPEN : RNIC_STREAM_REQUEST;
}

static int fake_private_data(const struct rnic_stream_mem *mem, void *pd, size_t *len)
{
	*len = base_min(*len, w.pd_len);
	memcpy(pd, w.pd, *len);
	return 0;
}

static int fake_accept(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len)
{
	need(len >= RS_CONN_DATA_LEN && len <= 508);
	return 0;
}

static int fake_reject(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len)
{
	return 0;
}

/* Looks at each octet, for the sanitizer to see that it is there */
static int fake_send(const struct rnic_stream_mem *mem, int fd, const struct rnic_stream_wr *wr,
		     unsigned int n)
{
	n = base_min(n, w.room);
	w.room -= n;
	for (unsigned int i = 0; i < n; i++) {
		size_t len = 0;

		for (unsigned int k = 0; k < wr[i].niov; k++) {
			len += wr[i].iov[k].iov_len;
			for (size_t b = 0; b < wr[i].iov[k].iov_len; b++)
				w.looked += ((const uint8_t *)wr[i].iov[k].iov_base)[b];
		}
		need(len == wr[i].len);
	}
	return n ? (int)n : -EAGAIN;
}

static unsigned int fake_segment(const struct rnic_stream_mem *mem, unsigned int message)
{
	return 1000;
}

static int fake_flush(const struct rnic_stream_mem *mem, int fd)
{
	return w.room ? 0 : -EAGAIN;
}

static bool fake_owes(const struct rnic_stream_mem *mem)
{
	return false;
}

static void fake_align(const struct rnic_stream_mem *mem, bool on)
{
}

static int send_part(const struct said *s, const struct rnic_sink *sink)
{
	int err = 0;

	if (s->cut)
		err = sink->message(sink->ctx, 0, s->octets, s->cut, false);
	return err ? err
		   : sink->message(sink->ctx, s->cut, s->octets + s->cut, s->len - s->cut, true);
}

static int deliver(const struct said *s, const struct rnic_sink *sink)
{
	if (!s->write)
		return send_part(s, sink);
	for (unsigned int i = 0; i < RNIC_WINDOWS; i++)
		if (w.window[i].tag == s->tag && w.window[i].len && s->off < w.window[i].len &&
		    s->len <= w.window[i].len - s->off)
			return sink->write(sink->ctx, &w.window[i], s->off, s->octets, s->len);
	return -EPROTO;
}

static ssize_t fake_receive(const struct rnic_stream_mem *mem, int fd, const struct rnic_sink *sink,
			    size_t budget)
{
	size_t sum = 0;

	while (!w.refused && w.n && (!budget || !sum)) {
		const struct said *s = &w.said[w.first];

		w.refused = deliver(s, sink) != 0;
		sum += s->len + 1;
		w.first = (w.first + 1) % WAITING;
		w.n--;
	}
	if (w.refused)
		return -EPROTO;
	if (sum)
		return (ssize_t)sum;
	return w.ended == 1 ? 0 : w.ended ? w.ended : -EAGAIN;
}

static void fake_info(const struct rnic_stream_mem *mem, struct rnic_stream_info *info)
{
	*info = (struct rnic_stream_info){ .state = w.refused ? RNIC_STREAM_BROKEN
							      : RNIC_STREAM_OPEN,
					   .may_send = true,
					   .mulpdu = 1400 };
}

static int fake_shutdown(const struct rnic_stream_mem *mem, int fd)
{
	return 0;
}

/* One-sided operations are for the tests of soft/ and rdmap/: here is memory, but none to use */
static int fake_create(const struct rnic_stream_mem *mem, uint16_t ird, uint16_t ord,
		       struct rnic_regions **out)
{
	static struct rnic_regions regions;

	*out = &regions;
	return 0;
}

static void fake_done(struct rnic_regions *regions)
{
}

static const struct rnic_onesided_ops fake_onesided = { .create = fake_create,
							.destroy = fake_done,
							.close = fake_done };

static const struct rnic_stream_ops fake_stream = {
	.init = fake_init,
	.window = fake_window,
	.start = fake_start,
	.private_data = fake_private_data,
	.accept = fake_accept,
	.reject = fake_reject,
	.send = fake_send,
	.segment = fake_segment,
	.flush = fake_flush,
	.owes = fake_owes,
	.align = fake_align,
	.receive = fake_receive,
	.info = fake_info,
	.shutdown = fake_shutdown,
	.onesided = &fake_onesided,
	.carrier = &rnic_socket_carrier,
};
static const struct rnic_ops fake = { .name = "memory", .stream = &fake_stream };

/* --- the peer --- */

static struct said *say(bool write, uint32_t tag, uint64_t off, size_t len)
{
	struct said *s = &w.said[(w.first + w.n) % WAITING];

	if (w.n == WAITING)
		return NULL;
	w.n++;
	*s = (struct said){ .write = write, .tag = tag, .off = off, .len = len };
	return s;
}

static void say_octets(uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = pattern(w.at + i);
	w.at += len;
}

static void peer_write(void)
{
	size_t len = word(2) % BODY;
	struct said *s =
		say(true, STREAM_RING_WINDOW, w.at % RING, base_min(len, RING - w.at % RING));

	if (s)
		say_octets(s->octets, s->len);
}

static void peer_message(uint32_t msg, const void *body, size_t len)
{
	struct said *s = say(false, 0, 0, RS_MSG_LEN + len);

	if (!s)
		return;
	base_put_le32(s->octets, msg);
	memcpy(s->octets + RS_MSG_LEN, body, len);
	s->cut = octet() & 1 ? octet() % s->len : 0;
}

static void peer_data(void)
{
	peer_message(rs_msg(RS_OP_DATA, (uint32_t)(w.at - w.told)), "", 0);
	w.told = w.at;
}

static void peer_inline(void)
{
	uint8_t body[BODY];
	uint32_t drawn = word(2), len = drawn % BODY;

	say_octets(body, len);
	w.told = w.at;
	peer_message((uint32_t)1 << 29 | (drawn & 0x8000 ? STREAM_INLINE_URGENT : 0) | len, body,
		     len);
}

/* There are slots for two */
static void peer_map(uint8_t slot)
{
	struct said *s = say(true, STREAM_SGL_WINDOW, RS_SGL_LEN + slot * sizeof(struct rs_iomap),
			     sizeof(struct rs_iomap));

	if (!s)
		return;
	base_put_le32(s->octets, word(1));
	base_put_le32(s->octets + 12, word(4));
	base_put_le32(s->octets + 16, STAGS + 50);
	base_put_le32(s->octets + 20, word(2));
	peer_message(rs_msg(RS_OP_IOMAP_SGL, slot), "", 0);
}

static void peer_sge(void)
{
	uint8_t slot = octet();
	struct said *s;

	if (slot & 0x80) {
		peer_map(slot % 3);
		return;
	}
	s = say(true, STREAM_SGL_WINDOW, slot % 3 * sizeof(struct rs_sge), sizeof(struct rs_sge));
	if (!s)
		return;
	base_put_le32(s->octets, 0x1000);
	base_put_le32(s->octets + 8, STAGS + 50);
	base_put_le32(s->octets + 12, word(2));
}

/* Whatever it is, octets of the stream are not followed behind it unless it is refused */
static void peer_anything(void)
{
	uint8_t body[64] = { 0 };
	uint32_t msg = word(4), len = octet() % sizeof(body);

	for (uint32_t i = 0; i < len; i++)
		body[i] = octet();
	w.messages = true;
	peer_message(msg, body, len);
}

static void peer_wild(void)
{
	struct said *s = say(true, octet() & 1, word(2), octet());

	w.messages = true;
	if (s)
		memset(s->octets, 0xEE, s->len);
}

static void peer_ends(void)
{
	w.ended = octet() & 1 ? 1 : -ECONNRESET;
}

/* --- the program --- */

static void program_recv(struct stream *s)
{
	static const int flags[] = { 0, 0, 0, MSG_PEEK, MSG_TRUNC, MSG_PEEK | MSG_TRUNC };
	static uint8_t buf[2 * BODY];
	int flag = flags[octet() % 6];
	size_t len = word(2) % sizeof(buf), half = len / 2;
	struct iovec iov[2] = { { buf, half }, { buf + half, len - half } };
	ssize_t got = stream_recv(s, iov, 2, flag | STREAM_STOP);
	struct stream_stats stats;

	/* An urgent octet may be left out, also one behind what was read; it counts as read */
	if (got == -ESTALE && !(flag & MSG_PEEK))
		got = stream_recv(s, iov, 2, flag);
	need(got <= (ssize_t)len);
	stream_stats(s, &stats);
	w.read = stats.rx_octets - (got > 0 && !(flag & MSG_PEEK) ? (uint64_t)got : 0);
	if (got > 0 && w.read && !(flag & (MSG_PEEK | MSG_TRUNC)) && buf[0] != pattern(w.read))
		w.read--;
	for (ssize_t i = 0; i < got && !(flag & MSG_TRUNC) && !w.messages; i++)
		need(buf[i] == pattern(w.read + (uint64_t)i));
	need(w.messages || stats.rx_octets <= w.told);
}

static void program_urgent(struct stream *s, struct iovec *iov)
{
	uint8_t which = octet(), urgent;
	int got;

	if (which & 1)
		stream_urgent_send(s, iov, 1);
	else if (which & 2)
		stream_set_inline(s, which & 4);
	got = stream_urgent_recv(s, &urgent, which & 8 ? MSG_PEEK : 0);
	need(got < 0 || got == 1);
	need(got < 0 || stream_levels(s, NULL) & STREAM_URGENT || !(which & 8));
}

static void program_message(struct stream *s)
{
	uint8_t buf[256], which;
	struct iovec iov = { buf, octet() };
	size_t len = 0;

	memset(buf, 1, sizeof(buf));
	which = octet();
	if (which & 2)
		program_urgent(s, &iov);
	else if (which & 1)
		stream_message_send(s, buf, iov.iov_len);
	else
		stream_message_recv(s, &iov, 1, octet() & 1 ? MSG_PEEK : 0, &len);
}

static void program_send(struct stream *s)
{
	static const uint8_t buf[3 * BODY];
	struct iovec iov = { (void *)buf, word(2) % sizeof(buf) };
	struct stream_job job = { .addr = (void *)buf, .len = 10, .to = octet(), .mapped = true };
	ssize_t sent = stream_send(s, &iov, 1);

	need(sent <= (ssize_t)iov.iov_len);
	stream_post(s, &job);
}

static void program_looks(struct stream *s)
{
	struct stream_edges edges;
	unsigned int levels;

	stream_progress(s);
	levels = stream_levels(s, &edges);
	need(!stream_readable(s) || levels & (STREAM_READABLE | STREAM_SOME));
	need(!w.refused || levels & STREAM_READABLE);
	stream_wait_events(s, STREAM_READABLE | STREAM_WRITABLE);
	stream_owes(s);
	if (octet() & 1)
		stream_take_error(s);
	if (octet() & 1)
		stream_set_lowat(s, octet());
}

/* True: it is closed */
static bool command(struct stream *s)
{
	static void (*const peer[])(void) = { peer_write,    peer_data, peer_inline, peer_sge,
					      peer_anything, peer_wild, peer_ends };
	static void (*const program[])(struct stream * s) = { program_recv, program_recv,
							      program_send, program_looks,
							      program_message };
	uint8_t which = octet() % 16;

	if (which < base_array_size(peer))
		peer[which]();
	else if (which < base_array_size(peer) + base_array_size(program))
		program[which - base_array_size(peer)](s);
	else if (which == 12)
		w.room = octet() % 20;
	else if (which == 13)
		stream_shutdown(s, octet() % 4);
	else if (which == 14)
		peer_message(rs_msg(RS_OP_SGL, word(2)), "", 0);
	else
		return octet() % 8 == 0;
	return false;
}

static void lingers(struct stream *s)
{
	bool safe;

	stream_close(s);
	for (unsigned int i = 0; i < 8 && w.p < w.end; i++) {
		w.room = 10;
		peer_anything();
		if (stream_close_more(s, &safe) != -EAGAIN)
			break;
	}
}

/* --- start-up --- */

static void private_data(uint8_t features)
{
	struct rs_conn_data cd = {
		.version = RS_VERSION,
		.credits = htobe16(64),
		.target_sgl = { htobe64(0x2000), htobe32(STAGS + 60), htobe32(2) },
		.data_buf = { htobe64(0x1000), htobe32(STAGS + 50), htobe32(4096) },
	};
	static const uint8_t head[] = { 'W', 'A', 'R', 'P', 1, 0, 0, 16, 1, 4, 0, 0, 0 };
	static const uint8_t window[] = { 2, 8, 0, 0, 0, 0, 0, 0, 0x40, 0 };

	memcpy(w.pd, &cd, sizeof(cd));
	w.pd_len = sizeof(cd);
	if (!features)
		return;
	memcpy(w.pd + w.pd_len, head, sizeof(head));
	w.pd[w.pd_len + sizeof(head)] = features &
					(STREAM_FEATURE_URGENT | STREAM_FEATURE_HELD | 0x0F);
	memcpy(w.pd + w.pd_len + sizeof(head) + 1, window, sizeof(window));
	w.pd_len += sizeof(head) + 1 + sizeof(window);
}

static void begin(void)
{
	uint8_t how = octet();

	w.initiator = how & 1;
	private_data(
		(uint8_t)(how >> 4 | (how & 8 ? STREAM_FEATURE_URGENT | STREAM_FEATURE_HELD : 0)));
	/* Now and then octets of it are the input's */
	for (unsigned int i = how & 2 ? octet() % 8 : 0; i; i--)
		w.pd[octet() % w.pd_len] = octet();
	if (how & 4)
		w.pd_len = base_min(w.pd_len, octet());
	w.room = 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd[2] = { -1, -1 };
	struct stream_param param = {
		.opts = { .ring = RING, .mode = CONFIG_USE_DDP, .provider = "memory" },
	};
	struct stream *s;

	if (fd[0] < 0) {
		base_log_level = BASE_LOG_OFF; /* refusals are what it is about */
		rnic_register(&fake);
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
			abort();
	}
	memset(&w, 0, sizeof(w));
	w.p = data;
	w.end = data + size;
	begin();
	param.initiator = w.initiator;
	param.opts.maps = 2;
	if (stream_attach(fd[0], &param, &s))
		abort();
	stream_progress(s);
	while (w.p < w.end && !command(s))
		;
	lingers(s);
	stream_destroy(s);
	return 0;
}
