/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A message that is sent completes at once; one that is heard lies in the receive that was posted
 * first. A peer that asks is accepted at once, too.
 */
#include "fake.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/address.h"
#include "base/bits.h"

#define QUEUE 64
#define RECEIVES 1024
#define LISTENERS 4

struct channel {
	struct rdma_event_channel rdma;
	struct rdma_cm_event event[8];
	unsigned int head, tail;
};

struct fake fake;
struct verbs_lib verbs_lib;

static struct ibv_device device;
static struct ibv_context context;

/* What one stream has; a thread that sends and one that receives may meet there */
struct queue {
	struct ibv_comp_channel channel;
	struct ibv_cq cq;
	struct ibv_qp pair;
	pthread_mutex_t lock;
	struct ibv_wc done[QUEUE];
	unsigned int done_head, done_tail;
	struct ibv_recv_wr received[RECEIVES];
	struct ibv_sge places[RECEIVES];
	unsigned int recv_head, recv_tail;
	bool armed;
};

static struct queue *last; /* atomic: that was made */
static struct rdma_cm_id *listening[LISTENERS];
/* Of who listens, and of events: programs under test may have threads */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int verbs_lib_load(void)
{
	return fake.load;
}

static void *made(void *p)
{
	__atomic_add_fetch(&fake.made, 1, __ATOMIC_RELAXED);
	return p;
}

/* Who looks at it meanwhile finds it as it is */
static void transport_take(void)
{
	if (device.transport_type != fake.transport)
		device.transport_type = fake.transport;
}

static int destroyed(void)
{
	__atomic_add_fetch(&fake.destroyed, 1, __ATOMIC_RELAXED);
	return 0;
}

/* A number that was another's before: a sanitizer does not see when ours are closed */
static int event_fd(int flags)
{
	return (int)syscall(SYS_eventfd2, 0, flags | EFD_CLOEXEC);
}

/* --- librdmacm --- */

/* Lock */
static struct rdma_cm_event *event_make(struct rdma_cm_id *id, enum rdma_cm_event_type what)
{
	struct channel *c = base_container_of(id->channel, struct channel, rdma);
	struct rdma_cm_event *event = &c->event[c->tail++ % 8];

	*event = (struct rdma_cm_event){ .id = id, .event = what };
	return event;
}

/* Lock. Another thread may have it when that is let go */
static void event_tell(const struct rdma_cm_event *event)
{
	eventfd_write(event->id->channel->fd, 1);
}

static void push(struct rdma_cm_id *id, enum rdma_cm_event_type what, int status)
{
	struct rdma_cm_event *event;

	pthread_mutex_lock(&lock);
	event = event_make(id, what);
	event->status = status;
	event_tell(event);
	pthread_mutex_unlock(&lock);
}

static struct rdma_event_channel *create_event_channel(void)
{
	struct channel *c;
	int fd;

	if (fake.channel_errno) {
		errno = fake.channel_errno;
		return NULL;
	}
	fd = event_fd(EFD_SEMAPHORE);
	if (fd < 0)
		return NULL;
	c = calloc(1, sizeof(*c));
	c->rdma.fd = fd;
	return made(&c->rdma);
}

static int get_cm_event(struct rdma_event_channel *at, struct rdma_cm_event **out)
{
	struct channel *c = base_container_of(at, struct channel, rdma);
	int refused = __atomic_load_n(&fake.event_errno, __ATOMIC_ACQUIRE);
	eventfd_t one;

	if (refused) {
		errno = refused;
		return -1;
	}
	if (eventfd_read(at->fd, &one))
		return -1;
	pthread_mutex_lock(&lock);
	*out = &c->event[c->head++ % 8];
	pthread_mutex_unlock(&lock);
	return 0;
}

static int ack_cm_event(struct rdma_cm_event *event)
{
	return 0;
}

static int create_id(struct rdma_event_channel *at, struct rdma_cm_id **id, void *ctx,
		     enum rdma_port_space ps)
{
	*id = made(calloc(1, sizeof(**id)));
	(*id)->channel = at;
	return 0;
}

