/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The native API on a provider that only remembers: what makes sense reaches it as it is, what
 * makes none never does.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bits.h"
#include "tests/unit/rnic/fake.h"

#define NO_DEV ((struct warp_device *)NULL)
#define NO_PD ((struct warp_pd *)NULL)

static struct warp_device *dev_out;
static struct warp_pd *pd_out;
static struct warp_mr *mr_out;
static struct warp_cq *cq_out;
static struct warp_qp *qp_out;
static struct warp_listener *listener_out;
static struct warp_conn *conn_out;
static char octets[16];

/* @expr is answered by the API itself, with @want */
#define REFUSED(expr, want)                                                          \
	do {                                                                         \
		fake_last.name = NULL;                                               \
		cr_expect_eq((expr), (want), #expr " is not " #want);                \
		cr_expect_null(fake_last.name, #expr " reached %s", fake_last.name); \
	} while (0)

/* @expr reaches the provider's @op with these arguments */
#define PASSED(expr, op, obj, a, n)                                                   \
	do {                                                                          \
		fake_last.name = NULL;                                                \
		cr_expect_eq((expr), FAKE_ANSWER, #expr);                             \
		cr_assert_not_null(fake_last.name, #expr " reached nobody");          \
		cr_expect_str_eq(fake_last.name, op);                                 \
		cr_expect_eq(fake_last.object, (obj), #expr ": object");              \
		cr_expect_eq(fake_last.arg, (a), #expr ": argument");                 \
		cr_expect_eq(fake_last.number, (unsigned long)(n), #expr ": number"); \
	} while (0)

Test(api, every_call_reaches_its_provider)
{
	struct warp_device_attr attr;
	struct warp_qp_attr qa = { .send_cq = &fake_cq, .recv_cq = &fake_cq };
	struct sockaddr_storage addr;
	struct warp_conn_info info;
	struct warp_wc wc[2];

	rnic_register(&fake_ops);
	PASSED(warp_device_open("fake", &dev_out), "device_open", NULL, &dev_out, 0);
	PASSED(warp_device_open(NULL, &dev_out), "device_open", NULL, &dev_out, 0);
	PASSED(warp_device_close(&fake_dev), "device_close", &fake_dev, NULL, 0);
	PASSED(warp_device_query(&fake_dev, &attr), "device_query", &fake_dev, &attr, 0);
	PASSED(warp_pd_create(&fake_dev, &pd_out), "pd_create", &fake_dev, &pd_out, 0);
	PASSED(warp_pd_destroy(&fake_pd), "pd_destroy", &fake_pd, NULL, 0);
	PASSED(warp_mr_register(&fake_pd, octets, 16, 0xF, &mr_out), "mr_register", &fake_pd,
	       octets, 16);
	PASSED(warp_mr_deregister(&fake_mr), "mr_deregister", &fake_mr, NULL, 0);
	PASSED(warp_cq_create(&fake_dev, 7, &cq_out), "cq_create", &fake_dev, &cq_out, 7);
	PASSED(warp_cq_destroy(&fake_cq), "cq_destroy", &fake_cq, NULL, 0);
	PASSED(warp_cq_poll(&fake_cq, wc, 2), "cq_poll", &fake_cq, wc, 2);
	PASSED(warp_cq_poll(&fake_cq, NULL, 0), "cq_poll", &fake_cq, NULL, 0);
	PASSED(warp_cq_arm(&fake_cq, true), "cq_arm", &fake_cq, NULL, 1);
	PASSED(warp_cq_arm(&fake_cq, false), "cq_arm", &fake_cq, NULL, 0);
	PASSED(warp_cq_fd(&fake_cq), "cq_fd", &fake_cq, NULL, 0);
	PASSED(warp_cq_ack(&fake_cq), "cq_ack", &fake_cq, NULL, 0);
	PASSED(warp_cq_wait(&fake_cq, -1), "cq_wait", &fake_cq, NULL, -1);
	PASSED(warp_qp_create(&fake_pd, &qa, &qp_out), "qp_create", &fake_pd, &qa, 0);
	PASSED(warp_qp_destroy(&fake_qp), "qp_destroy", &fake_qp, NULL, 0);
	PASSED(warp_listener_destroy(&fake_listener), "listener_destroy", &fake_listener, NULL, 0);
	PASSED(warp_listener_addr(&fake_listener, &addr), "listener_addr", &fake_listener, &addr,
	       0);
	PASSED(warp_listener_fd(&fake_listener), "listener_fd", &fake_listener, NULL, 0);
	PASSED(warp_listener_get(&fake_listener, 5, &conn_out), "listener_get", &fake_listener,
	       &conn_out, 5);
	PASSED(warp_conn_reject(&fake_conn, octets, 16), "conn_reject", &fake_conn, octets, 16);
	PASSED(warp_conn_reject(&fake_conn, NULL, 0), "conn_reject", &fake_conn, NULL, 0);
	PASSED(warp_conn_wait(&fake_conn, 3), "conn_wait", &fake_conn, NULL, 3);
	PASSED(warp_conn_fd(&fake_conn), "conn_fd", &fake_conn, NULL, 0);
	PASSED(warp_conn_query(&fake_conn, &info), "conn_query", &fake_conn, &info, 0);
	PASSED(warp_conn_disconnect(&fake_conn), "conn_disconnect", &fake_conn, NULL, 0);
	PASSED(warp_conn_abort(&fake_conn), "conn_abort", &fake_conn, NULL, 0);
	PASSED(warp_conn_destroy(&fake_conn), "conn_destroy", &fake_conn, NULL, 0);
}

Test(api, what_the_library_answers_itself)
{
	cr_expect_str_eq(warp_version(), WARPSOCK_VERSION);
	cr_expect_null(warp_provider_name(0));
	rnic_register(&fake_ops);
	cr_expect_str_eq(warp_provider_name(0), "fake");
	cr_expect_null(warp_provider_name(1));
	cr_expect_eq(warp_mr_stag(&fake_mr), 0x1234);
	cr_expect_eq(warp_mr_stag(NULL), 0);
	cr_expect_eq(warp_qp_context(&fake_qp), &fake_qp);
	cr_expect_null(warp_qp_context(NULL));
}

Test(api, ending_nothing_is_fine)
{
	REFUSED(warp_device_close(NULL), 0);
	REFUSED(warp_pd_destroy(NULL), 0);
	REFUSED(warp_mr_deregister(NULL), 0);
	REFUSED(warp_cq_destroy(NULL), 0);
	REFUSED(warp_qp_destroy(NULL), 0);
	REFUSED(warp_listener_destroy(NULL), 0);
	REFUSED(warp_conn_destroy(NULL), 0);
}

Test(api, null_where_an_object_or_a_place_must_be)
{
	struct warp_device_attr attr;
	struct sockaddr_storage addr;
	struct warp_conn_info info;
	struct warp_wc wc;

	rnic_register(&fake_ops);
	REFUSED(warp_device_open("fake", NULL), -EINVAL);
	REFUSED(warp_device_open("none such", &dev_out), -ENODEV);
	REFUSED(warp_device_query(NULL, &attr), -EINVAL);
	REFUSED(warp_device_query(&fake_dev, NULL), -EINVAL);
	REFUSED(warp_pd_create(NULL, &pd_out), -EINVAL);
	REFUSED(warp_pd_create(&fake_dev, NULL), -EINVAL);
	REFUSED(warp_cq_create(NULL, 1, &cq_out), -EINVAL);
	REFUSED(warp_cq_create(&fake_dev, 1, NULL), -EINVAL);
	REFUSED(warp_cq_create(&fake_dev, 0, &cq_out), -EINVAL);
	REFUSED(warp_cq_poll(NULL, &wc, 1), -EINVAL);
	REFUSED(warp_cq_poll(&fake_cq, NULL, 1), -EINVAL);
	REFUSED(warp_cq_poll(&fake_cq, &wc, -1), -EINVAL);
	REFUSED(warp_cq_arm(NULL, false), -EINVAL);
	REFUSED(warp_cq_fd(NULL), -EINVAL);
	REFUSED(warp_cq_ack(NULL), -EINVAL);
	REFUSED(warp_cq_wait(NULL, 0), -EINVAL);
	REFUSED(warp_listener_addr(NULL, &addr), -EINVAL);
	REFUSED(warp_listener_addr(&fake_listener, NULL), -EINVAL);
	REFUSED(warp_listener_fd(NULL), -EINVAL);
	REFUSED(warp_listener_get(NULL, 0, &conn_out), -EINVAL);
	REFUSED(warp_listener_get(&fake_listener, 0, NULL), -EINVAL);
	REFUSED(warp_conn_wait(NULL, 0), -EINVAL);
	REFUSED(warp_conn_fd(NULL), -EINVAL);
	REFUSED(warp_conn_query(NULL, &info), -EINVAL);
	REFUSED(warp_conn_query(&fake_conn, NULL), -EINVAL);
	REFUSED(warp_conn_disconnect(NULL), -EINVAL);
	REFUSED(warp_conn_abort(NULL), -EINVAL);
}

Test(api, memory_region)
{
	void *top = (void *)(UINTPTR_MAX - 15);

	REFUSED(warp_mr_register(NULL, octets, 1, 0, &mr_out), -EINVAL);
	REFUSED(warp_mr_register(&fake_pd, NULL, 1, 0, &mr_out), -EINVAL);
	REFUSED(warp_mr_register(&fake_pd, octets, 0, 0, &mr_out), -EINVAL);
	REFUSED(warp_mr_register(&fake_pd, octets, 1, 0x10, &mr_out), -EINVAL);
	REFUSED(warp_mr_register(&fake_pd, octets, 1, 0, NULL), -EINVAL);
	PASSED(warp_mr_register(&fake_pd, top, 16, 0, &mr_out), "mr_register", &fake_pd, top, 16);
	REFUSED(warp_mr_register(&fake_pd, top, 17, 0, &mr_out), -EINVAL);
	REFUSED(warp_mr_register(&fake_pd, octets, SIZE_MAX, 0, &mr_out), -EINVAL);
}

Test(api, queue_pair)
{
	struct warp_qp_attr good = { .send_cq = &fake_cq, .recv_cq = &fake_cq };
	struct warp_qp_attr bad;

	REFUSED(warp_qp_create(NULL, &good, &qp_out), -EINVAL);
	REFUSED(warp_qp_create(&fake_pd, NULL, &qp_out), -EINVAL);
	REFUSED(warp_qp_create(&fake_pd, &good, NULL), -EINVAL);
	bad = good;
	bad.send_cq = NULL;
	REFUSED(warp_qp_create(&fake_pd, &bad, &qp_out), -EINVAL);
	bad = good;
	bad.recv_cq = NULL;
	REFUSED(warp_qp_create(&fake_pd, &bad, &qp_out), -EINVAL);
	bad = good;
	bad.send_cq = &fake_other_cq;
	REFUSED(warp_qp_create(&fake_pd, &bad, &qp_out), -EINVAL);
	bad = good;
	bad.recv_cq = &fake_other_cq;
	REFUSED(warp_qp_create(&fake_pd, &bad, &qp_out), -EINVAL);
}

/* --- work requests ------------------------------------------------------------------------ */

static const struct warp_sge piece = { octets, 16, 1 }, eight = { octets, 8, 1 };
static const struct warp_sge empty = { NULL, 0, 0 }, nowhere = { NULL, 1, 1 };
static const struct warp_sge most[2] = { { octets, UINT32_MAX - 1, 1 }, { octets, 1, 1 } };
static const struct warp_sge too_many[2] = { { octets, UINT32_MAX, 1 }, { octets, 1, 1 } };

#define SIG WARP_SEND_SIGNALED
#define SOL WARP_SEND_SOLICITED
#define FENCE WARP_SEND_FENCE
#define INL WARP_SEND_INLINE

static const struct {
	enum warp_wr_opcode opcode;
	unsigned int flags;
	const struct warp_sge *sg;
	unsigned int num_sge;
	bool good;
} send_rows[] = {
	{ WARP_WR_SEND, SIG | SOL | FENCE | INL, &piece, 1, true },
	{ WARP_WR_SEND, 0, NULL, 0, true },
	{ WARP_WR_SEND, 0x10, &piece, 1, false },
	{ WARP_WR_SEND, 0, NULL, 1, false },
	{ WARP_WR_SEND, 0, &nowhere, 1, false },
	{ WARP_WR_SEND, 0, &empty, 1, true },
	{ WARP_WR_SEND, 0, most, 2, true },
	{ WARP_WR_SEND, 0, too_many, 2, false },
	{ WARP_WR_SEND_INVALIDATE, SIG | SOL | FENCE | INL, &piece, 1, true },
	{ WARP_WR_WRITE, SIG | FENCE | INL, &piece, 1, true },
	{ WARP_WR_WRITE, SOL, &piece, 1, false },
	{ WARP_WR_READ, SIG | FENCE, &piece, 1, true },
	{ WARP_WR_READ, 0, NULL, 0, true },
	{ WARP_WR_READ, 0, most, 2, false },
	{ WARP_WR_READ, INL, &piece, 1, false },
	{ WARP_WR_READ, SOL, &piece, 1, false },
	{ WARP_WR_IMMEDIATE, SIG | SOL | FENCE, NULL, 0, true },
	{ WARP_WR_IMMEDIATE, INL, NULL, 0, false },
	{ WARP_WR_IMMEDIATE, 0, &eight, 1, false },
	{ WARP_WR_FETCH_ADD, SIG | FENCE, &eight, 1, true },
	{ WARP_WR_FETCH_ADD, 0, &piece, 1, false },
	{ WARP_WR_FETCH_ADD, 0, NULL, 0, false },
	{ WARP_WR_FETCH_ADD, SOL, &eight, 1, false },
	{ WARP_WR_CMP_SWAP, SIG | FENCE, &eight, 1, true },
	{ WARP_WR_CMP_SWAP, INL, &eight, 1, false },
	{ WARP_WR_CMP_SWAP, 0, most, 2, false },
	{ WARP_WR_LOCAL_INVALIDATE, SIG | FENCE, NULL, 0, true },
	{ WARP_WR_LOCAL_INVALIDATE, SOL, NULL, 0, false },
	{ WARP_WR_LOCAL_INVALIDATE, 0, &piece, 1, false },
	{ (enum warp_wr_opcode)(WARP_WR_LOCAL_INVALIDATE + 1), 0, NULL, 0, false },
	{ (enum warp_wr_opcode) - 1, 0, NULL, 0, false },
};

Test(api, post_send_knows_each_opcode)
{
	for (size_t i = 0; i < base_array_size(send_rows); i++) {
		struct warp_send_wr wr = { .opcode = send_rows[i].opcode,
					   .flags = send_rows[i].flags,
					   .sg = send_rows[i].sg,
					   .num_sge = send_rows[i].num_sge };
		int want = send_rows[i].good ? FAKE_ANSWER : -EINVAL;

		fake_last.name = NULL;
		cr_expect_eq(warp_qp_post_send(&fake_qp, &wr, 1), want, "row %zu", i);
		cr_expect_eq(!!fake_last.name, send_rows[i].good, "row %zu", i);
	}
}

Test(api, posts_what_stands_before_the_first_bad_one)
{
	struct warp_send_wr wr[4] = { [2] = { .flags = 0x80 } };
	struct warp_recv_wr rv[4] = { [3] = { .sg = too_many, .num_sge = 2 } };

	PASSED(warp_qp_post_send(&fake_qp, wr, 4), "qp_post_send", &fake_qp, wr, 2);
	PASSED(warp_qp_post_send(&fake_qp, wr, 2), "qp_post_send", &fake_qp, wr, 2);
	PASSED(warp_qp_post_send(&fake_qp, NULL, 0), "qp_post_send", &fake_qp, NULL, 0);
	REFUSED(warp_qp_post_send(&fake_qp, wr + 2, 2), -EINVAL);
	REFUSED(warp_qp_post_send(&fake_qp, NULL, 1), -EINVAL);
	REFUSED(warp_qp_post_send(NULL, wr, 1), -EINVAL);
	PASSED(warp_qp_post_recv(&fake_qp, rv, 4), "qp_post_recv", &fake_qp, rv, 3);
	PASSED(warp_qp_post_recv(&fake_qp, NULL, 0), "qp_post_recv", &fake_qp, NULL, 0);
	REFUSED(warp_qp_post_recv(&fake_qp, rv + 3, 1), -EINVAL);
	REFUSED(warp_qp_post_recv(&fake_qp, NULL, 1), -EINVAL);
	REFUSED(warp_qp_post_recv(NULL, rv, 1), -EINVAL);
}

/* --- connections -------------------------------------------------------------------------- */

static const struct sockaddr_in ip4 = { .sin_family = AF_INET };
static const struct sockaddr_in6 ip6 = { .sin6_family = AF_INET6 };
static const struct sockaddr_un local = { .sun_family = AF_UNIX };

static const struct {
	const void *addr;
	socklen_t len;
	int want;
} addr_rows[] = {
	{ &ip4, sizeof(ip4), FAKE_ANSWER },
	{ &ip6, sizeof(ip6), FAKE_ANSWER },
	{ &ip4, sizeof(ip4) - 1, -EINVAL },
	{ &ip6, sizeof(ip6) - 1, -EINVAL },
	{ &ip4, 1, -EINVAL },
	{ NULL, sizeof(ip4), -EINVAL },
	{ &local, sizeof(local), -EAFNOSUPPORT },
};

Test(api, addresses)
{
	for (size_t i = 0; i < base_array_size(addr_rows); i++) {
		const struct sockaddr *addr = addr_rows[i].addr;
		socklen_t len = addr_rows[i].len;

		fake_last.name = NULL;
		cr_expect_eq(warp_listen(&fake_dev, addr, len, 1, &listener_out), addr_rows[i].want,
			     "row %zu", i);
		cr_expect_eq(!!fake_last.name, addr_rows[i].want == FAKE_ANSWER, "row %zu", i);
		fake_last.name = NULL;
		cr_expect_eq(warp_connect(&fake_qp, addr, len, NULL, &conn_out), addr_rows[i].want,
			     "row %zu", i);
		cr_expect_eq(!!fake_last.name, addr_rows[i].want == FAKE_ANSWER, "row %zu", i);
	}
}

Test(api, listen)
{
	const struct sockaddr *addr = (const struct sockaddr *)&ip4;

	PASSED(warp_listen(&fake_dev, addr, sizeof(ip4), 0, &listener_out), "listen", &fake_dev,
	       addr, 0);
	REFUSED(warp_listen(NULL, addr, sizeof(ip4), 1, &listener_out), -EINVAL);
	REFUSED(warp_listen(&fake_dev, addr, sizeof(ip4), -1, &listener_out), -EINVAL);
	REFUSED(warp_listen(&fake_dev, addr, sizeof(ip4), 1, NULL), -EINVAL);
}

static const struct {
	struct warp_conn_param param;
	int want;
} param_rows[] = {
	{ { 0 }, FAKE_ANSWER },
	{ { octets, 508, 1, 1, 0, 0 }, FAKE_ANSWER },
	{ { octets, 509, 1, 1, 0, 0 }, -EMSGSIZE },
	{ { octets, 512, 1, 1, WARP_CONN_REV1, 0 }, FAKE_ANSWER },
	{ { octets, 513, 1, 1, WARP_CONN_REV1, 0 }, -EMSGSIZE },
	{ { NULL, 1, 1, 1, 0, 0 }, -EINVAL },
	{ { NULL, 0, WARP_DEPTH_DEFAULT, WARP_DEPTH_DEFAULT, 0, 0 }, FAKE_ANSWER },
	{ { NULL, 0, WARP_DEPTH_NONE, WARP_DEPTH_NONE, 0, 0 }, FAKE_ANSWER },
	{ { NULL, 0, 0x4000, 1, 0, 0 }, -EINVAL },
	{ { NULL, 0, 1, 0xFFFE, 0, 0 }, -EINVAL },
	{ { NULL, 0, 1, 1, 0xFF, 1 }, FAKE_ANSWER },
	{ { NULL, 0, 1, 1, 0x100, 0 }, -EINVAL },
	{ { NULL, 0, 1, 1, 0, -1 }, -EINVAL },
};

static int pass_param(int how, const struct warp_conn_param *param)
{
	switch (how) {
	case 0:
		return warp_connect(&fake_qp, (const struct sockaddr *)&ip4, sizeof(ip4), param,
				    &conn_out);
	case 1:
		return warp_connect_fd(&fake_qp, eventfd(0, 0), param, &conn_out);
	case 2:
		return warp_accept_fd(&fake_dev, eventfd(0, 0), param, &conn_out);
	default:
		return warp_conn_accept(&fake_conn, &fake_qp, param);
	}
}

Test(api, connection_parameters)
{
	for (int how = 0; how < 4; how++) {
		for (size_t i = 0; i < base_array_size(param_rows); i++) {
			const struct warp_conn_param *p = &param_rows[i].param;
			bool good = param_rows[i].want == FAKE_ANSWER;

			fake_last.name = NULL;
			cr_expect_eq(pass_param(how, p), param_rows[i].want, "row %zu of %d", i,
				     how);
			cr_expect_eq(!!fake_last.name, good, "row %zu of %d", i, how);
			cr_expect(!good || !memcmp(p, &fake_last.param, sizeof(*p)));
		}
	}
}

Test(api, no_parameters_are_the_defaults)
{
	for (int how = 0; how < 4; how++) {
		memset(&fake_last, 0xA5, sizeof(fake_last));
		cr_expect_eq(pass_param(how, NULL), FAKE_ANSWER);
		cr_expect_null(fake_last.param.private_data);
		cr_expect_eq(fake_last.param.private_data_len, 0);
		cr_expect_eq(fake_last.param.ird, WARP_DEPTH_DEFAULT);
		cr_expect_eq(fake_last.param.ord, WARP_DEPTH_DEFAULT);
		cr_expect_eq(fake_last.param.flags, 0);
		cr_expect_eq(fake_last.param.timeout_ms, 0);
	}
}

Test(api, connect_and_answer)
{
	const struct sockaddr *addr = (const struct sockaddr *)&ip4;

	PASSED(warp_connect(&fake_qp, addr, sizeof(ip4), NULL, &conn_out), "connect", &fake_qp,
	       addr, sizeof(ip4));
	REFUSED(warp_connect(NULL, addr, sizeof(ip4), NULL, &conn_out), -EINVAL);
	REFUSED(warp_connect(&fake_qp, addr, sizeof(ip4), NULL, NULL), -EINVAL);
	PASSED(warp_conn_accept(&fake_conn, &fake_qp, NULL), "conn_accept", &fake_conn, &fake_qp,
	       0);
	REFUSED(warp_conn_accept(NULL, &fake_qp, NULL), -EINVAL);
	REFUSED(warp_conn_accept(&fake_conn, NULL, NULL), -EINVAL);
	REFUSED(warp_conn_accept(&fake_conn, &fake_other_qp, NULL), -EINVAL);
	REFUSED(warp_conn_reject(NULL, octets, 1), -EINVAL);
	REFUSED(warp_conn_reject(&fake_conn, NULL, 1), -EINVAL);
	REFUSED(warp_conn_reject(&fake_conn, octets, 513), -EMSGSIZE);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

Test(api, socket_is_taken_over_also_on_failure)
{
	struct warp_conn_param bad = { .flags = 0x100 };
	int fd = eventfd(0, 0);

	PASSED(warp_connect_fd(&fake_qp, fd, NULL, &conn_out), "connect_fd", &fake_qp, &conn_out,
	       fd);
	PASSED(warp_accept_fd(&fake_dev, fd, NULL, &conn_out), "accept_fd", &fake_dev, &conn_out,
	       fd);
	cr_expect(is_open(fd), "the provider has it now");
	REFUSED(warp_connect_fd(&fake_qp, fd, &bad, &conn_out), -EINVAL);
	cr_expect_not(is_open(fd));
	fd = eventfd(0, 0);
	REFUSED(warp_accept_fd(&fake_dev, fd, &bad, &conn_out), -EINVAL);
	cr_expect_not(is_open(fd));
	fd = eventfd(0, 0);
	REFUSED(warp_connect_fd(NULL, fd, NULL, &conn_out), -EINVAL);
	cr_expect_not(is_open(fd));
	fd = eventfd(0, 0);
	REFUSED(warp_accept_fd(&fake_dev, fd, NULL, NULL), -EINVAL);
	cr_expect_not(is_open(fd));
	REFUSED(warp_connect_fd(&fake_qp, -1, NULL, &conn_out), -EBADF);
	REFUSED(warp_accept_fd(&fake_dev, -1, NULL, &conn_out), -EBADF);
}
