/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The thread that hears all clients. It takes messages off the completion queue, answers what is
 * short at once, and leaves the rest to the pool. It alone ends sessions: when a connection is over
 * and nothing of its client is under way.
 */
#include "active/pool.h"
#include "active/session.h"
#include "base/clock.h"
#include "base/log.h"

enum {
	BATCH = 16,
	IDLE_MS = 200,	     /* how late it may notice that it, or a connection, is to end */
	ENDING_MS = 2,	     /* the same of a program whose client has gone */
	ALONE_NS = 10000000, /* a client is alone when no other was heard for so long */
};

static void session_end(struct active_session *s)
{
	if (s->over)
		return;
	s->over = true;
	s->server->ending++;
	warp_conn_abort(s->conn);
	active_pool_leave(s);
}

/* Whether nobody else would notice if this client's program took a while now */
static bool is_alone(struct warp_active_server *server, struct active_session *s, uint64_t now)
{
	if (server->last != s) {
		server->last = s;
		server->other_at = now;
	}
	return __atomic_load_n(&server->stats.clients, __ATOMIC_RELAXED) == 1 ||
	       now - server->other_at > ALONE_NS;
}

static void request_heard(struct active_session *s, const struct warp_wc *wc)
{
	struct active_task *task = &s->tasks[wc->wr_id];
	uint64_t now = base_now();

	if (!active_request_take(task, wc->byte_len, is_alone(s->server, s, now), now))
		active_session_break(s, "its message makes no sense");
}

static void completion_take(const struct warp_wc *wc)
{
	struct active_session *s = warp_qp_context(wc->qp);

	if (wc->status != WARP_WC_SUCCESS)
		session_end(s);
	else if (s->over)
		return;
	else if (wc->opcode == WARP_WC_RECV)
		request_heard(s, wc);
	else if (wc->wr_id != ACTIVE_NO_MEMORY)
		active_pool_answer_free(s, (unsigned int)wc->wr_id);
}

/* A connection whose receives were all used up ends without a completion */
static bool conn_over(const struct active_session *s)
{
	struct warp_conn_info info;

	return warp_conn_query(s->conn, &info) || info.state > WARP_CONN_ESTABLISHED;
}

/* Between batches, for completions point to sessions */
static void sessions_sweep(struct warp_active_server *server, bool all)
{
	struct base_list *at, *next;

	pthread_mutex_lock(&server->lock);
	base_list_foreach(at, next, &server->sessions) {
		struct active_session *s = base_list_entry(at, struct active_session, link);

		pthread_mutex_unlock(&server->lock);
		if (all || conn_over(s))
			session_end(s);
		if (s->over && active_pool_leave(s)) {
			server->ending--;
			active_session_destroy(s);
		}
		pthread_mutex_lock(&server->lock);
	}
	pthread_mutex_unlock(&server->lock);
}

/* Looks for completions itself for a while, as the program wants; then sleeps until there are */
static int completions_wait(struct warp_active_server *server, struct warp_wc *wc)
{
	uint64_t until = base_now() + (uint64_t)server->attr.spin_us * 1000;
	int n;

	do
		n = warp_cq_poll(server->cq, wc, BATCH);
	while (!n && base_now() < until && !server->ending);
	if (!n)
		warp_cq_wait(server->cq, server->ending ? ENDING_MS : IDLE_MS);
	return n;
}

static bool sweep_due(struct warp_active_server *server)
{
	uint64_t now = base_now();

	if (!server->ending && now < server->sweep_at)
		return false;
	server->sweep_at = now + (uint64_t)IDLE_MS * BASE_NS_PER_MS;
	return true;
}

static void *lane(void *arg)
{
	struct warp_active_server *server = arg;
	struct warp_wc wc[BATCH];
	bool stop;
	int n;

	do {
		n = completions_wait(server, wc);
		for (int i = 0; i < n; i++)
			completion_take(&wc[i]);
		stop = __atomic_load_n(&server->stop, __ATOMIC_ACQUIRE); /* active/server.c */
		if (n < 0)
			base_log(BASE_LOG_ERR, "active: completions were lost; all clients go");
		if (stop || n < 0 || sweep_due(server))
			sessions_sweep(server, stop || n < 0);
	} while (!stop || __atomic_load_n(&server->stats.clients, __ATOMIC_RELAXED));
	return NULL;
}

int active_lane_start(struct warp_active_server *server)
{
	int ret = -pthread_create(&server->lane_thread, NULL, lane, server);

	server->lane_runs = !ret;
	return ret;
}
