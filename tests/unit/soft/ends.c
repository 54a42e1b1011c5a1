/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How queue pairs and their connections end, and what each work request hears of it; start-up
 * that comes to nothing; how a completion queue wakes.
 */
#include "tests/unit/soft/end.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <wire/iwarp_fault.h>

static struct warp_device *dev, *there;
static struct end a, b;

static void ends_make(void)
{
	end_devices_open(&dev, &there);
	end_init(&a, dev, 32);
	end_init(&b, there, 32);
	ends_connect(&a, &b, NULL, NULL);
	MUST(warp_conn_wait(b.conn, 5000) == 0);
}

static void ends_drop(void)
{
	end_uninit(&a);
	end_uninit(&b);
	end_devices_close(dev, there);
}

TestSuite(soft_ends, .timeout = 60);

static struct warp_conn_info info_of(struct end *e)
{
	struct warp_conn_info info;

	cr_assert_eq(warp_conn_query(e->conn, &info), 0);
	return info;
}

/* Drives both until @e has ended */
static struct warp_conn_info ended(struct end *e)
{
	struct warp_conn_info info = { .state = WARP_CONN_CONNECTING };

	for (int i = 0; i < 3000; i++) {
		info = info_of(e);
		if (info.state > WARP_CONN_ESTABLISHED)
			return info;
		if ((e == &a ? &b : &a)->conn)
			info_of(e == &a ? &b : &a);
		usleep(1000);
	}
	cr_assert_fail("has not ended");
	return info;
}

static enum warp_wc_status status_of(struct end *e, uint64_t id)
{
	struct warp_wc wc = end_next(e, e == &a ? &b : &a);

