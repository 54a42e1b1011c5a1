/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many connections of the native API at once, one request under way on each:
 *
 *     bench_native serve send|write HOST PORT CONNECTIONS SIZE
 *     bench_native send|write HOST PORT CONNECTIONS SIZE SECONDS PID
 *     bench_native serve pingpong HOST PORT 1 SIZE
 *     bench_native pingpong HOST PORT 1 SIZE SECONDS PID
 *
 * send: a Send of SIZE bytes, and the server's program answers with one of 64. write: a Write of
 * SIZE bytes and a Read of 8 behind it; the server's program sleeps, and its library serves. PID
 * is the server's: the client prints what processor time a request took at either end. pingpong:
 * a Write of SIZE bytes there and one back; both ends look at their memory all the time, of which
 * the last byte counts the Writes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <warp/rdma.h>

#include "bench/tools/tool.h"

#define CONNECTIONS_MAX 20000
#define SIZE_MAX_ (64 << 20)
#define ANSWER 64u
#define WORD 8u
#define DEPTH 4
#define BATCH 32
#define WAIT_MS 20000
/* Of the time, before it counts */
#define WARM_UP 0.1

struct offer {
	uint64_t to;
	uint32_t stag, pad;
};

/* Buffers are one for all connections: what is in them nobody reads */
struct end {
	struct warp_device *dev;
	struct warp_pd *pd;
	struct warp_cq *cq;
	struct warp_mr *mr;
	char *buf; /* size, and behind it ANSWER, or size again for what is sent */
	size_t room;
	uint32_t size;
	bool write, pingpong;
};

struct line {
	struct warp_qp *qp;
	struct warp_conn *conn;
	struct offer offer;
};

static void must(int err, const char *what)
{
	if (err < 0)
		tool_die("%s: %s", what, strerror(-err));
}

static void end_open(struct end *e, unsigned int connections)
{
	unsigned int access = WARP_ACCESS_LOCAL_WRITE;

	if (e->write || e->pingpong)
		access |= WARP_ACCESS_REMOTE_WRITE | WARP_ACCESS_REMOTE_READ;
	e->room = e->pingpong ? 2 * e->size : e->size + ANSWER;
	e->buf = tool_alloc(e->room);
	memset(e->buf, 1, e->room);
	must(warp_device_open("soft", &e->dev), "warp_device_open");
	must(warp_pd_create(e->dev, &e->pd), "warp_pd_create");
	must(warp_cq_create(e->dev, 2 * DEPTH * connections, &e->cq), "warp_cq_create");
	must(warp_mr_register(e->pd, e->buf, e->room, access, &e->mr), "warp_mr_register");
}

static struct line *line_create(const struct end *e)
{
	struct line *l = tool_alloc(sizeof(*l));
	struct warp_qp_attr attr = { .send_cq = e->cq,
				     .recv_cq = e->cq,
				     .max_send_wr = DEPTH,
				     .max_recv_wr = DEPTH,
				     .max_send_sge = 1,
				     .max_recv_sge = 1,
				     .context = l };

	must(warp_qp_create(e->pd, &attr, &l->qp), "warp_qp_create");
	return l;
}

static struct warp_sge piece(const struct end *e, size_t at, uint32_t len)
{
	return (struct warp_sge){ e->buf + at, len, warp_mr_stag(e->mr) };
}

static void receive(const struct end *e, const struct line *l, size_t at, uint32_t len)
{
	struct warp_sge sg = piece(e, at, len);
	struct warp_recv_wr wr = { .sg = &sg, .num_sge = 1 };

	must(warp_qp_post_recv(l->qp, &wr, 1), "warp_qp_post_recv");
}

/* All of them, or why not */
static int post(const struct line *l, const struct warp_send_wr *wr, int n)
{
	int posted = warp_qp_post_send(l->qp, wr, (unsigned int)n);

	return posted >= 0 && posted < n ? -ENOMEM : posted;
}

/* The next completions; a moment's wait may bring none */
static int completions(struct end *e, struct warp_wc *wc)
{
	int n = warp_cq_poll(e->cq, wc, BATCH);

	if (!n) {
		warp_cq_wait(e->cq, 100);
		n = warp_cq_poll(e->cq, wc, BATCH);
	}
	must(n, "warp_cq_poll");
	return n;
}

