/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One end of a connection for the example programs: made, connected, waited for and explained.
 *
 * Every wait has a limit, and a signal that asks the program to end cuts it short.
 */
#include "endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int stopped; /* atomic: the handler runs in any thread, and all look */

/* --- small things ------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int left_ms(int64_t end)
{
	int64_t left = end - now_ms();

	return left > 0 ? (int)left : 0;
}

static void on_signal(int sig)
{
	__atomic_store_n(&stopped, sig, __ATOMIC_RELAXED);
}

bool endpoint_stopped(void)
{
	return __atomic_load_n(&stopped, __ATOMIC_RELAXED);
}

void endpoint_catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

int endpoint_number(const char *text, unsigned long min, unsigned long max, unsigned long *out)
{
	unsigned long value;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno || value < min || value > max)
		return -ERANGE;
	*out = value;
	return 0;
}

socklen_t endpoint_addr_len(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in);
}

/* The port stands at the same place in both families. */
uint16_t endpoint_port(const struct sockaddr_storage *addr)
{
	return ntohs(((const struct sockaddr_in *)addr)->sin_port);
}

int endpoint_resolve(const char *host, uint16_t port, struct sockaddr_storage *addr)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	int ret = getaddrinfo(host, NULL, &hints, &found);

	if (ret)
		return ret;
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, found->ai_addr, found->ai_addrlen);
	((struct sockaddr_in *)addr)->sin_port = htons(port);
	freeaddrinfo(found);
	return 0;
}

/* --- life --------------------------------------------------------------------------------- */

int endpoint_open(struct endpoint *e, struct warp_device *dev, struct warp_pd *pd, uint32_t depth,
		  int timeout_ms)
{
	struct warp_qp_attr attr = { .max_send_wr = depth,
				     .max_recv_wr = depth,
				     .max_send_sge = 1,
				     .max_recv_sge = 1,
				     .signal_all = true };
	int ret = 0;

	*e = (struct endpoint){ .dev = dev, .pd = pd, .own_pd = !pd, .timeout_ms = timeout_ms };
	if (e->own_pd)
		ret = warp_pd_create(dev, &e->pd);
	if (!ret)
		ret = warp_cq_create(dev, 2 * depth, &e->cq);
	attr.send_cq = attr.recv_cq = e->cq;
	if (!ret)
		ret = warp_qp_create(e->pd, &attr, &e->qp);
	if (ret)
		endpoint_close(e);
	return ret;
}

void endpoint_detach(struct endpoint *e)
{
	warp_conn_destroy(e->conn);
	warp_qp_destroy(e->qp);
	e->conn = NULL;
	e->qp = NULL;
}

void endpoint_close(struct endpoint *e)
{
	endpoint_detach(e);
	warp_cq_destroy(e->cq);
	if (e->own_pd)
		warp_pd_destroy(e->pd);
	*e = (struct endpoint){ 0 };
}

/* Waits until the connection is more than under way; -EINTR only when the program shall end. */
static int settle(struct endpoint *e)
{
	int64_t end = now_ms() + e->timeout_ms;
	int ret;

	do
		ret = warp_conn_wait(e->conn, left_ms(end));
	while (ret == -EINTR && !endpoint_stopped());
	return ret;
}

static int socket_finish_connect(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err = 0;
	int n = poll(&p, 1, timeout_ms);

	if (n <= 0)
		return n ? -errno : -ETIMEDOUT;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	return -err;
}

/* A socket that is connected from an address of the program's choice. */
static int socket_connect(const struct sockaddr_storage *addr,
			  const struct sockaddr_storage *source, int timeout_ms)
{
	int fd = socket(addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)source, endpoint_addr_len(source)))
		ret = -errno;
	else if (connect(fd, (const struct sockaddr *)addr, endpoint_addr_len(addr)))
		ret = errno == EINPROGRESS ? socket_finish_connect(fd, timeout_ms) : -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

int endpoint_connect(struct endpoint *e, const struct sockaddr_storage *addr,
		     const struct sockaddr_storage *source, const struct warp_conn_param *param)
{
	int ret;

	if (source) {
		ret = socket_connect(addr, source, e->timeout_ms);
		if (ret >= 0)
			ret = warp_connect_fd(e->qp, ret, param, &e->conn);
	} else {
		ret = warp_connect(e->qp, (const struct sockaddr *)addr, endpoint_addr_len(addr),
				   param, &e->conn);
	}
	return ret ? ret : settle(e);
}

