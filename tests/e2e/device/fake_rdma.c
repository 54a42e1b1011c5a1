/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libibverbs and librdmacm in one, without a device: tests/unit/verbs/fake.c under their names, for
 * programs under warpsock. What its device is like stands in the environment.
 */
#include "tests/unit/verbs/fake.c"

#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>

#include "wire/rsockets.h"

/* A peer of rsockets that takes what it is sent, and says nothing; but it ends as it is asked to */
static struct rs_conn_data reply = { .version = RS_VERSION, .flags = RS_CONN_IOMAP };

static int calls; /* that its library makes, one each 10 ms, before it forgets memory */
__attribute__((visibility("default"))) int fake_calling; /* atomic: it does */

static int number(const char *name, int otherwise)
{
	const char *value = getenv(name);

	return value ? atoi(value) : otherwise;
}

/* So late, in ms, does the peer's end come */
static void *end_late(void *pair)
{
	int late = number("FAKE_LATE", 0);

	nanosleep(&(struct timespec){ late / 1000, late % 1000 * 1000000 }, NULL);
	hear(queue_of(pair), rs_msg(RS_OP_CTRL, RS_CTRL_DISCONNECT));
	return NULL;
}

static void end_of_peer(struct ibv_qp *qp)
{
	pthread_t thread;

	if (!number("FAKE_LATE", 0))
		end_late(qp);
	else if (!pthread_create(&thread, NULL, end_late, qp))
		pthread_detach(thread);
}

/* Writes of no octets that were sent; and the peer is gone, which nobody hears of */
__attribute__((visibility("default"))) int fake_nothings, fake_silent; /* atomic */

static int send_and_end(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	uint32_t message;

	if (__atomic_load_n(&fake_silent, __ATOMIC_ACQUIRE))
		fake.sent_status = IBV_WC_RETRY_EXC_ERR;
	if (wr->opcode == IBV_WR_RDMA_WRITE && !wr->num_sge)
		__atomic_add_fetch(&fake_nothings, 1, __ATOMIC_ACQ_REL);
	post_send(qp, wr, bad);
	for (; wr; wr = wr->next) {
		if (wr->opcode != IBV_WR_SEND)
			continue;
		memcpy(&message, (void *)(uintptr_t)wr->sg_list->addr, sizeof(message));
		if (message == rs_msg(RS_OP_CTRL, RS_CTRL_DISCONNECT))
			end_of_peer(qp);
	}
	return 0;
}

/* A device that takes one operation, and no more */
static int send_one(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	static bool full;
	struct ibv_send_wr first = *wr;

	first.next = NULL;
	if (!full)
		post_send(qp, &first, bad);
	*bad = full ? wr : wr->next;
	full = true;
	return *bad ? ENOMEM : 0;
}

/* Of what it was given it says nothing, as long as the program wishes that */
__attribute__((visibility("default"))) int fake_holding; /* atomic */
static bool gone;

static int poll_unless_gone(struct ibv_cq *cq, int n, struct ibv_wc *out)
{
	if (__atomic_load_n(&gone, __ATOMIC_ACQUIRE))
		abort();
	return __atomic_load_n(&fake_holding, __ATOMIC_ACQUIRE) ? 0 : poll_cq(cq, n, out);
}

/* The library's own end, as long as somebody may need to come to it */
__attribute__((destructor)) static void fake_end(void)
{
	__atomic_store_n(&gone, true, __ATOMIC_RELEASE);
	if (number("FAKE_FULL", 0))
		sleep(1);
}

/* That the program has ended a connection, a file tells, too */
static int disconnect_and_tell(struct rdma_cm_id *id)
{
	const char *told = getenv("FAKE_TOLD");

	if (told)
		close(open(told, O_CREAT | O_WRONLY, 0600));
	push(id, RDMA_CM_EVENT_DISCONNECTED, 0);
	return disconnect(id);
}

