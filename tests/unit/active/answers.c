/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client and a server that answers wrongly: the client's requests end with an error, and its
 * memory is its own.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <warp/active.h>
#include <warp/rdma.h>

#include "active/wire.h"
#include "base/bits.h"

enum { RECEIVES = 32, ROOM = 1 << 17, TIMEOUT = 10000 };

enum wrong {
	NOTHING_WRONG,
	SILENCE,
	GARBAGE,
	NO_WINDOW,
	RESULT_FOR_HELLO,
	TWO_WELCOMES,
	OTHER_ID,
	TWICE,
	TOO_MUCH_OUTPUT,
	LOADED_FOR_RUN,
	REQUEST_FOR_RUN,
	NEVER_KNOWN,
	LOAD_REFUSED,
	LOAD_IN_DOUBT,
	LOAD_NEEDED,
	CUT,
};

static enum wrong wrong;
static unsigned int runs, loads; /* that were asked for */

/* --- the server --------------------------------------------------------------------------- */

static struct {
	struct warp_device *dev;
	struct warp_pd *pd;
	struct warp_cq *cq;
	struct warp_qp *qp;
	struct warp_conn *conn;
	struct warp_listener *listener;
	struct warp_mr *mr;
	uint8_t *out, *in;
	pthread_t thread;
	struct sockaddr_storage addr;
	bool stop; /* atomic */
} s;

static void receive(unsigned int i)
{
	const struct warp_sge sg = { s.in + (size_t)i * ROOM, ROOM, warp_mr_stag(s.mr) };
	const struct warp_recv_wr wr = { .wr_id = i, .sg = &sg, .num_sge = 1 };

	warp_qp_post_recv(s.qp, &wr, 1);
}

static void sock_send_fd(size_t len)
{
	static unsigned int turn;
	/* what was sent last may still be under way */
	uint8_t *from = s.out + (size_t)(turn++ % 16) * ROOM;
	const struct warp_sge sg = { from, (uint32_t)len, warp_mr_stag(s.mr) };
	const struct warp_send_wr wr = { .opcode = WARP_WR_SEND, .sg = &sg, .num_sge = 1 };

	memcpy(from, s.out + (size_t)16 * ROOM, len);
	warp_qp_post_send(s.qp, &wr, 1);
}

static void message_send(const struct active_message *m)
{
	sock_send_fd((size_t)active_message_write(m, s.out + (size_t)16 * ROOM, ROOM));
}

static void hello_answer(const struct active_message *m)
{
	struct active_message answer = { .type = ACTIVE_WELCOME, .window = 4 };

	if (wrong == SILENCE)
		return;
	if (wrong == NO_WINDOW)
		answer.window = 0;
	if (wrong == RESULT_FOR_HELLO)
		answer.type = ACTIVE_RESULT;
	if (wrong == GARBAGE) {
		memset(s.out + (size_t)16 * ROOM, 0xac, 100);
		sock_send_fd(100);
		return;
	}
	message_send(&answer);
	if (wrong == TWO_WELCOMES)
		message_send(&answer);
}

static void run_answer(const struct active_message *m)
{
	static const uint8_t output[1000];
	struct active_message answer = { .type = ACTIVE_RESULT, .id = m->id, .value = 42 };

	runs++;
	switch (wrong) {
	case OTHER_ID:
		answer.id++;
		break;
	case TOO_MUCH_OUTPUT:
		answer.output = (struct active_span){ output, m->output_room + 1 };
		break;
	case LOADED_FOR_RUN:
		answer.type = ACTIVE_LOADED;
		break;
	case REQUEST_FOR_RUN:
		answer.type = ACTIVE_CANCEL;
		break;
	case NEVER_KNOWN:
	case LOAD_REFUSED:
	case LOAD_IN_DOUBT:
		answer.code = ACTIVE_UNKNOWN;
		break;
	case LOAD_NEEDED:
		answer.code = loads ? ACTIVE_OK : ACTIVE_UNKNOWN;
		break;
	case CUT:
		sock_send_fd(
			(size_t)active_message_write(&answer, s.out + (size_t)16 * ROOM, ROOM) - 1);
		return;
	default:
		break;
	}
	message_send(&answer);
	if (wrong == TWICE)
		message_send(&answer);
}