static int destroy_id(struct rdma_cm_id *id)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < LISTENERS; i++)
		if (listening[i] == id)
			listening[i] = NULL;
	pthread_mutex_unlock(&lock);
	free(id);
	return destroyed();
}

static void destroy_event_channel(struct rdma_event_channel *at)
{
	struct channel *c = base_container_of(at, struct channel, rdma);

	/* Who asked and was not heard goes with it */
	for (; c->head != c->tail; c->head++)
		if (c->event[c->head % 8].event == RDMA_CM_EVENT_CONNECT_REQUEST)
			destroy_id(c->event[c->head % 8].id);
	close(at->fd);
	free(c);
	destroyed();
}

static void name_keep(struct sockaddr_storage *out, const struct sockaddr *addr)
{
	memcpy(out, addr, base_address_len(addr));
}

static int bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)addr;

	transport_take();
	/* As the kernel, to which such a one is no device's */
	if (addr->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
		errno = ENODEV;
		return -1;
	}
	id->verbs = fake.elsewhere ? NULL : &context;
	name_keep(&id->route.addr.src_storage, addr);
	/* As the kernel, which chooses one */
	if (!id->route.addr.src_sin.sin_port)
		id->route.addr.src_sin.sin_port = htons(FAKE_PORT);
	return 0;
}

