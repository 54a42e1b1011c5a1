/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 *	native KIND
 *
 * Two ends of a connection in one process, by the native API: each call of their set-up, some
 * octets, and all given back, three times. WARPSOCK_TEST_FAIL stands for KIND:NTH with another
 * first letter, and is set right for the second time alone. A call that fails says so and is
 * made once more; it and all others must work then, and nothing may be left.
 */
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warp/rdma.h>

#define REGIONS 80 /* more than a table has room for at first */
#define DEPTH 8
#define ENTRIES 16
#define LIMIT_MS 20000
#define STEP_MS 20

struct end {
	struct warp_cq *cq;
	struct warp_qp *qp;
	struct warp_conn *conn;
	struct warp_mr *mr;
	char octets[64];
};

static struct warp_device *dev;
static struct warp_pd *pd;
static struct warp_mr *regions[REGIONS];
static char region[REGIONS];
static struct warp_listener *listener;
static struct end one, other;
static bool failed;

static void call(const char *what, int err)
{
	if (err >= 0)
		return;
	printf("BAD %s: %s\n", what, strerrorname_np(-err));
	exit(1);
}

/* Once only: is it to be made again? */
static bool fails(const char *what, int err)
{
	if (err >= 0 || failed)
		return false;
	failed = true;
	printf("%s: %s\n", what, strerrorname_np(-err));
	return true;
}

#define CALL(name, ...)                                                 \
	do {                                                            \
		int r_ = name(__VA_ARGS__);                             \
		call(#name, fails(#name, r_) ? name(__VA_ARGS__) : r_); \
	} while (0)

static void end_create(struct end *e)
{
	struct warp_qp_attr attr = { .max_send_wr = DEPTH,
				     .max_recv_wr = DEPTH,
				     .max_send_sge = 2,
				     .max_recv_sge = 2,
				     .max_inline = sizeof(e->octets) };

	CALL(warp_cq_create, dev, ENTRIES, &e->cq);
	attr.send_cq = attr.recv_cq = e->cq;
	CALL(warp_qp_create, pd, &attr, &e->qp);
	CALL(warp_mr_register, pd, e->octets, sizeof(e->octets), WARP_ACCESS_LOCAL_WRITE, &e->mr);
}

static void end_destroy(struct end *e)
{
	call("warp_conn_destroy", warp_conn_destroy(e->conn));
	call("warp_qp_destroy", warp_qp_destroy(e->qp));
	call("warp_cq_destroy", warp_cq_destroy(e->cq));
	call("warp_mr_deregister", warp_mr_deregister(e->mr));
	memset(e, 0, sizeof(*e));
}

/* Who listens may drop a connection, which its other end hears of */
static int request_get(void)
{
	struct warp_conn_info info;

	for (int i = 0; i < LIMIT_MS / STEP_MS; i++) {
		int err = warp_listener_get(listener, STEP_MS, &other.conn);

		if (err != -ETIMEDOUT)
			return err;
		call("warp_conn_query", warp_conn_query(one.conn, &info));
		if (info.state == WARP_CONN_ERROR)
			return info.error;
	}
	return -ETIMEDOUT;
}

static int connect_both(const struct sockaddr_storage *addr)
{
	int err = warp_connect(one.qp, (const struct sockaddr *)addr, sizeof(struct sockaddr_in),
			       NULL, &one.conn);

	if (err)
		return err;
	err = request_get();
	if (err)
		call("warp_conn_destroy", warp_conn_destroy(one.conn));
	return err;
}

static void listen_and_connect(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_storage addr;

	CALL(warp_listen, dev, (struct sockaddr *)&any, sizeof(any), DEPTH, &listener);
	call("warp_listener_addr", warp_listener_addr(listener, &addr));
	CALL(connect_both, &addr);
	CALL(warp_conn_accept, other.conn, other.qp, NULL);
	CALL(warp_conn_wait, one.conn, LIMIT_MS);
}

static void completion_take(struct end *e, enum warp_wc_opcode opcode)
{
	struct warp_wc wc;
	int n;

	while (!(n = warp_cq_poll(e->cq, &wc, 1)))
		call("warp_cq_wait", warp_cq_wait(e->cq, LIMIT_MS));
	call("warp_cq_poll", n);
	if (wc.status != WARP_WC_SUCCESS || wc.opcode != opcode)
		call(warp_wc_status_text(wc.status), -EIO);
}

static void octets_move(void)
{
	struct warp_sge from = { one.octets, sizeof(one.octets), warp_mr_stag(one.mr) },
			to = { other.octets, sizeof(other.octets), warp_mr_stag(other.mr) };
	struct warp_recv_wr recv = { .sg = &to, .num_sge = 1 };
	struct warp_send_wr send = {
		.opcode = WARP_WR_SEND, .flags = WARP_SEND_SIGNALED, .sg = &from, .num_sge = 1
	};

	memset(one.octets, 'o', sizeof(one.octets));
	CALL(warp_qp_post_recv, other.qp, &recv, 1);
	CALL(warp_qp_post_send, one.qp, &send, 1);
	completion_take(&one, WARP_WC_SEND);
	completion_take(&other, WARP_WC_RECV);
	if (memcmp(one.octets, other.octets, sizeof(one.octets)))
		call("octets", -EILSEQ);
}

static void play(void)
{
	CALL(warp_device_open, "soft", &dev);
	CALL(warp_pd_create, dev, &pd);
	for (int i = 0; i < REGIONS; i++)
		CALL(warp_mr_register, pd, region + i, 1, WARP_ACCESS_LOCAL_WRITE, &regions[i]);
	end_create(&one);
	end_create(&other);
	listen_and_connect();
	octets_move();
	end_destroy(&one);
	end_destroy(&other);
	call("warp_listener_destroy", warp_listener_destroy(listener));
	for (int i = 0; i < REGIONS; i++)
		call("warp_mr_deregister", warp_mr_deregister(regions[i]));
	call("warp_pd_destroy", warp_pd_destroy(pd));
	call("warp_device_close", warp_device_close(dev));
}

static size_t memory(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

int main(int argc, char **argv)
{
	static char said[BUFSIZ];
	char *wish = getenv("WARPSOCK_TEST_FAIL");
	size_t before;
	int fds;

	if (argc != 2)
		return 2;
	setvbuf(stdout, said, _IOLBF, sizeof(said));
	play();
	fds = descriptors();
	before = memory();
	if (wish)
		*wish = *argv[1];
	play();
	if (wish)
		*wish = '-';
	play();
	if (memory() != before)
		printf("BAD %zu octets are left\n", memory() - before);
	if (descriptors() != fds)
		printf("BAD %d descriptors are left\n", descriptors() - fds);
	return 0;
}