	cr_assert_eq(wc.wr_id, id, "%lu instead of %lu", (unsigned long)wc.wr_id,
		     (unsigned long)id);
	return wc.status;
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

static struct warp_send_wr remote(enum warp_wr_opcode op, uint64_t id, const struct end *e)
{
	return (struct warp_send_wr){ .wr_id = id,
				      .opcode = op,
				      .remote_stag = warp_mr_stag(e->mr),
				      .remote_to = (uintptr_t)e->mem };
}

/* --- ends --- */

Test(soft_ends, disconnect_sends_what_is_queued)
{
	ends_make();
	for (uint64_t i = 0; i < 20; i++)
		cr_assert_eq(end_recv(&b, i, 0, 40000), 1);
	for (uint64_t i = 0; i < 20; i++)
		cr_assert_eq(end_post(&a, (struct warp_send_wr){ .wr_id = i }, 0, 40000), 1);
	cr_assert_eq(end_post(&a, remote(WARP_WR_READ, 20, &b), 50000, 100), 1);
	cr_assert_eq(warp_conn_disconnect(a.conn), 0);
	cr_assert_eq(end_post(&a, (struct warp_send_wr){ .wr_id = 99 }, 0, 1), -ENOTCONN);
	for (uint64_t i = 0; i <= 20; i++)
		cr_assert_eq(status_of(&a, i), WARP_WC_SUCCESS);
	for (uint64_t i = 0; i < 20; i++)
		cr_assert_eq(status_of(&b, i), WARP_WC_SUCCESS);
	cr_assert_eq(ended(&b).state, WARP_CONN_DISCONNECTED);
	cr_assert_eq(ended(&a).state, WARP_CONN_DISCONNECTED);
	cr_assert_eq(ended(&a).error, 0);
	ends_drop();
}

Test(soft_ends, receives_are_flushed_in_order)
{
	ends_make();
	for (uint64_t i = 0; i < 5; i++)
		cr_assert_eq(end_recv(&a, i, 0, 10), 1);
	cr_assert_eq(end_recv(&b, 7, 0, 10), 1);
	cr_assert_eq(warp_conn_disconnect(b.conn), 0);
	for (uint64_t i = 0; i < 5; i++)
		cr_assert_eq(status_of(&a, i), WARP_WC_FLUSHED);
	cr_assert_eq(status_of(&b, 7), WARP_WC_FLUSHED);
	cr_assert_eq(end_recv(&a, 9, 0, 10), -ENOTCONN);
	ends_drop();
}

Test(soft_ends, abort_resets_the_peer)
{
	struct warp_conn_info info;

	ends_make();
	cr_assert_eq(end_recv(&a, 1, 0, 10), 1);
	cr_assert_eq(end_recv(&b, 2, 0, 10), 1);
	cr_assert_eq(warp_conn_abort(a.conn), 0);
	cr_assert_eq(info_of(&a).error, -ECONNABORTED);
	cr_assert_eq(status_of(&a, 1), WARP_WC_FLUSHED);
	info = ended(&b);
	if (end_is_soft()) {
		cr_assert_eq(info.state, WARP_CONN_ERROR);
		cr_assert_eq(info.error, -ECONNRESET);
	}
	cr_assert_eq(status_of(&b, 2), WARP_WC_FLUSHED);
	ends_drop();
}

Test(soft_ends, destroy_of_a_live_connection_aborts_it)
{
	struct warp_conn_info info;

	ends_make();
	cr_assert_eq(warp_qp_destroy(a.qp), -EBUSY);
	cr_assert_eq(warp_conn_destroy(a.conn), 0);
	a.conn = NULL;
	info = ended(&b);
	if (end_is_soft())
		cr_assert_eq(info.error, -ECONNRESET);
	ends_drop();
}

Test(soft_ends, what_was_sent_survives_the_handle)
{
	ends_make();
	cr_assert_eq(end_recv(&b, 1, 0, 100000), 1);
	cr_assert_eq(end_post(&a, (struct warp_send_wr){ .wr_id = 2 }, 0, 100000), 1);
	cr_assert_eq(warp_conn_disconnect(a.conn), 0);
	cr_assert_eq(warp_conn_destroy(a.conn), 0);
	a.conn = NULL;
	cr_assert_eq(status_of(&b, 1), WARP_WC_SUCCESS);
	cr_assert_eq(ended(&b).state, WARP_CONN_DISCONNECTED);
	ends_drop();
}

Test(soft_ends, a_queue_pair_connects_again)
{
	ends_make();
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(warp_conn_disconnect(a.conn), 0);
		ended(&b);
		cr_assert_eq(warp_conn_destroy(a.conn), 0);
		cr_assert_eq(warp_conn_destroy(b.conn), 0);
		ends_connect(&a, &b, NULL, NULL);
		cr_assert_eq(warp_conn_wait(b.conn, 5000), 0);
		cr_assert_eq(end_recv(&b, 1, 0, 10), 1);
		cr_assert_eq(end_post(&a, (struct warp_send_wr){ .wr_id = 2 }, 0, 10), 1);
		cr_assert_eq(status_of(&b, 1), WARP_WC_SUCCESS);
		cr_assert_eq(status_of(&a, 2), WARP_WC_SUCCESS);
	}
	ends_drop();
}

/* --- faults: what the two ends hear --- */

/* A device tells which work request failed, but not always how, and of no Terminate */
static void fault_seen(enum warp_wc_status status, uint64_t id)
{
	ended(&a);
	ended(&b);
	cr_assert_eq(status_of(&a, id) == WARP_WC_SUCCESS,
		     status == WARP_WC_SUCCESS && !end_is_roce());
}

/* a's work request @id ends the connection by @fault; its own Reads behind it are flushed */
static void fault_heard(uint32_t fault, enum warp_wc_status status, uint64_t id)
{
	struct warp_conn_info info;

	if (!end_is_soft()) {
		fault_seen(status, id);
		return;
	}
	info = ended(&a);
	cr_assert_eq(info.state, WARP_CONN_ERROR);
	cr_assert_eq(info.error, -ECONNRESET);
	cr_assert_eq(info.term_received, fault, "%x", info.term_received);
	cr_assert_eq(info.term_sent, 0);
	info = ended(&b);
	cr_assert_eq(info.error, -EPROTO);
	cr_assert_eq(info.term_sent, fault);
	cr_assert_eq(status_of(&a, id), status);
}