/* What the peer offers */
static void offer_get(struct line *l)
{
	struct warp_conn_info info;

	must(warp_conn_query(l->conn, &info), "warp_conn_query");
	if (info.private_data_len != sizeof(l->offer))
		tool_die("the peer offers no memory");
	memcpy(&l->offer, info.private_data, sizeof(l->offer));
}

static struct offer offer_of(const struct end *e)
{
	return (struct offer){ (uintptr_t)e->buf, warp_mr_stag(e->mr), 0 };
}

static struct warp_conn_param param_of(const struct offer *offer)
{
	return (struct warp_conn_param){ .ird = DEPTH,
					 .ord = DEPTH,
					 .private_data = offer,
					 .private_data_len = sizeof(*offer) };
}

/* --- Writes there and back --- */

static void strike(const struct end *e, const struct line *l, uint8_t count)
{
	struct warp_sge sg = { e->buf + e->size, e->size, warp_mr_stag(e->mr) };
	struct warp_send_wr wr = { .opcode = WARP_WR_WRITE,
				   .sg = &sg,
				   .num_sge = 1,
				   .remote_stag = l->offer.stag,
				   .remote_to = l->offer.to };

	e->buf[2 * e->size - 1] = (char)count;
	must(post(l, &wr, 1), "warp_qp_post_send");
}

/* The last byte of what the peer writes; -1: the connection has ended */
static int struck(const struct end *e, const struct line *l, uint8_t count)
{
	const char *last = e->buf + e->size - 1;
	struct warp_conn_info info;
	struct warp_wc wc[BATCH];
	unsigned int turns = 0;

	while ((uint8_t)__atomic_load_n(last, __ATOMIC_ACQUIRE) != count) {
		must(warp_cq_poll(e->cq, wc, BATCH), "warp_cq_poll");
		if (++turns % (1 << 16))
			continue;
		must(warp_conn_query(l->conn, &info), "warp_conn_query");
		if (info.state != WARP_CONN_ESTABLISHED)
			return -1;
	}
	return 0;
}

static void strike_back(const struct end *e, const struct line *l)
{
	for (uint8_t count = 2; !struck(e, l, count); count++)
		strike(e, l, count);
}

static uint64_t strikes(const struct end *e, const struct line *l, uint8_t *count, uint64_t until)
{
	uint64_t done = 0;

	do {
		strike(e, l, ++*count);
		if (struck(e, l, *count))
			tool_die("the peer has ended");
		done++;
	} while (tool_now() < until);
	return done;
}

/* --- the server --- */

static struct line *accept_one(struct end *e, struct warp_listener *listener)
{
	struct offer offer = offer_of(e);
	struct warp_conn_param param = param_of(&offer);
	struct line *l = line_create(e);

	must(warp_listener_get(listener, WAIT_MS, &l->conn), "warp_listener_get");
	if (e->pingpong)
		offer_get(l);
	else if (!e->write)
		receive(e, l, 0, e->size);
	must(warp_conn_accept(l->conn, l->qp, &param), "warp_conn_accept");
	return l;
}

static void answer(const struct end *e, const struct warp_wc *wc)
{
	const struct line *l = warp_qp_context(wc->qp);
	struct warp_sge sg = piece(e, e->size, ANSWER);
	struct warp_send_wr wr = { .opcode = WARP_WR_SEND, .sg = &sg, .num_sge = 1 };

	if (wc->status != WARP_WC_SUCCESS || wc->opcode != WARP_WC_RECV)
		return;
	receive(e, l, 0, e->size);
	post(l, &wr, 1);
}

static void serve(struct end *e, const char *host, const char *port, unsigned int connections)
{
	struct sockaddr_in at = tool_address(host, port);
	struct warp_listener *listener;
	struct warp_wc wc[BATCH];
	struct line *l = NULL;

	must(warp_listen(e->dev, (struct sockaddr *)&at, sizeof(at), 1024, &listener), "warp_"
										       "listen");
	for (unsigned int i = 0; i < connections; i++)
		l = accept_one(e, listener);
	if (e->pingpong)
		strike_back(e, l);
	for (;;) {
		int n = e->write ? (pause(), 0) : completions(e, wc);

		for (int i = 0; i < n; i++)
			answer(e, &wc[i]);
	}
}

/* --- the client --- */

static struct line *connect_one(struct end *e, const struct sockaddr_in *at)
{
	struct offer offer = offer_of(e);
	struct warp_conn_param param = param_of(&offer);
	struct line *l = line_create(e);
	int err = warp_connect(l->qp, (const struct sockaddr *)at, sizeof(*at),
			       e->pingpong ? &param : NULL, &l->conn);

