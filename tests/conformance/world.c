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
#include "tests/llp_mem.h"

enum { WAIT_MS = 4000, MEM_CAPACITY = 1 << 18, PORT_TRIES = 5 };

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

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* --- transports --------------------------------------------------------------------------- */

static void set_mss(int fd, int mss)
{
	if (mss)
		check(!setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss)), "TCP_MAXSEG %d",
		      mss);
}

static int tcp_socket(int mss)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	check(fd >= 0, "socket: %s", strerror(errno));
	set_mss(fd, mss);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* At any port of @at, which is told it */
static int tcp_listen(struct sockaddr_in *at, int mss)
{
	socklen_t len = sizeof(*at);
	int fd = tcp_socket(mss);

	check(!bind(fd, (struct sockaddr *)at, len) && !listen(fd, 1) &&
		      !getsockname(fd, (struct sockaddr *)at, &len),
	      "listen: %s", strerror(errno));
	return fd;
}

static int tcp_connect(const struct sockaddr_in *at, int mss)
{
	int fd = tcp_socket(mss);

	check(!connect(fd, (const struct sockaddr *)at, sizeof(*at)), "connect: %s",
	      strerror(errno));
	return fd;
}

/* The one connection that @listener gets */
static int tcp_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	check(fd >= 0, "accept: %s", strerror(errno));
	close(listener);
	return fd;
}

void tcp_pair(int fds[2], int mss)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int l = tcp_listen(&at, mss);

	fds[0] = tcp_connect(&at, mss);
	fds[1] = tcp_accept(l);
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
	w->peer.write_retries = w->kind == SOFT && s->initiator;
	w->end =
		(w->kind == SOFT ? &end_provider_ops : &end_layers_ops)->create(NULL, w->end_fd, s);
}

/*
 * The end connects to the peer: it says so, or fails, in its own time. -1: the connection manager
 * has chosen a port that the kernel, which siw asks, has given away
 */
static int await_device(struct world *w, int listener)
{
	struct pollfd fd = { .fd = listener, .events = POLLIN };
	int64_t until = now_ms() + WAIT_MS;

	while (poll(&fd, 1, 1) == 0) {
		int error = world_info(w).error;

		if (error == -EADDRINUSE)
			return -1;
		check(!error, "the device does not connect: %s", strerror(-error));
		check(now_ms() < until, "the device does not connect");
		world_pump(w);
	}
	return tcp_accept(listener);
}

/* Both ends are at the device's address; the peer is a socket of the kernel's there */
static void open_device(struct world *w, const struct setup *s)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int listener = -1, tries = PORT_TRIES;

	check(inet_pton(AF_INET, getenv("CONFORMANCE_ADDRESS"), &at.sin_addr) == 1, "CONFORMANCE_"
										    "ADDRESS is "
										    "none");
	if (s->initiator)
		listener = tcp_listen(&at, s->mss);
	w->end = end_device_create(s, &at);
	while ((w->fd = s->initiator ? await_device(w, listener) : tcp_connect(&at, s->mss)) < 0) {
		check(tries--, "the device does not connect: each port is in use");
		w->end->ops->destroy(w->end);
		w->end = end_device_create(s, &at);
	}
	llp_tcp_init(&w->tcp, w->fd);
	peer_init(&w->peer, &w->tcp, pump, w);
	w->peer.quiet_ms = 100;
	w->peer.any_pad = true; /* siw does not clear it */
	w->peer.write_retries = s->initiator;
}

/* --- life --------------------------------------------------------------------------------- */

bool world_plays(const struct world *w, const struct setup *s)
{
	return world_asks(w, s->initiator ? AS_INITIATOR : AS_RESPONDER);
}

void world_open(struct world *w, const struct setup *s)
{
	world_close(w);
	w->arena = calloc(1, ARENA);
	w->region = calloc(1, REGION + 2 * GUARD);
	check(w->arena && w->region, "no memory");
	memset(w->region, 0xa5, GUARD);
	memset(w->region + GUARD + REGION, 0xa5, GUARD);
	w->region += GUARD;
	w->initiator = s->initiator;
	if (w->kind == MEM)
		open_mem(w, s);
	else if (w->kind == DEVICE)
		open_device(w, s);
	else
		open_tcp(w, s);
	w->open = true;
	w->arena_stag = w->end->ops->mr(w->end, w->arena, ARENA, WARP_ACCESS_LOCAL_WRITE, false);
	check(w->arena_stag, "no region for the arena");
}