Test(soft_ends, a_read_of_nothing_that_is_there)
{
	struct warp_send_wr wr;

	ends_make();
	wr = remote(WARP_WR_READ, 1, &b);
	wr.remote_stag ^= 0x100;
	cr_assert_eq(end_post(&a, wr, 0, 10), 1);
	fault_heard(RDMAP_E_STAG, WARP_WC_REMOTE_ACCESS, 1);
	ends_drop();
}

Test(soft_ends, a_read_beyond_the_region)
{
	struct warp_send_wr wr;

	ends_make();
	wr = remote(WARP_WR_READ, 1, &b);
	wr.remote_to += END_ROOM - 9;
	cr_assert_eq(end_post(&a, wr, 0, 10), 1);
	cr_assert_geq(end_post(&a, wr, 0, 10), -ENOTCONN);
	fault_heard(RDMAP_E_BOUNDS, WARP_WC_REMOTE_ACCESS, 1);
	ends_drop();
}

Test(soft_ends, a_write_where_only_reading_is_allowed)
{
	struct warp_send_wr wr;
	struct warp_mr *mr;

	ends_make();
	cr_assert_eq(warp_mr_register(b.pd, b.mem, 100, WARP_ACCESS_REMOTE_READ, &mr), 0);
	wr = remote(WARP_WR_WRITE, 1, &b);
	wr.remote_stag = warp_mr_stag(mr);
	cr_assert_eq(end_post(&a, wr, 0, 10), 1);
	fault_heard(DDP_E_T_STAG, WARP_WC_SUCCESS, 1);
	cr_assert_eq(b.mem[0], 0);
	cr_assert_eq(warp_mr_deregister(mr), 0);
	ends_drop();
}

Test(soft_ends, memory_of_another_domain)
{
	struct warp_send_wr wr;
	struct warp_mr *mr;
	struct warp_pd *pd;

	ends_make();
	cr_assert_eq(warp_pd_create(there, &pd), 0);
	cr_assert_eq(warp_mr_register(pd, b.mem, 100, end_all_access, &mr), 0);
	cr_assert_eq(warp_pd_destroy(pd), -EBUSY);
	wr = remote(WARP_WR_READ, 1, &b);
	wr.remote_stag = warp_mr_stag(mr);
	cr_assert_eq(end_post(&a, wr, 0, 10), 1);
	fault_heard(RDMAP_E_STREAM, WARP_WC_REMOTE_ACCESS, 1);
	cr_assert_eq(warp_mr_deregister(mr), 0);
	cr_assert_eq(warp_pd_destroy(pd), 0);
	ends_drop();
}

Test(soft_ends, an_unaligned_atomic)
{
	struct warp_send_wr wr;

	ends_make();
	if (!end_can(dev, WARP_FEATURE_ATOMIC))
		cr_skip_test("the device has no atomics");
	wr = remote(WARP_WR_FETCH_ADD, 1, &b);
	wr.remote_to += 4;
	if (end_is_roce()) {
		cr_assert_eq(end_post(&a, wr, 0, 8), -EINVAL);
		ends_drop();
		return;
	}
	cr_assert_eq(end_post(&a, wr, 0, 8), 1);
	fault_heard(RDMAP_E_CATASTROPHIC, WARP_WC_REMOTE_OPERATION, 1);
	ends_drop();
}

Test(soft_ends, a_send_without_a_receive)
{
	ends_make();
	cr_assert_eq(end_post(&a, (struct warp_send_wr){ .wr_id = 1 }, 0, 10), 1);
	fault_heard(DDP_E_U_NOBUF, WARP_WC_SUCCESS, 1);
	ends_drop();
}