/* By a name that is the interposer's, on a descriptor that it keeps */
static int dereg_mr_calling(struct ibv_mr *mr)
{
	int n;

	for (; calls; calls--) {
		__atomic_store_n(&fake_calling, 1, __ATOMIC_RELEASE);
		ioctl(last->channel.fd, FIONREAD, &n);
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	return dereg_mr(mr);
}

__attribute__((constructor)) static void fake_begin(void)
{
	reply.credits = htobe16(64);
	reply.target_sgl = (struct rs_buf_desc){ htobe64(4096), htobe32(1), htobe32(2) };
	reply.data_buf = (struct rs_buf_desc){ htobe64(65536), htobe32(1), htobe32(32768) };
	fake_reset();
	fake.reply = &reply;
	fake.reply_len = sizeof(reply);
	if (number("FAKE_ROCE", 0))
		fake.transport = IBV_TRANSPORT_IB;
	fake.connected = (enum rdma_cm_event_type)number("FAKE_CONNECTED", fake.connected);
	fake.regions = (unsigned int)number("FAKE_REGIONS", (int)fake.regions);
	fake.channel_errno = number("FAKE_ERRNO", 0);
	fake.elsewhere = number("FAKE_ELSEWHERE", 0);
	calls = number("FAKE_CALLS", 0);
	context.ops.post_send = number("FAKE_FULL", 0) ? send_one : send_and_end;
	context.ops.poll_cq = poll_unless_gone;
}

/* To the program under test: a client of the device's asks for a connection */
__attribute__((visibility("default"))) bool fake_knock(int port);

bool fake_knock(int port)
{
	return fake_ask((uint16_t)port, &reply, sizeof(reply));
}

/* Something happens to the device at that port, and nobody asks */
__attribute__((visibility("default"))) bool fake_stir_at(int port);

bool fake_stir_at(int port)
{
	return fake_stir((uint16_t)port);
}

/* From now on no event is given to who asks for it, for that reason; 0: each is */
__attribute__((visibility("default"))) void fake_refuse(int why);

void fake_refuse(int why)
{
	__atomic_store_n(&fake.event_errno, why, __ATOMIC_RELEASE);
}

/* How many were refused */
__attribute__((visibility("default"))) int fake_refused; /* atomic */

static int reject_id(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	__atomic_add_fetch(&fake_refused, 1, __ATOMIC_ACQ_REL);
	return 0;
}

/* And answered */
__attribute__((visibility("default"))) int fake_answered; /* atomic */

static int accept_and_count(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	__atomic_add_fetch(&fake_answered, 1, __ATOMIC_ACQ_REL);
	return accept_id(id, param);
}

static int nothing(void)
{
	return 0;
}

#define NAME(lib, function, called)                                            \
	__typeof__(function) export_##lib##_##called __asm__(#lib "_" #called) \
		__attribute__((alias(#function), visibility("default")));

#define SAME(lib, called) NAME(lib, called, called)
#define NONE(lib, called) NAME(lib, nothing, called)

SAME(ibv, ack_cq_events)
SAME(ibv, alloc_pd)
SAME(ibv, create_comp_channel)
SAME(ibv, create_cq)
SAME(ibv, dealloc_pd)
NAME(ibv, dereg_mr_calling, dereg_mr)
SAME(ibv, destroy_comp_channel)
SAME(ibv, destroy_cq)
SAME(ibv, get_cq_event)
SAME(ibv, query_device)
SAME(ibv, reg_mr)
NAME(rdma, accept_and_count, accept)
SAME(rdma, ack_cm_event)
SAME(rdma, bind_addr)
NAME(rdma, connect_id, connect)
SAME(rdma, create_event_channel)
SAME(rdma, create_id)
SAME(rdma, create_qp)
SAME(rdma, destroy_event_channel)
SAME(rdma, destroy_id)
SAME(rdma, destroy_qp)
NAME(rdma, disconnect_and_tell, disconnect)
SAME(rdma, get_cm_event)
NAME(rdma, listen_id, listen)
SAME(rdma, migrate_id)
NAME(rdma, reject_id, reject)
SAME(rdma, resolve_addr)
SAME(rdma, resolve_route)
NONE(ibv, ack_async_event)
NONE(ibv, close_device)
NONE(ibv, create_qp)
NONE(ibv, destroy_qp)
NONE(ibv, fork_init)
SAME(ibv, free_device_list)
NONE(ibv, get_async_event)
SAME(ibv, get_device_list)
NONE(ibv, get_device_name)
NONE(ibv, modify_qp)
NONE(ibv, open_device)
NONE(ibv, query_port)
NONE(rdma, establish)
NONE(rdma, init_qp_attr)
NONE(rdma, set_option)