void world_close(struct world *w)
{
	if (!w->open)
		return;
	/*
	 * the peer goes first: an end may wait for that, so that its Terminate arrives. Not where a
	 * device is: siw loses its listener when a peer goes before it has an answer
	 */
	if (w->kind & (TCP | SOFT))
		close(w->fd);
	w->end->ops->destroy(w->end);
	if (w->kind == DEVICE)
		close(w->fd);
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

/* Revision and CRC are as the device has them: which it is, its frame says */
static void start_device(struct world *w, const struct setup *s, uint8_t flags)
{
	struct frame f;

	if (s->initiator) {
		peer_recv_frame(&w->peer, &f);
		start_enhanced(w, s, flags & (f.flags | ~0x40));
	} else {
		start_enhanced(w, s, flags);
		peer_recv_frame(&w->peer, &f);
	}
	w->peer.crc = f.flags & 0x40;
	w->peer.rx_marked = s->peer_markers;
	w->peer.tx_marked = s->markers;
	world_state(w, WARP_CONN_ESTABLISHED);
}

void world_start(struct world *w, const struct setup *s)
{
	uint8_t flags = (s->peer_no_crc ? 0 : 0x40) | (s->peer_markers ? 0x80 : 0);
	struct frame f;

	world_open(w, s);
	if (w->kind == DEVICE) {
		start_device(w, s, flags);
		return;
	}
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

/*
 * siw has layer and type in each other's place, the header bits at the other end of their octet,
 * and counts the payload alone where the length of the segment is due
 */
static void siw_terminate(struct seg *s)
{
	uint8_t *p = s->ulpdu + (s->payload - s->ulpdu);
	uint64_t headers;

	p[0] = (uint8_t)(p[0] << 4 | p[0] >> 4);
	p[2] = (uint8_t)((p[2] & 1) << 7 | (p[2] & 2) << 5 | (p[2] & 4) << 3);
	if (!(p[2] & 0x80) || s->len < 7)
		return;
	headers = p[2] & 0x20 ? 46 : p[6] & 0x80 ? 14 : 18;
	raw_put(p + 4, 2, raw_get(p + 4, 2) + headers);
}

/* What a device has sent, and whether that was an end in order, its program is not told */
void world_ends(struct world *w)
{
	int64_t until = now_ms() + WAIT_MS;

	while (world_info(w).state <= WARP_CONN_ESTABLISHED) {
		check(now_ms() < until, "the connection has not ended");
		world_pump(w);
		nap(w);
	}
}

/* The Terminate that must come now, and the end behind it */
static struct seg *take_terminate(struct world *w, uint32_t *fault)
{
	static struct seg s;

	peer_recv(&w->peer, &s);
	check(s.opcode == RDMAP_TERMINATE, "opcode %u where a Terminate was due", s.opcode);
	check(s.len >= 4, "a Terminate of %zu octets", s.len);
	if (w->kind == DEVICE)
		siw_terminate(&s);
	check_eq(s.payload[3], 0);
	check_eq(s.mo, 0);
	check_eq(s.msn, 1);
	check_eq(s.last, true);
	*fault = 0x10000 | s.payload[0] << 8 | s.payload[1];
	peer_expect_end(&w->peer);
	if (w->kind == DEVICE) {
		world_ends(w);
		return &s;
	}
	check_eq(world_info(w).term_sent, *fault);
	check_eq(world_info(w).state, WARP_CONN_ERROR);
	return &s;
}

struct seg *world_expect_terminate(struct world *w, uint32_t fault, uint8_t hdrct)
{
	uint32_t got;
	struct seg *s = take_terminate(w, &got);

	check(got == fault, "Terminate %#x, not %#x", got, fault);
	if (!world_asks(w, HEADERS))
		return s;
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