Test(soft_ends, a_send_longer_than_its_receive)
{
	enum warp_wc_status status;

	ends_make();
	cr_assert_eq(end_recv(&b, 5, 0, 9), 1);
	cr_assert_eq(end_recv(&b, 6, 0, 9), 1);
	memset(a.mem, 0xaa, 10);
	cr_assert_eq(end_post(&a, (struct warp_send_wr){ .wr_id = 1 }, 0, 10), 1);
	fault_heard(DDP_E_U_LENGTH, WARP_WC_SUCCESS, 1);
	status = status_of(&b, 5);
	/* rxe calls it a request that is not valid */
	cr_assert(end_is_roce() ? status != WARP_WC_SUCCESS : status == WARP_WC_LOCAL_LENGTH);
	cr_assert_eq(status_of(&b, 6), WARP_WC_FLUSHED);
	cr_assert_eq(b.mem[9], 0);
	ends_drop();
}

Test(soft_ends, a_receive_whose_memory_is_gone)
{
	struct warp_sge sge;
	struct warp_recv_wr wr = { .wr_id = 5, .sg = &sge, .num_sge = 1 };
	struct warp_mr *mr;

	if (!end_is_soft())
		cr_skip_test("what a device does with memory that goes is its own affair");
	ends_make();
	cr_assert_eq(warp_mr_register(b.pd, b.mem, 100, WARP_ACCESS_LOCAL_WRITE, &mr), 0);
	sge = (struct warp_sge){ b.mem, 100, warp_mr_stag(mr) };
	cr_assert_eq(warp_qp_post_recv(b.qp, &wr, 1), 1);
	cr_assert_eq(warp_mr_deregister(mr), 0);
	cr_assert_eq(warp_qp_post_recv(b.qp, &wr, 1), -EACCES);
	memset(a.mem, 0xaa, 10);
	cr_assert_eq(end_post(&a, (struct warp_send_wr){ .wr_id = 1 }, 0, 10), 1);
	cr_assert_eq(status_of(&b, 5), WARP_WC_LOCAL_PROTECTION);
	cr_assert_eq(b.mem[0], 0);
	cr_assert_eq(ended(&a).term_received, RDMAP_E_LOCAL);
	ends_drop();
}

Test(soft_ends, a_source_that_is_gone_when_its_turn_comes)
{
	struct warp_sge sge;
	struct warp_send_wr wr = { .wr_id = 2,
				   .opcode = WARP_WR_WRITE,
				   .sg = &sge,
				   .num_sge = 1,
				   .flags = WARP_SEND_FENCE };
	struct warp_mr *mr;
	uint64_t *slow;

	if (!end_is_soft())
		cr_skip_test("what a device does with memory that goes is its own affair");
	/* The fence holds the Write until a Read is answered, for which b's thread must come by */
	ends_make();
	slow = (uint64_t *)b.mem;
	*slow = 1;
	cr_assert_eq(warp_mr_register(a.pd, a.mem, 100, 0, &mr), 0);
	sge = (struct warp_sge){ a.mem, 100, warp_mr_stag(mr) };
	wr.remote_stag = warp_mr_stag(b.mr);
	wr.remote_to = (uintptr_t)b.mem;
	cr_assert_eq(end_post(&a, remote(WARP_WR_READ, 1, &b), 4096, END_ROOM - 4096), 1);
	cr_assert_eq(warp_qp_post_send(a.qp, &wr, 1), 1);
	cr_assert_eq(warp_mr_deregister(mr), 0);
	cr_assert_eq(status_of(&a, 1), WARP_WC_SUCCESS);
	cr_assert_eq(status_of(&a, 2), WARP_WC_LOCAL_PROTECTION);
	cr_assert_eq(ended(&b).term_received, RDMAP_E_LOCAL);
	cr_assert_eq(ended(&a).term_sent, RDMAP_E_LOCAL);
	ends_drop();
}

/* --- start-up that comes to nothing --- */

