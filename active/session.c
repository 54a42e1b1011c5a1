/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client's session: a protection domain of its own with the regions that it may use, a queue
 * pair, and memory for its requests and answers. So an STag that one client has is of no use to
 * another, and what a client can take of the server is settled when it comes.
 */
#include "active/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "active/kernel.h"
#include "base/address.h"
#include "base/bits.h"
#include "base/log.h"

static int memory_map(struct active_session *s)
{
	const struct warp_active_server_attr *attr = &s->server->attr;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t requests = (size_t)s->task_count * ACTIVE_REQUEST_ROOM;
	size_t size =
		base_align_up(requests + (size_t)attr->at_once * ACTIVE_WIRE_ANSWER_MAX, page);
	uint8_t *map = mmap(NULL, size + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return -ENOMEM;
	s->memory = map;
	s->memory_size = size + page;
	s->answers = map + requests;
	if (mprotect(map, size, PROT_READ | PROT_WRITE))
		return -ENOMEM;
	return warp_mr_register(s->pd, map, size, WARP_ACCESS_LOCAL_WRITE, &s->mr);
}

static int tasks_create(struct active_session *s)
{
	const struct warp_active_server_attr *attr = &s->server->attr;

	/*
	 * The window, a CANCEL, one to spare, and what a thread has that has answered and not yet
	 * given its receive back
	 */
	s->task_count = attr->window + 2 + attr->workers + 1;
	s->tasks = calloc(s->task_count, sizeof(*s->tasks));
	s->answer_free = calloc(attr->at_once, 1);
	if (!s->tasks || !s->answer_free)
		return -ENOMEM;
	for (unsigned int i = 0; i < attr->at_once; i++)
		s->answer_free[s->answers_free++] = (uint8_t)i;
	return memory_map(s);
}

static void tasks_prepare(struct active_session *s)
{
	for (unsigned int i = 0; i < s->task_count; i++) {
		struct active_task *task = &s->tasks[i];

		base_list_init(&task->link);
		base_list_init(&task->waiting);
		task->session = s;
		task->number = i;
		task->request = s->memory + (size_t)i * ACTIVE_REQUEST_ROOM;
		active_answer_receive(s, task);
	}
}

static int qp_create(struct active_session *s)
{
	struct warp_active_server *server = s->server;
	struct warp_qp_attr attr = { .send_cq = server->cq,
				     .recv_cq = server->cq,
				     .max_send_wr = s->task_count + 2,
				     .max_recv_wr = s->task_count,
				     .max_send_sge = 2,
				     .max_recv_sge = 1,
				     .max_inline = server->inline_max,
				     .context = s };

	return warp_qp_create(s->pd, &attr, &s->qp);
}

static int everything_grant(const struct warp_active_peer *peer, struct warp_active_server *server)
{
	struct base_list *at, *next;
	int ret = 0;

	pthread_mutex_lock(&server->lock);
	base_list_foreach(at, next, &server->regions) {
		struct warp_active_region *r = base_list_entry(at, struct warp_active_region, link);

		if (!ret)
			ret = warp_active_grant(peer, r, r->rights);
	}
	pthread_mutex_unlock(&server->lock);
	return ret;
}

static int admit(struct active_session *s)
{
	const struct warp_active_server_attr *attr = &s->server->attr;
	struct warp_active_peer peer = { .session = (struct warp_active_session *)(void *)s };
	struct warp_conn_info info;
	int ret = warp_conn_query(s->conn, &info);

	if (ret)
		return ret;
	peer.addr = &info.peer;
	peer.token = info.private_data;
	peer.token_len = info.private_data_len;
	return attr->admit ? attr->admit(attr->context, &peer) : everything_grant(&peer, s->server);
}

static void list_add(struct active_session *s)
{
	pthread_mutex_lock(&s->server->lock);
	base_list_push_back(&s->server->sessions, &s->link);
	active_count(s->server, clients, 1);
	pthread_mutex_unlock(&s->server->lock);
}

static void list_remove(struct active_session *s)
{
	pthread_mutex_lock(&s->server->lock);
	base_list_remove(&s->link);
	active_count(s->server, clients, -1u);
	pthread_mutex_unlock(&s->server->lock);
}

static int session_open(struct active_session *s)
{
	int ret = warp_pd_create(s->server->dev, &s->pd);

	if (!ret)
		ret = tasks_create(s);
	if (!ret)
		ret = qp_create(s);
	if (!ret)
		ret = admit(s);
	return ret;
}

static void conn_refuse(struct warp_active_server *server, struct warp_conn *conn, const char *why)
{
	base_log(BASE_LOG_INFO, "active: a client is refused: %s", why);
	active_count(server, refused, 1);
	warp_conn_reject(conn, why, strlen(why));
	warp_conn_destroy(conn);
}

/* The same IPv4 address, or the same network of IPv6, of which one host may have all addresses */
static bool is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (base_address_is_four(a))
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return !memcmp(&a6->sin6_addr, &b6->sin6_addr, 8);
}