int endpoint_accept(struct endpoint *e, struct warp_conn *conn, const struct warp_conn_param *param)
{
	int ret = warp_conn_accept(conn, e->qp, param);

	e->conn = conn;
	return ret ? ret : settle(e);
}

int endpoint_finish(struct endpoint *e)
{
	struct warp_conn_info info = { .state = WARP_CONN_ESTABLISHED };
	int64_t end = now_ms() + e->timeout_ms;
	struct warp_wc wc;
	int ret = warp_conn_disconnect(e->conn);

	/*
	 * Completions are flushed when both ends are there; polling is what takes the peer's
	 * in.
	 */
	while (!ret && left_ms(end) && !endpoint_stopped()) {
		while (warp_cq_poll(e->cq, &wc, 1) > 0)
			;
		ret = warp_conn_query(e->conn, &info);
		if (ret || info.state != WARP_CONN_ESTABLISHED)
			break;
		warp_cq_wait(e->cq, 20);
	}
	if (ret)
		return ret;
	return info.state == WARP_CONN_DISCONNECTED ? 0 : -ETIMEDOUT;
}

/* --- work --------------------------------------------------------------------------------- */

int endpoint_send(struct endpoint *e, const void *p, uint32_t len, const struct warp_mr *mr)
{
	struct warp_sge sg = { (void *)(uintptr_t)p, len, warp_mr_stag(mr) };
	struct warp_send_wr wr = { .opcode = WARP_WR_SEND, .sg = &sg, .num_sge = 1 };
	int ret = warp_qp_post_send(e->qp, &wr, 1);

	return ret < 0 ? ret : 0;
}

int endpoint_recv(struct endpoint *e, void *p, uint32_t len, const struct warp_mr *mr)
{
	struct warp_sge sg = { p, len, warp_mr_stag(mr) };
	struct warp_recv_wr wr = { .sg = &sg, .num_sge = 1 };
	int ret = warp_qp_post_recv(e->qp, &wr, 1);

	return ret < 0 ? ret : 0;
}

int endpoint_next(struct endpoint *e, struct warp_wc *wc)
{
	int64_t end = now_ms() + e->timeout_ms;

	while (!endpoint_stopped()) {
		int ret = warp_cq_poll(e->cq, wc, 1);

		if (ret)
			return ret < 0 ? ret : 0;
		ret = warp_cq_wait(e->cq, left_ms(end));
		if (ret && ret != -EINTR)
			return ret;
	}
	return -EINTR;
}

/* What a completion that failed means for the program. */
static int why_failed(const struct endpoint *e, const struct warp_wc *wc)
{
	struct warp_conn_info info;

	if (wc->status == WARP_WC_FLUSHED && !warp_conn_query(e->conn, &info) &&
	    info.state == WARP_CONN_DISCONNECTED)
		return -EPIPE;
	return wc->status == WARP_WC_FLUSHED ? -ECONNRESET : -EPROTO;
}

int endpoint_await(struct endpoint *e, enum warp_wc_opcode want, struct warp_wc *wc)
{
	int ret;

	for (;;) {
		ret = endpoint_next(e, wc);
		if (ret)
			return ret;
		if (wc->status != WARP_WC_SUCCESS)
			return why_failed(e, wc);
		if (wc->opcode == want)
			return 0;
		if (wc->opcode != WARP_WC_SEND)
			return -EPROTO; /* the peer does not wait for its turn */
	}
}

void endpoint_complain(const struct endpoint *e, const char *what, int err)
{
	struct warp_conn_info info;

	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(-err));
	if (!e || !e->conn || warp_conn_query(e->conn, &info))
		return;
	fprintf(stderr, "  the connection: %s", warp_conn_state_text(info.state));
	if (info.error)
		fprintf(stderr, ", %s", strerror(-info.error));
	if (info.term_sent)
		fprintf(stderr, "; we ended it: %s", warp_fault_text(info.term_sent));
	if (info.term_received)
		fprintf(stderr, "; the peer ended it: %s", warp_fault_text(info.term_received));
	if (info.state == WARP_CONN_REJECTED && info.private_data_len)
		fprintf(stderr, "; the peer says: %.*s", (int)info.private_data_len,
			(const char *)info.private_data);
	fputc('\n', stderr);
}