static void listen_and_connect(struct warp_listener **l, const struct warp_conn_param *p)
{
	struct sockaddr_storage at;

	end_devices_open(&dev, &there);
	end_init(&a, dev, 4);
	*l = end_listen(there, &at);
	cr_assert_eq(warp_connect(a.qp, (struct sockaddr *)&at, sizeof(struct sockaddr_in), p,
				  &a.conn),
		     0);
}

static void listener_drop(struct warp_listener *l)
{
	end_uninit(&a);
	cr_assert_eq(warp_device_close(there), -EBUSY);
	cr_assert_eq(warp_listener_destroy(l), 0);
	end_devices_close(dev, there);
}

static bool data_is(const struct warp_conn_info *info, const char *text)
{
	size_t len = strlen(text), came = info->private_data_len;

	return (came == len || (end_is_roce() && came > len)) &&
	       !memcmp(info->private_data, text, len);
}

Test(soft_ends, a_rejection)
{
	struct warp_conn_info info;
	struct warp_listener *l;
	struct warp_conn *c;
	struct warp_conn_param p = { .private_data = "question",
				     .private_data_len = 8,
				     .ird = WARP_DEPTH_DEFAULT,
				     .ord = WARP_DEPTH_DEFAULT };

	listen_and_connect(&l, &p);
	cr_assert_eq(warp_listener_get(l, 5000, &c), 0);
	cr_assert_eq(warp_conn_query(c, &info), 0);
	cr_assert_eq(info.state, WARP_CONN_REQUEST);
	cr_assert(data_is(&info, "question"));
	cr_assert_eq(warp_conn_reject(c, "no", 2), 0);
	cr_assert_eq(warp_conn_wait(a.conn, 5000), -ECONNREFUSED);
	info = info_of(&a);
	cr_assert_eq(info.state, WARP_CONN_REJECTED);
	cr_assert(data_is(&info, "no"));
	cr_assert_eq(warp_conn_destroy(c), 0);
	listener_drop(l);
}

Test(soft_ends, nobody_answers)
{
	struct warp_conn_param p = { .ird = 1, .ord = 1, .timeout_ms = 1000 };
	struct warp_listener *l;

	listen_and_connect(&l, &p);
	cr_assert_eq(warp_conn_wait(a.conn, 10), -ETIMEDOUT);
	cr_assert_eq(info_of(&a).state, WARP_CONN_CONNECTING);
	cr_assert_eq(warp_conn_wait(a.conn, 5000), -ETIMEDOUT);
	cr_assert_eq(info_of(&a).state, WARP_CONN_ERROR);
	listener_drop(l);
}

Test(soft_ends, nobody_listens)
{
	struct sockaddr_storage at;
	struct warp_listener *l;
	int err;

	end_devices_open(&dev, &there);
	end_init(&a, dev, 4);
	l = end_listen(there, &at);
	cr_assert_eq(warp_listener_destroy(l), 0);
	err = warp_connect(a.qp, (struct sockaddr *)&at, sizeof(struct sockaddr_in), NULL, &a.conn);
	if (!err)
		err = warp_conn_wait(a.conn, 5000);
	cr_assert_eq(err, -ECONNREFUSED);
	end_uninit(&a);
	end_devices_close(dev, there);
}

static int raw_connect(const struct sockaddr_storage *at)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(connect(fd, (const struct sockaddr *)at, sizeof(struct sockaddr_in)), 0);
	return fd;
}

/*
 * One sends no Request, one half of it, one something else; the one behind them is served at once
 */