	must(err, "warp_connect");
	must(warp_conn_wait(l->conn, WAIT_MS), "warp_conn_wait");
	offer_get(l);
	return l;
}

static void request(const struct end *e, const struct line *l)
{
	struct warp_sge all = piece(e, 0, e->size), word = piece(e, e->size, WORD);
	struct warp_send_wr wr[] = { { .opcode = e->write ? WARP_WR_WRITE : WARP_WR_SEND,
				       .sg = &all,
				       .num_sge = 1,
				       .remote_stag = l->offer.stag,
				       .remote_to = l->offer.to },
				     { .opcode = WARP_WR_READ,
				       .flags = WARP_SEND_SIGNALED,
				       .sg = &word,
				       .num_sge = 1,
				       .remote_stag = l->offer.stag,
				       .remote_to = l->offer.to } };

	if (!e->write)
		receive(e, l, e->size, ANSWER);
	must(post(l, wr, e->write ? 2 : 1), "warp_qp_post_send");
}

/* Until then, and until one has been answered; how many have been */
static uint64_t run(struct end *e, uint64_t until)
{
	struct warp_wc wc[BATCH];
	uint64_t done = 0;

	while (!done || tool_now() < until) {
		int n = completions(e, wc);

		for (int i = 0; i < n; i++) {
			if (wc[i].status != WARP_WC_SUCCESS)
				tool_die("a request failed: %s", warp_wc_status_text(wc[i].status));
			request(e, warp_qp_context(wc[i].qp));
		}
		done += (uint64_t)n;
	}
	return done;
}

static double cpu_of(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		tool_die("process %d: no clock", (int)pid);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void ask(struct end *e, const struct sockaddr_in *at, unsigned int connections,
		double seconds, pid_t server)
{
	double cpu[2], ns = seconds * (double)TOOL_NS;
	struct line **lines = tool_alloc(connections * sizeof(*lines));
	uint64_t begin, done;
	uint8_t count = 1; /* as memory is at first */

	for (unsigned int i = 0; i < connections; i++)
		lines[i] = connect_one(e, at);
	for (unsigned int i = 0; i < connections && !e->pingpong; i++)
		request(e, lines[i]);
	if (e->pingpong)
		strikes(e, lines[0], &count, tool_now() + (uint64_t)(ns * WARM_UP));
	else
		run(e, tool_now() + (uint64_t)(ns * WARM_UP));
	begin = tool_now();
	cpu[0] = cpu_of(getpid());
	cpu[1] = cpu_of(server);
	done = e->pingpong ? strikes(e, lines[0], &count, begin + (uint64_t)ns)
			   : run(e, begin + (uint64_t)ns);
	seconds = (double)(tool_now() - begin) / (double)TOOL_NS;
	printf("{\"requests\": %llu, \"seconds\": %.6f, \"cpu_client\": %.6f, \"cpu_server\": "
	       "%.6f}\n",
	       (unsigned long long)done, seconds, cpu_of(getpid()) - cpu[0],
	       cpu_of(server) - cpu[1]);
}

/* --- */

static void descriptors(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void usage(void)
{
	tool_die("usage: bench_native serve send|write|pingpong HOST PORT CONNECTIONS SIZE, or "
		 "send|write|pingpong HOST PORT CONNECTIONS SIZE SECONDS PID");
}

int main(int argc, char **argv)
{
	bool serves = argc == 7 && !strcmp(argv[1], "serve");
	char **arg = argv + 1 + serves;
	struct sockaddr_in at;
	struct end e = { .dev = NULL };
	unsigned int connections;

	if (!serves && argc != 8)
		usage();
	e.write = !strcmp(arg[0], "write");
	e.pingpong = !strcmp(arg[0], "pingpong");
	if (strcmp(arg[0], "send") && !e.write && !e.pingpong)
		usage();
	descriptors();
	connections = (unsigned int)tool_number(arg[3], 1, e.pingpong ? 1 : CONNECTIONS_MAX);
	e.size = (uint32_t)tool_number(arg[4], WORD, SIZE_MAX_);
	end_open(&e, connections);
	if (serves)
		serve(&e, arg[1], arg[2], connections);
	at = tool_address(arg[1], arg[2]);
	ask(&e, &at, connections, tool_number(arg[5], 0.001, 600),
	    (pid_t)tool_number(arg[6], 1, INT32_MAX));
	return 0;
}
