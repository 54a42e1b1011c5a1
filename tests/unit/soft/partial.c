/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A socket buffer that takes what it likes: the octets on the wire are the same as with one that
 * takes everything. The peer is a plain socket that answers the Request and collects what
 * follows.
 */
#include "tests/unit/soft/pair.h"

#include "base/bits.h"

#define OPS 400
#define COLLECTED (4 << 20)

static uint8_t payload[9000];

struct run {
	int fd[2];
	struct pair_end end;
	uint8_t *octets;
	size_t len;
	unsigned int refusals; /* -EAGAIN seen */
};

static void collect(struct run *r, size_t max)
{
	ssize_t n =
		recv(r->fd[1], r->octets + r->len, base_min(max, COLLECTED - r->len), MSG_DONTWAIT);

	if (n > 0)
		r->len += (size_t)n;
}

static void run_open(struct run *r, const struct rnic_stream_param *p, int sndbuf)
{
	static const char reply[] = "MPA ID Rep Frame\x00\x01\x00\x00";
	char request[20], answer[20];
	short events;

	memset(r, 0, sizeof(*r));
	r->octets = malloc(COLLECTED);
	tcp_pair(r->fd, 1000, sndbuf);
	pair_end_init(&r->end, r->fd[0], p);
	cr_assert_eq(PAIR_OPS->start(&r->end.mem, r->end.fd, NULL, 0, &events), -EAGAIN);
	cr_assert_eq(recv(r->fd[1], request, sizeof(request), MSG_WAITALL), 20);
	memcpy(answer, reply, sizeof(answer));
	answer[16] = (char)(p->markers || p->crc ? 0xC0 : 0x80);
	cr_assert_eq(send(r->fd[1], answer, sizeof(answer), 0), 20);
	cr_assert_eq(pair_start(&r->end, NULL, 0), RNIC_STREAM_OPEN);
}

static struct rnic_stream_wr op_make(unsigned int i, struct iovec *iov)
{
	struct rnic_stream_wr wr = { .iov = iov, .niov = 2, .len = (i * 2654435761u >> 8) % 9000 };

	if (i % 3)
		wr.stag = 0x12345600 + i;
	wr.to = (uint64_t)i << 33;
	iov[0] = (struct iovec){ payload, wr.len / 3 };
	iov[1] = (struct iovec){ payload + wr.len / 3, wr.len - wr.len / 3 };
	return wr;
}

static void run_ops(struct run *r, size_t reads)
{
	for (unsigned int i = 0; i < OPS;) {
		struct rnic_stream_wr wr[4];
		struct iovec iov[4][2];
		unsigned int n = base_min(4u, OPS - i);
		int got;

		for (unsigned int k = 0; k < n; k++)
			wr[k] = op_make(i + k, iov[k]);
		got = PAIR_OPS->send(&r->end.mem, r->end.fd, wr, n);
		cr_assert(got > 0 || got == -EAGAIN, "%d", got);
		r->refusals += got < (int)n;
		i += got > 0 ? (unsigned int)got : 0;
		collect(r, reads);
	}
	while (PAIR_OPS->flush(&r->end.mem, r->end.fd) == -EAGAIN)
		collect(r, reads);
	cr_assert_eq(PAIR_OPS->shutdown(&r->end.mem, r->end.fd), 0);
	for (size_t had = 0; had != r->len || had == 0;) {
		had = r->len;
		pair_wait(r->fd[1], POLLIN);
		collect(r, COLLECTED);
	}
}

static void run_close(struct run *r)
{
	pair_end_uninit(&r->end);
	close(r->fd[1]);
	free(r->octets);
}

static void compare(const struct rnic_stream_param *p)
{
	struct run all, some;

	for (unsigned int i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * i >> 5);
	run_open(&all, p, 8 << 20);
	run_ops(&all, COLLECTED);
	for (size_t reads = 700; reads < 40000; reads = reads * 5 + 3) {
		run_open(&some, p, 4096);
		run_ops(&some, reads);
		cr_assert_gt(some.refusals, 10);
		cr_assert_eq(some.len, all.len);
		cr_assert_eq(memcmp(some.octets, all.octets, all.len), 0);
		run_close(&some);
	}
	run_close(&all);
}

TestSuite(soft_partial, .timeout = 60);

Test(soft_partial, with_crc_a_record_each)
{
	compare(&(struct rnic_stream_param){ .initiator = true, .crc = true, .mpa_rev = 1 });
}

Test(soft_partial, without_crc_many_at_once)
{
	compare(&(struct rnic_stream_param){ .initiator = true, .mpa_rev = 1 });
}