Test(soft_ends, slow_and_foolish_peers_hold_up_nobody)
{
	struct sockaddr_storage at;
	struct warp_listener *l;
	struct timespec t0, t1;
	int fd[3];
	char c;

	if (end_is_roce())
		cr_skip_test("a device of RoCE has no peers by TCP");
	end_devices_open(&dev, &there);
	end_init(&a, dev, 4);
	end_init(&b, there, 4);
	l = end_listen(there, &at);
	for (int i = 0; i < 3; i++)
		fd[i] = raw_connect(&at);
	send(fd[1], "MPA ID", 6, 0);
	send(fd[2], "GET / HTTP/1.0\r\n", 16, 0);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	cr_assert_eq(warp_connect(a.qp, (struct sockaddr *)&at, sizeof(struct sockaddr_in), NULL,
				  &a.conn),
		     0);
	cr_assert_eq(warp_listener_get(l, 5000, &b.conn), 0);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	cr_assert_lt(t1.tv_sec - t0.tv_sec, 2);
	cr_assert_eq(warp_conn_accept(b.conn, b.qp, NULL), 0);
	cr_assert_eq(warp_conn_wait(a.conn, 5000), 0);
	cr_assert_eq(warp_listener_get(l, 0, &b.conn), -ETIMEDOUT);
	cr_assert_eq(recv(fd[2], &c, 1, 0), 0);
	cr_assert_eq(warp_listener_destroy(l), 0);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	ends_drop();
}

/* Waits at the listener for 200 ms, in which nobody can be got: CPU time that took, in ms */
static long wait_in_vain(struct warp_listener *l)
{
	struct timespec t0, t1;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
	cr_assert_eq(warp_listener_get(l, 200, &b.conn), -ETIMEDOUT);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
	return (t1.tv_sec - t0.tv_sec) * 1000 + (t1.tv_nsec - t0.tv_nsec) / 1000000;
}

static rlim_t descriptors_limit(rlim_t n)
{
	struct rlimit lim;
	rlim_t before;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	before = lim.rlim_cur;
	lim.rlim_cur = n < lim.rlim_max ? n : lim.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	return before;
}

Test(soft_ends, a_listener_without_descriptors_sleeps)
{
	struct warp_listener *l;
	rlim_t before;
	int lowest;

	listen_and_connect(&l, NULL);
	cr_assert(readable(warp_listener_fd(l), 5000)); /* the initiator needs no more of them */
	lowest = dup(0);
	close(lowest);
	before = descriptors_limit((rlim_t)lowest);
	cr_assert_lt(wait_in_vain(l), 100);
	descriptors_limit(before);
	cr_assert_eq(warp_listener_get(l, 5000, &b.conn), 0);
	cr_assert_eq(warp_conn_destroy(b.conn), 0);
	listener_drop(l);
}

/* More peers than may be in start-up at once, all silent: who comes then waits, and so do we */
Test(soft_ends, a_listener_full_of_silent_peers_sleeps)
{
	enum { SILENT = 1024 };
	static int fd[SILENT];
	struct sockaddr_storage at;
	struct warp_listener *l;

	if (!end_is_soft())
		cr_skip_test("the device has the peers that are silent");
	descriptors_limit(4 * SILENT);
	end_devices_open(&dev, &there);
	end_init(&a, dev, 4);
	l = end_listen(there, &at);
	for (int i = 0; i < SILENT; i++) {
		fd[i] = raw_connect(&at);
		if (i % 8 == 7)
			cr_assert_eq(warp_listener_get(l, 0, &b.conn), -ETIMEDOUT);
	}
	cr_assert_eq(warp_connect(a.qp, (struct sockaddr *)&at, sizeof(struct sockaddr_in), NULL,
				  &a.conn),
		     0);
	cr_assert_lt(wait_in_vain(l), 100);
	close(fd[0]);
	cr_assert_eq(warp_listener_get(l, 5000, &b.conn), 0);
	cr_assert_eq(warp_conn_destroy(b.conn), 0);
	for (int i = 1; i < SILENT; i++)
		close(fd[i]);
	listener_drop(l);
}

/* --- waking --- */