static void load_answer(const struct active_message *m)
{
	struct active_message answer = { .type = ACTIVE_LOADED,
					 .id = m->id,
					 .value = m->offset + m->part.len };

	loads++;
	if (wrong == LOAD_REFUSED)
		answer.code = ACTIVE_REFUSED;
	if (wrong == LOAD_IN_DOUBT)
		answer.value = 1ull << 40;
	message_send(&answer);
}

static void answer(const struct warp_wc *wc)
{
	struct active_message m;

	if (active_message_read(s.in + wc->wr_id * ROOM, wc->byte_len, &m))
		return;
	if (m.type == ACTIVE_HELLO)
		hello_answer(&m);
	else if (m.type == ACTIVE_RUN)
		run_answer(&m);
	else if (m.type == ACTIVE_LOAD)
		load_answer(&m);
	receive((unsigned int)wc->wr_id);
}

static void *serve(void *arg)
{
	struct warp_wc wc;

	while (warp_listener_get(s.listener, 50, &s.conn))
		if (__atomic_load_n(&s.stop, __ATOMIC_RELAXED))
			return NULL;
	warp_conn_accept(s.conn, s.qp, NULL);
	while (!__atomic_load_n(&s.stop, __ATOMIC_RELAXED)) {
		int n = warp_cq_poll(s.cq, &wc, 1);

		if (!n)
			warp_cq_wait(s.cq, 20);
		else if (n == 1 && wc.status == WARP_WC_SUCCESS && wc.opcode == WARP_WC_RECV)
			answer(&wc);
	}
	return NULL;
}

static void server_open(void)
{
	struct warp_qp_attr attr = {
		.max_send_wr = 256, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1
	};
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	s.out = calloc(RECEIVES + 17, ROOM);
	s.in = s.out + (size_t)17 * ROOM;
	cr_assert(s.out && !warp_device_open(NULL, &s.dev) && !warp_pd_create(s.dev, &s.pd) &&
		  !warp_cq_create(s.dev, 1024, &s.cq));
	attr.send_cq = attr.recv_cq = s.cq;
	cr_assert(!warp_qp_create(s.pd, &attr, &s.qp) &&
		  !warp_mr_register(s.pd, s.out, (RECEIVES + 17) * (size_t)ROOM,
				    WARP_ACCESS_LOCAL_WRITE, &s.mr));
	for (unsigned int i = 0; i < RECEIVES; i++)
		receive(i);
	cr_assert(!warp_listen(s.dev, (struct sockaddr *)&any, sizeof(any), 4, &s.listener) &&
		  !warp_listener_addr(s.listener, &s.addr) &&
		  !pthread_create(&s.thread, NULL, serve, NULL));
}

static void server_close(void)
{
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
	pthread_join(s.thread, NULL);
	warp_conn_destroy(s.conn);
	warp_qp_destroy(s.qp);
	warp_cq_destroy(s.cq);
	warp_mr_deregister(s.mr);
	warp_pd_destroy(s.pd);
	warp_listener_destroy(s.listener);
	warp_device_close(s.dev);
	free(s.out);
}

/* --- the client --------------------------------------------------------------------------- */

TestSuite(active_answers, .init = server_open, .fini = server_close, .timeout = 60);

static int connect_to(enum wrong how, struct warp_active_client **c)
{
	const struct warp_active_client_attr attr = { .timeout_ms = how == SILENCE ? 300
										   : TIMEOUT };

	wrong = how;
	return warp_active_connect((struct sockaddr *)&s.addr, sizeof(struct sockaddr_in), &attr,
				   c);
}

/* What a run with room for 100 octets comes to; the octets behind must stay */
static int run_on(enum wrong how, struct warp_active_result *result)
{
	static uint8_t output[200];
	struct warp_active_run run = { .output = output, .output_room = 100 };
	struct warp_active_object *object;
	struct warp_active_client *c;
	int ret;

	memset(output, 0x55, sizeof(output));
	cr_assert_not(warp_active_object_create("object", 6, &object));
	run.object = object;
	ret = connect_to(how, &c);
	cr_assert_not(ret, "%s", strerror(-ret));
	ret = warp_active_run(c, &run, result);
	cr_assert_eq(output[100], 0x55);
	cr_assert_not(warp_active_disconnect(c));
	warp_active_object_destroy(object);
	return ret;
}

