/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Case 125: atomics of several streams of one device on the same memory.
 *
 * 	 3 peers, processes  ------ 3 TCP connections ------>  the device, a thread to each
 *
 * Each adds 1 time and again, and notes what it found there: all that they found must be
 * different, and the sum must be right.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

enum { STREAMS = 3, ADDS = 1500, AHEAD = 6 };

/* What the processes share */
struct board {
	uint64_t found[STREAMS][ADDS];
	uint64_t to; /* of the word, with the STag, before anybody begins */
	uint32_t stag;
};

static void idle(void *ctx)
{
}

static void add_in_turn(const struct board *b, struct peer *p, uint64_t *found)
{
	static struct seg seg;
	struct atomic a = { .stag = b->stag, .to = b->to, .data = 1 };

	for (uint32_t i = 0; i < ADDS; i++) {
		for (; a.id < ADDS && a.id < i + AHEAD; a.id++)
			peer_atomic(p, &a);
		peer_recv_op(p, &seg, RDMAP_ATOMIC_RESP);
		check_eq(raw_get(seg.payload, 4), i);
		found[i] = raw_get(seg.payload + 4, 8);
	}
}

_Noreturn static void be_peer(const struct board *b, int fd, uint64_t *found)
{
	static struct peer p;
	struct llp l;
	struct frame f;

	llp_tcp_init(&l, fd);
	peer_init(&p, &l, idle, NULL);
	p.quiet_ms = 1;
	peer_send_request(&p, 0x40, 1, NULL, 0);
	peer_recv_frame(&p, &f);
	p.crc = true;
	add_in_turn(b, &p, found);
	_exit(0);
}

struct stream {
	struct warp_cq *cq;
	struct warp_qp *qp;
	struct warp_conn *conn;
	pthread_t thread;
};

static void *serve(void *arg)
{
	struct stream *s = arg;
	struct warp_conn_info info;

	do {
		warp_cq_wait(s->cq, 1);
		warp_cq_poll(s->cq, NULL, 0);
		warp_conn_query(s->conn, &info);
	} while (info.state <= WARP_CONN_ESTABLISHED);
	return NULL;
}

static void accept_stream(struct stream *s, struct warp_device *dev, struct warp_pd *pd, int fd)
{
	const struct warp_conn_param param = { .ird = 8, .ord = 8, .flags = WARP_CONN_REV1 };
	struct warp_qp_attr attr = {
		.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1
	};

	check_eq(warp_cq_create(dev, 16, &s->cq), 0);
	attr.send_cq = attr.recv_cq = s->cq;
	check_eq(warp_qp_create(pd, &attr, &s->qp), 0);
	check_eq(warp_accept_fd(dev, fd, &param, &s->conn), 0);
	check_eq(warp_conn_wait(s->conn, 3000), 0);
	check_eq(warp_conn_accept(s->conn, s->qp, &param), 0);
	check_eq(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void end_stream(struct stream *s)
{
	check_eq(pthread_join(s->thread, NULL), 0);
	check_eq(warp_conn_destroy(s->conn), 0);
	check_eq(warp_qp_destroy(s->qp), 0);
	check_eq(warp_cq_destroy(s->cq), 0);
}

static void wait_for(pid_t pid)
{
	int status;

	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status),
	      "a peer failed: %#x", status);
}

/* The values that were found are those from 0 on, each once */
static void judge(const struct board *b, uint64_t sum)
{
	static bool seen[STREAMS * ADDS];

	check_eq(sum, STREAMS * ADDS);
	for (size_t i = 0; i < STREAMS * ADDS; i++) {
		uint64_t v = b->found[i / ADDS][i % ADDS];

		check(v < STREAMS * ADDS && !seen[v], "%llu was found twice",
		      (unsigned long long)v);
		seen[v] = true;
	}
}

static void atomic_across_streams(struct world *w)
{
	static uint64_t word[8] __attribute__((aligned(64)));
	struct board *b =
		mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct stream s[STREAMS];
	struct warp_device *dev;
	struct warp_pd *pd;
	struct warp_mr *mr;
	pid_t pids[STREAMS];
	int fds[STREAMS][2];

	check(b != MAP_FAILED, "no memory");
	check_eq(warp_device_open("soft", &dev), 0);
	check_eq(warp_pd_create(dev, &pd), 0);
	check_eq(warp_mr_register(pd, word, sizeof(word), WARP_ACCESS_REMOTE_ATOMIC, &mr), 0);
	b->stag = warp_mr_stag(mr);
	b->to = (uintptr_t)word;
	for (int i = 0; i < STREAMS; i++) {
		tcp_pair(fds[i], 0);
		pids[i] = fork();
		if (!pids[i])
			be_peer(b, fds[i][0], b->found[i]);
		close(fds[i][0]);
	}
	for (int i = 0; i < STREAMS; i++)
		accept_stream(&s[i], dev, pd, fds[i][1]);
	for (int i = 0; i < STREAMS; i++)
		wait_for(pids[i]);
	for (int i = 0; i < STREAMS; i++)
		end_stream(&s[i]);
	check_eq(warp_mr_deregister(mr), 0);
	check_eq(warp_pd_destroy(pd), 0);
	check_eq(warp_device_close(dev), 0);
	judge(b, word[0]);
	munmap(b, sizeof(*b));
}

static const struct row rows[] = {
	CASE_ON(125, "7306 5.3", "atomic against the other streams of the device",
		atomic_across_streams, SOFT,
		"the layers are one stream: what it shares is the provider's"),
};

ROWS(device, rows);