Test(soft_ends, an_armed_queue_wakes_its_descriptor)
{
	struct warp_wc wc;

	ends_make();
	cr_assert_eq(end_recv(&b, 1, 0, 10), 1);
	/* An initiator that hears something sends no messages of nothing */
	cr_assert_eq(end_recv(&a, 7, 0, 10), 1);
	cr_assert_eq(end_post(&b, (struct warp_send_wr){ .wr_id = 7 }, 0, 1), 1);
	cr_assert_eq(status_of(&a, 7), WARP_WC_SUCCESS);
	cr_assert_eq(status_of(&b, 7), WARP_WC_SUCCESS);
	usleep(60000);
	while (warp_cq_poll(b.cq, &wc, 1))
		;
	cr_assert_eq(warp_cq_arm(b.cq, false), 0);
	cr_assert_eq(warp_cq_poll(b.cq, &wc, 1), 0);
	cr_assert_not(readable(warp_cq_fd(b.cq), 50));
	cr_assert_eq(end_post(&a, (struct warp_send_wr){ .wr_id = 1 }, 0, 10), 1);
	cr_assert(readable(warp_cq_fd(b.cq), 5000));
	cr_assert_eq(status_of(&b, 1), WARP_WC_SUCCESS);
	cr_assert_eq(warp_cq_ack(b.cq), 0);
	cr_assert_not(readable(warp_cq_fd(b.cq), 50));
	ends_drop();
}

Test(soft_ends, waiting_ends_with_time)
{
	ends_make();
	cr_assert_eq(warp_cq_wait(b.cq, 20), -ETIMEDOUT);
	cr_assert_eq(end_recv(&b, 1, 0, 10), 1);
	cr_assert_eq(warp_conn_disconnect(a.conn), 0);
	cr_assert_eq(warp_cq_wait(b.cq, 5000), 0);
	cr_assert_eq(status_of(&b, 1), WARP_WC_FLUSHED);
	ends_drop();
}

Test(soft_ends, a_full_queue_says_so_once)
{
	struct warp_qp_attr attr = { .max_send_wr = 16, .max_recv_wr = 16, .signal_all = true };
	struct warp_wc wc[16];
	struct warp_cq *small;

	if (!end_is_soft())
		cr_skip_test("no queue of a device's overflows");
	end_devices_open(&dev, &there);
	end_init(&a, dev, 16);
	end_init(&b, there, 16);
	cr_assert_eq(warp_cq_create(dev, 4, &small), 0);
	cr_assert_eq(warp_qp_destroy(a.qp), 0);
	attr.send_cq = attr.recv_cq = small;
	cr_assert_eq(warp_qp_create(a.pd, &attr, &a.qp), 0);
	cr_assert_eq(warp_cq_destroy(small), -EBUSY);
	ends_connect(&a, &b, NULL, NULL);
	for (uint64_t i = 0; i < 6; i++)
		cr_assert_eq(end_post(&a, remote(WARP_WR_WRITE, i, &b), 0, 10), 1);
	cr_assert_eq(warp_cq_poll(small, wc, 16), 4);
	cr_assert_eq(wc[3].wr_id, 3);
	cr_assert_eq(warp_cq_poll(small, wc, 16), -EOVERFLOW);
	cr_assert_eq(warp_cq_poll(small, wc, 16), 0);
	cr_assert_eq(warp_conn_destroy(a.conn), 0);
	cr_assert_eq(warp_qp_destroy(a.qp), 0);
	cr_assert_eq(warp_cq_destroy(small), 0);
	cr_assert_eq(warp_mr_deregister(a.mr), 0);
	cr_assert_eq(warp_cq_destroy(a.cq), 0);
	cr_assert_eq(warp_pd_destroy(a.pd), 0);
	end_uninit(&b);
	end_devices_close(dev, there);
}

Test(soft_ends, the_connection_descriptor_tells_of_the_end)
{
	ends_make();
	info_of(&b);
	cr_assert_not(readable(warp_conn_fd(b.conn), 20));
	cr_assert_eq(warp_conn_disconnect(a.conn), 0);
	cr_assert(readable(warp_conn_fd(b.conn), 5000));
	cr_assert_eq(info_of(&b).state, WARP_CONN_DISCONNECTED);
	ends_drop();
}
