/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ends that tests of streams use.
 */
#include "tests/unit/stream/ends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "tests/unit/tcp_pair.h"

struct stream_param ends_param;
int ends_mss;
bool ends_auto;
uint32_t ends_without[2];
uint8_t ends_rtr;

void ends_tcp(int fd[2])
{
	tcp_pair(fd, ends_mss, 0);
}

struct stream *ends_attach(int fd, bool initiator)
{
	struct stream_param param = ends_param;
	struct stream *s = NULL;

	param.initiator = initiator;
	param.opts.mode = ends_auto ? CONFIG_USE_AUTO : CONFIG_USE_DDP;
	param.without |= ends_without[!initiator];
	cr_assert_eq(stream_attach(fd, &param, &s), 0);
	return s;
}

void ends_open(struct stream *s[2])
{
	int fd[2], err[2];

	ends_tcp(fd);
	s[0] = ends_attach(fd[0], true);
	s[1] = ends_attach(fd[1], false);
	for (int i = 0; i < 1000; i++) {
		err[0] = stream_progress(s[0]);
		err[1] = stream_progress(s[1]);
		if (!err[0] && !err[1] && stream_levels(s[1], NULL) & STREAM_WRITABLE)
			return;
		usleep(100);
	}
	cr_assert_fail("start-up: %d, %d", err[0], err[1]);
}

void ends_narrow(struct stream *s)
{
	int room = 1;

	cr_assert_eq(setsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
}

void ends_destroy(struct stream *s[2])
{
	for (int i = 0; i < 2; i++) {
		close(s[i]->fd);
		stream_destroy(s[i]);
	}
}

/* --- the raw peer --- */

void ends_peer_init(struct ends_peer *p, int fd)
{
	struct rnic_stream_param param = { .initiator = true,
					   .crc = true,
					   .mpa_rev = 2,
					   .p2p = ends_rtr,
					   .rtr = ends_rtr,
					   .ord = 1 };

	*p = (struct ends_peer){
		.fd = fd,
		.rnic = rnic_find(NULL)->stream,
		.mem = { .state = calloc(1, RNIC_STREAM_STATE),
			 .rest = calloc(1, RNIC_STREAM_REST),
			 .in = calloc(1, RNIC_STREAM_IN) },
		.sgl = { .to = 0x1000, .len = 128, .tag = STREAM_SGL_WINDOW },
		.ring = { .to = 0x200000, .len = 1 << 20, .tag = STREAM_RING_WINDOW },
	};
	cr_assert_eq(p->rnic->init(&p->mem, fd, &param), 0);
	cr_assert_eq(p->rnic->window(&p->mem, 0, &p->sgl), 0);
	cr_assert_eq(p->rnic->window(&p->mem, 1, &p->ring), 0);
}

struct rs_conn_data ends_conn_data(const struct ends_peer *p, uint16_t credits, uint32_t room)
{
	return (struct rs_conn_data){
		.version = RS_VERSION,
		.flags = RS_CONN_IOMAP,
		.credits = htobe16(credits),
		.target_sgl = { htobe64(p->sgl.to), htobe32(p->sgl.stag), htobe32(2) },
		.data_buf = { htobe64(p->ring.to), htobe32(p->ring.stag), htobe32(room) },
	};
}

bool ends_peer_open(struct ends_peer *p, struct stream *s, const void *pd, size_t len)
{
	uint8_t theirs[MPA_PD_MAX];
	size_t theirs_len = sizeof(theirs);
	short events;
	int state = -EAGAIN;

	for (int i = 0; i < 1000 && state == -EAGAIN; i++) {
		state = p->rnic->start(&p->mem, p->fd, pd, len, &events);
		stream_progress(s);
		usleep(100);
	}
	if (state != RNIC_STREAM_OPEN)
		return false;
	cr_assert_eq(p->rnic->flush(&p->mem, p->fd), 0);
	cr_assert_eq(p->rnic->private_data(&p->mem, theirs, &theirs_len), 0);
	cr_assert_geq(theirs_len, sizeof(p->theirs));
	memcpy(&p->theirs, theirs, sizeof(p->theirs));
	return true;
}

void ends_peer_destroy(struct ends_peer *p)
{
	close(p->fd);
	free(p->mem.state);
	free(p->mem.rest);
	free(p->mem.in);
}

static void post(struct ends_peer *p, const struct rnic_stream_wr *wr)
{
	int done = -EAGAIN;

	for (int i = 0; i < 1000 && done == -EAGAIN; i++) {
		done = p->rnic->send(&p->mem, p->fd, wr, 1);
		if (done == -EAGAIN)
			usleep(1000);
	}
	cr_assert_eq(done, 1, "the peer could not send: %d", done);
	for (int i = 0; i < 1000 && p->rnic->owes(&p->mem); i++)
		p->rnic->flush(&p->mem, p->fd);
}

static void cork(int fd, int on)
{
	cr_assert_eq(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on)), 0);
}

void ends_peer_say(struct ends_peer *p, void (*say)(struct ends_peer *p))
{
	int left = 1;

	cork(p->fd, 1);
	say(p);
	cork(p->fd, 0);
	for (int i = 0; i < 5000 && left; i++) {
		usleep(200);
		cr_assert_eq(ioctl(p->fd, SIOCOUTQ, &left), 0);
	}
}

void ends_peer_write(struct ends_peer *p, uint32_t stag, uint64_t to, const void *data,
		     uint32_t len)
{
	struct iovec iov = { (void *)data, len };
	struct rnic_stream_wr wr = { stag, to, &iov, 1, len, NULL, false };

	post(p, &wr);
}

void ends_peer_send(struct ends_peer *p, const void *data, uint32_t len)
{
	ends_peer_write(p, 0, 0, data, len);
}

void ends_peer_message(struct ends_peer *p, uint32_t msg)
{
	uint8_t octets[4];

	base_put_le32(octets, msg);
	ends_peer_send(p, octets, sizeof(octets));
}

static int peer_write(void *ctx, const struct rnic_window *w, uint64_t off, const void *octets,
		      size_t len)
{
	struct ends_peer *p = ctx;

	if (off < sizeof(p->memory))
		memcpy(p->memory + off, octets, base_min(len, sizeof(p->memory) - off));
	return 0;
}

static int peer_message(void *ctx, uint64_t off, const void *octets, size_t len, bool last)
{
	struct ends_peer *p = ctx;

	cr_assert(last && off == 0 && len >= 4);
	p->messages[p->n++] = base_get_le32(octets);
	return 0;
}

void ends_peer_drain(struct ends_peer *p)
{
	struct rnic_sink sink = { .write = peer_write, .message = peer_message, .ctx = p };
	ssize_t got;

	/* Loopback delivers at once, but not in the same instruction */
	usleep(2000);
	do {
		got = p->rnic->receive(&p->mem, p->fd, &sink, 0);
	} while (got > 0);
	p->ended |= got != -EAGAIN;
}

pid_t ends_fork(void)
{
	pid_t pid;

	stream_before_fork();
	pid = fork();
	stream_after_fork(!pid);
	return pid;
}