Test(active_answers, nothing_wrong)
{
	struct warp_active_result r;

	cr_assert_not(run_on(NOTHING_WRONG, &r));
	cr_assert(r.code == WARP_ACTIVE_OK && r.value == 42);
}

#define CONNECT(name, how, error)                         \
	Test(active_answers, name)                        \
	{                                                 \
		struct warp_active_client *c;             \
		cr_assert_eq(connect_to(how, &c), error); \
	}

CONNECT(silence, SILENCE, -ETIMEDOUT)
CONNECT(garbage, GARBAGE, -EPROTO)
CONNECT(no_window, NO_WINDOW, -EPROTO)
CONNECT(result_for_hello, RESULT_FOR_HELLO, -EPROTO)

#define RUN(name, how)                                  \
	Test(active_answers, name)                      \
	{                                               \
		struct warp_active_result r;            \
		cr_assert_eq(run_on(how, &r), -EPROTO); \
	}

RUN(other_id, OTHER_ID)
RUN(too_much_output, TOO_MUCH_OUTPUT)
RUN(loaded_for_run, LOADED_FOR_RUN)
RUN(request_for_run, REQUEST_FOR_RUN)
RUN(cut, CUT)

/* The second one comes before the run or with it */
Test(active_answers, two_welcomes)
{
	struct warp_active_object *object;
	struct warp_active_client *c;
	struct warp_active_run run = { 0 };
	struct warp_active_result r;
	int ret;

	cr_assert_not(warp_active_object_create("object", 6, &object));
	run.object = object;
	ret = connect_to(TWO_WELCOMES, &c);
	if (!ret) {
		ret = warp_active_run(c, &run, &r);
		cr_assert_not(warp_active_disconnect(c));
	}
	cr_assert(ret == -EPROTO || ret == -ECONNRESET, "%d", ret);
	warp_active_object_destroy(object);
}

/* The first answer is good; the second one ends the connection, also for what comes later */
Test(active_answers, twice)
{
	struct warp_active_object *object;
	struct warp_active_client *c;
	struct warp_active_run run = { 0 };
	struct warp_active_result r;
	int ret = 0;

	cr_assert_not(warp_active_object_create("object", 6, &object));
	run.object = object;
	cr_assert_not(connect_to(TWICE, &c));
	for (int i = 0; i < 3 && !ret; i++)
		ret = warp_active_run(c, &run, &r);
	cr_assert(ret == -EPROTO || ret == -ECONNRESET, "%d", ret);
	cr_assert_not(warp_active_disconnect(c));
	warp_active_object_destroy(object);
}

/* Those that need the object at the same time have it sent once */
Test(active_answers, one_load_for_all)
{
	struct warp_active_request *r[3];
	struct warp_active_object *object;
	struct warp_active_client *c;
	struct warp_active_run run = { 0 };
	struct warp_active_result result;

	cr_assert_not(warp_active_object_create("object", 6, &object));
	run.object = object;
	cr_assert_not(connect_to(LOAD_NEEDED, &c));
	for (int i = 0; i < 3; i++)
		cr_assert_not(warp_active_start(c, &run, &r[i]));
	for (int i = 0; i < 3; i++) {
		cr_assert_not(warp_active_wait(r[i], TIMEOUT, &result));
		cr_assert_eq(result.code, WARP_ACTIVE_OK);
	}
	cr_assert_eq(loads, 1);
	cr_assert_not(warp_active_disconnect(c));
	warp_active_object_destroy(object);
}

/* A server that takes the object and never has it is not asked for ever */
Test(active_answers, never_known)
{
	struct warp_active_result r;

	cr_assert_not(run_on(NEVER_KNOWN, &r));
	cr_assert_eq(r.code, WARP_ACTIVE_UNKNOWN);
	cr_assert(runs == 5 && loads == 4, "%u runs, %u loads", runs, loads);
}

Test(active_answers, load_refused)
{
	struct warp_active_result r;

	cr_assert_not(run_on(LOAD_REFUSED, &r));
	cr_assert_eq(r.code, WARP_ACTIVE_REFUSED);
	cr_assert(runs == 1 && loads == 1);
}

/* All parts are answered, and none says that the object is there */
Test(active_answers, load_in_doubt)
{
	struct warp_active_result r;

	cr_assert_eq(run_on(LOAD_IN_DOUBT, &r), -EPROTO);
}
