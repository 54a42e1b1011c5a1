/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The peer and the end put together, and what cases share.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "suite.h"

enum { WAIT_MS = 4000, MEM_CAPACITY = 1 << 18 };

size_t differ(const void *a, const void *b, size_t n)
{
	const uint8_t *x = a, *y = b;
	size_t at = 0;

	while (at < n && x[at] == y[at])
		at++;
	return at;
}

void pattern(void *p, size_t n, unsigned int seed)
{
	uint8_t *at = p;

	for (size_t i = 0; i < n; i++)
		at[i] = (uint8_t)((i + seed) * 2654435761u >> 13);
}

/* --- transports --------------------------------------------------------------------------- */

static void set_mss(int fd, int mss)
{
	if (mss)
		check(!setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss)), "TCP_MAXSEG %d",
		      mss);
}

void tcp_pair(int fds[2], int mss)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(l >= 0 && fds[0] >= 0, "socket: %s", strerror(errno));
	set_mss(l, mss);
	set_mss(fds[0], mss);
	check(!bind(l, (struct sockaddr *)&at, len) && !listen(l, 1) &&
		      !getsockname(l, (struct sockaddr *)&at, &len),
	      "listen: %s", strerror(errno));
	check(!connect(fds[0], (struct sockaddr *)&at, len), "connect: %s", strerror(errno));
	fds[1] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	check(fds[1] >= 0, "accept: %s", strerror(errno));
	close(l);
	for (int i = 0; i < 2; i++)
		setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void pump(void *ctx)
{
	world_pump(ctx);
}

static void open_mem(struct world *w, const struct setup *s)
{
	check_eq(llp_mem_pair(MEM_CAPACITY, &w->mem[0], &w->mem[1]), 0);
	if (s->mss)
		llp_mem_set_emss(w->mem[1], s->mss);
	peer_init(&w->peer, w->mem[0], pump, w);
	w->end = end_layers_ops.create(w->mem[1], -1, s);
}

static void open_tcp(struct world *w, const struct setup *s)
{
	int fds[2];

	/* whoever is the MPA initiator connected */
	tcp_pair(fds, s->mss);
	w->fd = fds[s->initiator ? 1 : 0];
	w->end_fd = fds[s->initiator ? 0 : 1];
	llp_tcp_init(&w->tcp, w->fd);
	peer_init(&w->peer, &w->tcp, pump, w);
	w->peer.quiet_ms = w->kind == SOFT ? 40 : 15;
	w->peer.nudges = w->kind == SOFT && s->initiator;
	w->end = (w->kind == SOFT ? &end_soft_ops : &end_layers_ops)->create(NULL, w->end_fd, s);
}

/* --- life --------------------------------------------------------------------------------- */

void world_open(struct world *w, const struct setup *s)
{
	world_close(w);
	w->arena = calloc(1, ARENA);
	w->region = calloc(1, REGION + 2 * GUARD);
	check(w->arena && w->region, "no memory");
	memset(w->region, 0xa5, GUARD);
	memset(w->region + GUARD + REGION, 0xa5, GUARD);
	w->region += GUARD;
	(w->kind == MEM ? open_mem : open_tcp)(w, s);
	w->open = true;
	w->arena_stag = w->end->ops->mr(w->end, w->arena, ARENA, WARP_ACCESS_LOCAL_WRITE, false);
	check(w->arena_stag, "no region for the arena");
}

void world_close(struct world *w)
{
	if (!w->open)
		return;
	/* the peer goes first: an end may wait for that, so that its Terminate arrives */
	if (w->kind != MEM)
		close(w->fd);
	w->end->ops->destroy(w->end);
	if (w->kind == MEM)
		llp_mem_destroy(w->mem[0], w->mem[1]);
	free(w->arena);
	free(w->region - GUARD);
	w->open = false;
}

static void start_enhanced(struct world *w, const struct setup *s, uint8_t flags)
{
	uint8_t enh[4];

	raw_enhanced(enh, 0, 8, 0, 8);
	if (s->initiator)
		peer_send_reply(&w->peer, flags | 0x10, 2, enh, 4);
	else
		peer_send_request(&w->peer, flags | 0x10, 2, enh, 4);
}

void world_start(struct world *w, const struct setup *s)
{
	uint8_t flags = (s->peer_no_crc ? 0 : 0x40) | (s->peer_markers ? 0x80 : 0);
	struct frame f;

	world_open(w, s);
	if (s->initiator)
		peer_recv_frame(&w->peer, &f);
	if (s->rev == 2)
		start_enhanced(w, s, flags);
	else if (s->initiator)
		peer_send_reply(&w->peer, flags, 1, NULL, 0);
	else
		peer_send_request(&w->peer, flags, 1, NULL, 0);
	if (!s->initiator)
		peer_recv_frame(&w->peer, &f);
	w->peer.crc = !s->peer_no_crc || !s->no_crc;
	w->peer.rx_marked = s->peer_markers;
	w->peer.tx_marked = s->markers;
	if (s->initiator)
		world_state(w, WARP_CONN_ESTABLISHED);
}

/* --- the end at work ---------------------------------------------------------------------- */