/* Sessions that are over count until the lane has ended them, as they do among all */
static unsigned int clients_of(struct warp_active_server *server,
			       const struct sockaddr_storage *peer)
{
	struct base_list *at, *next;
	unsigned int n = 0;

	pthread_mutex_lock(&server->lock);
	base_list_foreach(at, next, &server->sessions)
		n += is_same_host(&base_list_entry(at, struct active_session, link)->peer, peer);
	pthread_mutex_unlock(&server->lock);
	return n;
}

/* Why there is no room for a client from there, or NULL. The door alone adds clients */
static const char *no_room(struct warp_active_server *server, const struct sockaddr_storage *peer)
{
	const struct warp_active_server_attr *attr = &server->attr;

	if (__atomic_load_n(&server->stats.clients, __ATOMIC_RELAXED) >= attr->clients)
		return "too many clients";
	if (attr->per_host < attr->clients && clients_of(server, peer) >= attr->per_host)
		return "too many clients of this host";
	return NULL;
}

static struct sockaddr_storage peer_of(struct warp_conn *conn)
{
	struct sockaddr_storage peer = { 0 };
	struct warp_conn_info info;

	if (!warp_conn_query(conn, &info)) {
		peer = info.peer;
		base_address_unmap(&peer);
	}
	return peer;
}

/*
 * Once it is accepted the lane may hear of it, also that it is over; it ends those that are in the
 * list
 */
static int session_accept(struct active_session *s)
{
	int ret;

	tasks_prepare(s);
	ret = warp_conn_accept(s->conn, s->qp, NULL);
	if (!ret)
		list_add(s);
	return ret;
}

int active_session_create(struct warp_active_server *server, struct warp_conn *conn)
{
	const struct sockaddr_storage peer = peer_of(conn);
	const char *why = no_room(server, &peer);
	struct active_session *s;
	int ret;

	if (why) {
		conn_refuse(server, conn, why);
		return -EMFILE;
	}
	s = calloc(1, sizeof(*s));
	if (!s) {
		conn_refuse(server, conn, "no memory");
		return -ENOMEM;
	}
	s->server = server;
	s->conn = conn;
	s->peer = peer;
	base_list_init(&s->link);
	base_list_init(&s->ready);
	base_list_init(&s->waiting);
	base_list_init(&s->begun);
	base_list_init(&s->own);
	ret = session_open(s);
	if (!ret)
		ret = session_accept(s);
	if (ret) {
		s->conn = NULL;
		conn_refuse(server, conn, strerror(-ret));
		active_session_destroy(s);
	}
	return ret;
}

static void own_destroy(struct active_session *s)
{
	struct base_list *node;

	while ((node = base_list_pop_front(&s->own)))
		active_region_destroy(base_list_entry(node, struct warp_active_region, link));
}

void active_session_destroy(struct active_session *s)
{
	if (!base_list_empty(&s->link))
		list_remove(s);
	warp_conn_destroy(s->conn);
	warp_qp_destroy(s->qp);
	for (unsigned int i = 0; i < s->view_count; i++)
		warp_mr_deregister(s->views[i].mr);
	own_destroy(s);
	active_kernel_leave(s);
	warp_mr_deregister(s->mr);
	warp_pd_destroy(s->pd);
	if (s->memory)
		munmap(s->memory, s->memory_size);
	active_upload_drop(s);
	free(s->tasks);
	free(s->answer_free);
	free(s);
}
