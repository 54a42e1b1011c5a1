/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SO_KEEPALIVE: where nothing has come or left for as long as the program says, a Write of no
 * bytes goes, as with rsockets. Whether it comes to the peer is the transport's affair, which
 * sends it again, and gives the connection up when nobody answers: how long that takes is its own.
 *
 * There is one at a time. It completes as a message does, for it counts as nothing that was sent.
 * A timer stands in the connection's epoll set as long as the program wishes it, so it goes when
 * somebody waits for the connection, or comes by.
 */
#include "base/clock.h"
#include "base/log.h"
#include "verbs/verbs_stream.h"
#include "verbs/verbs_timer.h"

/* Pairs with verbs_stream_keep_look() */
void verbs_stream_keepalive(struct rnic_native *n, uint64_t ns)
{
	verbs_store(&base_container_of(n, struct verbs_stream, native)->keep_wish, ns);
}

/* Without a descriptor for a timer the peer is not asked */
void verbs_stream_keep_look(struct verbs_stream *s)
{
	uint64_t wish = verbs_load(&s->keep_wish);

	if (wish == s->keep_ns || verbs_load(&s->phase) != VERBS_OPEN)
		return;
	s->keep_ns = wish;
	s->moved = base_now();
	verbs_timer_set(&s->keep_timer, s->native.fd, wish);
}

static void keepalive(struct verbs_stream *s)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .wr_id = VERBS_STREAM_KEEP,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	verbs_stream_nothing(s, &wr);
	base_debug("verbs: nothing has come for a while: a Write of no octets");
	s->keep_out = !ibv_post_send(s->id->qp, &wr, &bad);
}

void verbs_stream_keep_go(struct verbs_stream *s)
{
	uint64_t now = base_now(), quiet = now - s->moved;
	bool due = quiet >= s->keep_ns;

	if (due && !s->keep_out)
		keepalive(s);
	if (due)
		s->moved = now;
	verbs_timer_set(&s->keep_timer, s->native.fd, due ? s->keep_ns : s->keep_ns - quiet);
}

void verbs_stream_keep_end(struct verbs_stream *s)
{
	verbs_timer_end(&s->keep_timer, s->native.fd);
}