void world_pump(struct world *w)
{
	w->end->ops->progress(w->end);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

static void nap(const struct world *w)
{
	if (w->kind != MEM)
		poll(NULL, 0, 1);
}

void world_settle(struct world *w)
{
	int64_t until = now_ms() + w->peer.quiet_ms;

	for (int turn = 0; turn < 4 || now_ms() < until; turn++) {
		world_pump(w);
		nap(w);
	}
}

struct warp_wc world_wc(struct world *w)
{
	int64_t until = now_ms() + WAIT_MS;
	struct warp_wc wc;

	for (int turn = 0; turn < 16 || (w->kind != MEM && now_ms() < until); turn++) {
		int n = w->end->ops->poll(w->end, &wc, 1);

		check(n >= 0, "polling completions: %d", n);
		if (n)
			return wc;
		world_pump(w);
		nap(w);
	}
	fail("no completion came; the connection is %s, error %d, Terminate sent %#x received %#x",
	     warp_conn_state_text(world_info(w).state), world_info(w).error,
	     world_info(w).term_sent, world_info(w).term_received);
}

void world_no_wc(struct world *w)
{
	struct warp_wc wc;

	world_settle(w);
	if (w->end->ops->poll(w->end, &wc, 1))
		fail("a completion that should not be: id %llu, %s", (unsigned long long)wc.wr_id,
		     warp_wc_status_text(wc.status));
}

struct warp_conn_info world_info(struct world *w)
{
	struct warp_conn_info info;

	w->end->ops->info(w->end, &info);
	return info;
}

struct warp_conn_info world_state(struct world *w, enum warp_conn_state state)
{
	int64_t until = now_ms() + WAIT_MS;
	struct warp_conn_info info = world_info(w);

	for (int turn = 0; turn < 16 || (w->kind != MEM && now_ms() < until); turn++) {
		if (info.state == state)
			return info;
		world_pump(w);
		nap(w);
		info = world_info(w);
	}
	fail("the connection is %s (error %d), not %s", warp_conn_state_text(info.state),
	     info.error, warp_conn_state_text(state));
}

uint32_t world_region(struct world *w, unsigned int access, bool foreign)
{
	uint32_t stag = w->end->ops->mr(w->end, w->region, REGION, access, foreign);

	check(stag, "no region");
	return stag;
}

void world_guards(struct world *w)
{
	for (size_t i = 0; i < GUARD; i++)
		check(w->region[REGION + i] == 0xa5 && *(w->region - 1 - i) == 0xa5,
		      "octet %zu beside the region was written", i);
}

void world_recv(struct world *w, size_t off, uint32_t len)
{
	struct warp_sge sge = { w->arena + off, len, w->arena_stag };
	struct warp_recv_wr wr = { .wr_id = off, .sg = &sge, .num_sge = len ? 1 : 0 };

	check_eq(w->end->ops->post_recv(w->end, &wr), 0);
}

void world_post_wr(struct world *w, const struct warp_send_wr *wr)
{
	check_eq(w->end->ops->post_send(w->end, wr), 0);
}

void world_post(struct world *w, enum warp_wr_opcode op, size_t off, uint32_t len, uint32_t stag,
		uint64_t to)
{
	struct warp_sge sge = { w->arena + off, len, w->arena_stag };
	struct warp_send_wr wr = { .wr_id = off,
				   .opcode = op,
				   .flags = WARP_SEND_SIGNALED,
				   .sg = &sge,
				   .num_sge = len ? 1 : 0,
				   .remote_stag = stag,
				   .remote_to = to };

	world_post_wr(w, &wr);
}

/* --- ends --------------------------------------------------------------------------------- */

/* The Terminate that must come now, and the end behind it */
static struct seg *take_terminate(struct world *w, uint32_t *fault)
{
	static struct seg s;

	peer_recv(&w->peer, &s);
	check(s.opcode == RDMAP_TERMINATE, "opcode %u where a Terminate was due", s.opcode);
	check(s.len >= 4, "a Terminate of %zu octets", s.len);
	check_eq(s.payload[3], 0);
	check_eq(s.mo, 0);
	check_eq(s.msn, 1);
	check_eq(s.last, true);
	*fault = 0x10000 | s.payload[0] << 8 | s.payload[1];
	peer_expect_end(&w->peer);
	check_eq(world_info(w).term_sent, *fault);
	check_eq(world_info(w).state, WARP_CONN_ERROR);
	return &s;
}

struct seg *world_expect_terminate(struct world *w, uint32_t fault, uint8_t hdrct)
{
	uint32_t got;
	struct seg *s = take_terminate(w, &got);

	check(got == fault, "Terminate %#x, not %#x", got, fault);
	check(s->payload[2] == hdrct, "header bits %#x, not %#x", s->payload[2], hdrct);
	if (hdrct == 0xc0)
		check(s->len == 20 || s->len == 24, "a Terminate of %zu octets", s->len);
	else
		check_eq(s->len, hdrct ? 52 : 4);
	return s;
}

uint32_t world_expect_terminates(struct world *w, const uint32_t *faults)
{
	uint32_t got;

	take_terminate(w, &got);
	while (*faults && *faults != got)
		faults++;
	check(*faults, "Terminate %#x", got);
	return got;
}

void world_expect_close(struct world *w)
{
	peer_expect_end(&w->peer);
	check_eq(world_info(w).term_sent, 0);
}

void world_works(struct world *w)
{
	struct warp_wc wc;

	world_recv(w, 0, 64);
	peer_send_message(&w->peer, "hello", 5);
	wc = world_wc(w);
	check_eq(wc.status, WARP_WC_SUCCESS);
	check_eq(wc.opcode, WARP_WC_RECV);
	check_eq(wc.byte_len, 5);
	check_octets(w->arena, "hello", 5);
	memset(w->arena, 0, 5);
}

void world_nothing_delivered(struct world *w)
{
	struct warp_wc wc;

	world_settle(w);
	while (w->end->ops->poll(w->end, &wc, 1) > 0)
		check(wc.opcode != WARP_WC_RECV || wc.status != WARP_WC_SUCCESS,
		      "receive %llu was completed", (unsigned long long)wc.wr_id);
}