static int resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int ms)
{
	name_keep(&id->route.addr.dst_storage, to);
	if (fake.late) {
		fake.late--;
		push(id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	} else {
		push(id, fake.resolved, 0);
	}
	return 0;
}

static int resolve_route(struct rdma_cm_id *id, int ms)
{
	push(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return 0;
}

static struct queue *queue_of(const struct ibv_qp *qp)
{
	return base_container_of(qp->send_cq, struct queue, cq);
}

static void complete(struct queue *q, struct ibv_wc wc)
{
	pthread_mutex_lock(&q->lock);
	q->done[q->done_tail++ % QUEUE] = wc;
	if (q->armed)
		eventfd_write(q->channel.fd, 1);
	q->armed = false;
	pthread_mutex_unlock(&q->lock);
}

static void hear(struct queue *q, uint32_t message)
{
	unsigned int i = q->recv_head++ % RECEIVES;

	memcpy((void *)(uintptr_t)q->places[i].addr, &message, sizeof(message));
	complete(q, (struct ibv_wc){ .wr_id = q->received[i].wr_id, .byte_len = sizeof(message) });
}

static int connect_id(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct rdma_cm_event *event;

	pthread_mutex_lock(&lock);
	event = event_make(id, fake.connected);
	event->param.conn.private_data = fake.reply;
	event->param.conn.private_data_len = fake.reply_len;
	event_tell(event);
	if (fake.brief) {
		hear(queue_of(id->qp), 1);
		event_tell(event_make(id, RDMA_CM_EVENT_DISCONNECTED));
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static int disconnect(struct rdma_cm_id *id)
{
	return 0;
}

/* --- librdmacm: listeners --- */

static in_port_t port_of(const struct rdma_cm_id *id)
{
	return id->route.addr.src_sin.sin_port;
}

static int slot_of(const struct rdma_cm_id *id)
{
	int i = 0;

	while (i < LISTENERS && listening[i] != id)
		i++;
	return i < LISTENERS ? i : -1;
}

static int listen_id(struct rdma_cm_id *id, int backlog)
{
	int slot;

	pthread_mutex_lock(&lock);
	slot = slot_of(NULL);
	for (int i = 0; i < LISTENERS; i++)
		if (listening[i] && port_of(listening[i]) == port_of(id))
			slot = -1;
	if (slot >= 0)
		listening[slot] = id;
	pthread_mutex_unlock(&lock);
	if (slot < 0)
		errno = EADDRINUSE;
	return slot < 0 ? -1 : 0;
}

/* Lock */
static struct rdma_cm_id *listener_at(uint16_t port)
{
	for (int i = 0; i < LISTENERS; i++)
		if (listening[i] && port_of(listening[i]) == htons(port))
			return listening[i];
	return NULL;
}

/* Lock */
static void ask(struct rdma_cm_id *listener, uint16_t port, const void *data, uint8_t len)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	create_id(listener->channel, &id, NULL, RDMA_PS_TCP);
	transport_take();
	id->verbs = &context;
	id->route.addr.src_sin = (struct sockaddr_in){ .sin_family = AF_INET,
						       .sin_port = htons(port),
						       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	id->route.addr.dst_sin = id->route.addr.src_sin;
	id->route.addr.dst_sin.sin_port = htons(FAKE_PORT);
	event = event_make(id, RDMA_CM_EVENT_CONNECT_REQUEST);
	event->listen_id = listener;
	event->param.conn.private_data = data;
	event->param.conn.private_data_len = len;
	event_tell(event);
}

bool fake_ask(uint16_t port, const void *data, uint8_t len)
{
	struct rdma_cm_id *listener;

	pthread_mutex_lock(&lock);
	listener = listener_at(port);
	if (listener)
		ask(listener, port, data, len);
	pthread_mutex_unlock(&lock);
	return listener;
}

bool fake_stir(uint16_t port)
{
	struct rdma_cm_id *listener;

	pthread_mutex_lock(&lock);
	listener = listener_at(port);
	if (listener)
		event_tell(event_make(listener, RDMA_CM_EVENT_ADDR_CHANGE));
	pthread_mutex_unlock(&lock);
	return listener;
}

static int migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	id->channel = channel;
	return 0;
}

static int accept_id(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	push(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	return 0;
}

static int create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct queue *q = base_container_of(attr->send_cq, struct queue, cq);

	if (attr->cap.max_inline_data > fake.inlined) {
		errno = EINVAL;
		return -1;
	}
	q->pair = (struct ibv_qp){ .context = &context, .send_cq = &q->cq };
	id->qp = made(&q->pair);
	return 0;
}

static void destroy_qp(struct rdma_cm_id *id)
{
	id->qp = NULL;
	destroyed();
}

/* --- libibverbs --- */

static struct ibv_pd *alloc_pd(struct ibv_context *ctx)
{
	static struct ibv_pd pd;

	return made(&pd);
}

static int dealloc_pd(struct ibv_pd *pd)
{
	return destroyed();
}

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *ctx)
{
	struct queue *q;
	int fd = event_fd(0);

	if (fd < 0)
		return NULL;
	q = calloc(1, sizeof(*q));
	pthread_mutex_init(&q->lock, NULL);
	q->channel.fd = fd;
	__atomic_store_n(&last, q, __ATOMIC_RELEASE);
	return made(&q->channel);
}

static int destroy_comp_channel(struct ibv_comp_channel *at)
{
	close(at->fd);
	free(base_container_of(at, struct queue, channel));
	return destroyed();
}

static struct ibv_cq *create_cq(struct ibv_context *ctx, int n, void *own,
				struct ibv_comp_channel *at, int vector)
{
	struct queue *q = base_container_of(at, struct queue, channel);

	q->cq.context = ctx;
	return made(&q->cq);
}

static int destroy_cq(struct ibv_cq *cq)
{
	return destroyed();
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr;

	/* Only one thread is near the last of them */
	if (!__atomic_load_n(&fake.regions, __ATOMIC_RELAXED)) {
		errno = ENOMEM;
		return NULL;
	}
	__atomic_sub_fetch(&fake.regions, 1, __ATOMIC_RELAXED);
	mr = calloc(1, sizeof(*mr));
	mr->addr = addr;
	mr->length = length;
	return made(mr);
}

static int dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	return destroyed();
}

static int get_cq_event(struct ibv_comp_channel *at, struct ibv_cq **cq, void **ctx)
{
	eventfd_t n;

	*cq = &base_container_of(at, struct queue, channel)->cq;
	return eventfd_read(at->fd, &n);
}

static struct ibv_device **get_device_list(int *n)
{
	static struct ibv_device *list[] = { &device, NULL };

	transport_take();
	*n = fake.elsewhere ? 0 : 1;
	return list;
}

static void free_device_list(struct ibv_device **list)
{
}

static int query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){ .max_qp_wr = 4096, .max_cqe = 8192 };
	return 0;
}

static void ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	struct queue *q = base_container_of(cq, struct queue, cq);

	pthread_mutex_lock(&q->lock);
	q->armed = true;
	pthread_mutex_unlock(&q->lock);
	return 0;
}

/* Until another thread has got one, too */
static void pair_wait(void)
{
	static unsigned int takers;
	unsigned int n = __atomic_add_fetch(&takers, 1, __ATOMIC_RELAXED);

	while (n & 1 && __atomic_load_n(&takers, __ATOMIC_RELAXED) == n)
		sched_yield();
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *out)
{
	struct queue *q = base_container_of(cq, struct queue, cq);
	int got = 0;

	if (fake.paired)
		n = 1;
	pthread_mutex_lock(&q->lock);
	while (got < n && q->done_head != q->done_tail)
		out[got++] = q->done[q->done_head++ % QUEUE];
	pthread_mutex_unlock(&q->lock);
	if (got && fake.paired)
		pair_wait();
	return got;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (; wr; wr = wr->next) {
		pthread_mutex_lock(&lock);
		fake.sent[fake.num_sent++ % 16] = *wr;
		pthread_mutex_unlock(&lock);
		if (wr->send_flags & IBV_SEND_SIGNALED)
			complete(queue_of(qp),
				 (struct ibv_wc){ .wr_id = wr->wr_id, .status = fake.sent_status });
	}
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct queue *q = queue_of(qp);

	q->received[q->recv_tail % RECEIVES] = *wr;
	q->places[q->recv_tail++ % RECEIVES] = *wr->sg_list;
	return 0;
}

void fake_hear(uint32_t message)
{
	hear(last, message);
}

/* --- all --- */

void fake_reset(void)
{
	fake = (struct fake){ .transport = IBV_TRANSPORT_IWARP,
			      .resolved = RDMA_CM_EVENT_ADDR_RESOLVED,
			      .connected = RDMA_CM_EVENT_ESTABLISHED,
			      .regions = 100,
			      .inlined = 64 };
	context = (struct ibv_context){ .device = &device,
					.cmd_fd = -1,
					.async_fd = -1,
					.ops = { .poll_cq = poll_cq,
						 .req_notify_cq = req_notify_cq,
						 .post_send = post_send,
						 .post_recv = post_recv } };
	verbs_lib = (struct verbs_lib){
		.ibv_ack_cq_events_call = ack_cq_events,
		.ibv_alloc_pd_call = alloc_pd,
		.ibv_create_comp_channel_call = create_comp_channel,
		.ibv_create_cq_call = create_cq,
		.ibv_dealloc_pd_call = dealloc_pd,
		.ibv_dereg_mr_call = dereg_mr,
		.ibv_destroy_comp_channel_call = destroy_comp_channel,
		.ibv_destroy_cq_call = destroy_cq,
		.ibv_free_device_list_call = free_device_list,
		.ibv_get_cq_event_call = get_cq_event,
		.ibv_get_device_list_call = get_device_list,
		.ibv_query_device_call = query_device,
		.ibv_reg_mr_call = reg_mr,
		.rdma_accept_call = accept_id,
		.rdma_ack_cm_event_call = ack_cm_event,
		.rdma_bind_addr_call = bind_addr,
		.rdma_connect_call = connect_id,
		.rdma_create_event_channel_call = create_event_channel,
		.rdma_create_id_call = create_id,
		.rdma_create_qp_call = create_qp,
		.rdma_destroy_event_channel_call = destroy_event_channel,
		.rdma_destroy_id_call = destroy_id,
		.rdma_destroy_qp_call = destroy_qp,
		.rdma_disconnect_call = disconnect,
		.rdma_get_cm_event_call = get_cm_event,
		.rdma_listen_call = listen_id,
		.rdma_migrate_id_call = migrate_id,
		.rdma_resolve_addr_call = resolve_addr,
		.rdma_resolve_route_call = resolve_route,
	};
}
