/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a server sends to a client.
 *
 * A task's receive is posted again behind its answer, and the client may send its next request as
 * soon as it has the answer: so each thread that answers has a receive to spare. A client that
 * keeps to its window has at most as many answers under way as the send queue has room for; one
 * that does not is disconnected.
 */
#include <errno.h>
#include <string.h>

#include "active/inside.h"
#include "active/session.h"
#include "base/bits.h"
#include "base/log.h"

void active_answer_receive(struct active_session *s, struct active_task *task)
{
	const struct warp_sge sg = { task->request, ACTIVE_REQUEST_ROOM, warp_mr_stag(s->mr) };
	const struct warp_recv_wr wr = { .wr_id = task->number, .sg = &sg, .num_sge = 1 };

	/* -ENOTCONN is all that it can fail by, and then the session ends anyway */
	warp_qp_post_recv(s->qp, &wr, 1);
}

void active_session_break(struct active_session *s, const char *why)
{
	base_log(BASE_LOG_INFO, "active: a client is disconnected: %s", why);
	active_count(s->server, broken, 1);
	warp_conn_abort(s->conn);
}

static void post(struct active_session *s, const struct warp_send_wr *wr)
{
	int ret = warp_qp_post_send(s->qp, wr, 1);

	if (ret < 0 && ret != -ENOTCONN)
		active_session_break(s, "it does not take its answers");
}

void active_answer_send(struct active_session *s, const struct active_message *given)
{
	struct active_message m = *given;
	uint8_t octets[ACTIVE_INLINE];
	struct warp_sge sg = { octets, 0, 0 };
	const struct warp_send_wr wr = { .wr_id = ACTIVE_NO_MEMORY,
					 .opcode = WARP_WR_SEND,
					 .flags = WARP_SEND_INLINE,
					 .sg = &sg,
					 .num_sge = 1 };
	size_t room = s->server->inline_max - 64;

	m.text.len = base_min(m.text.len, room);
	sg.length = (uint32_t)active_message_write(&m, octets, sizeof(octets));
	post(s, &wr);
}

uint8_t *active_answer_output(const struct active_session *s, unsigned int memory)
{
	return s->answers + (size_t)memory * ACTIVE_WIRE_ANSWER_MAX + ACTIVE_FRONT_MAX;
}

bool active_answer_send_output(struct active_session *s, const struct active_message *m,
			       unsigned int memory)
{
	uint8_t *front = active_answer_output(s, memory) - ACTIVE_FRONT_MAX;
	int len = active_message_write_front(m, front, ACTIVE_FRONT_MAX);
	uint32_t stag = warp_mr_stag(s->mr);
	struct warp_sge sg[2] = { { front, (uint32_t)len, stag },
				  { front + ACTIVE_FRONT_MAX, (uint32_t)m->output.len, stag } };
	struct warp_send_wr wr = {
		.wr_id = memory,
		.opcode = WARP_WR_SEND,
		.flags = WARP_SEND_SIGNALED,
		.sg = sg,
		.num_sge = m->output.len ? 2 : 1,
	};
	bool small = (size_t)len + m->output.len <= s->server->inline_max;

	if (small) {
		wr.flags = WARP_SEND_INLINE;
		wr.wr_id = ACTIVE_NO_MEMORY;
	}
	post(s, &wr);
	return small;
}

void active_answer_welcome(struct active_session *s, uint64_t id, unsigned int memory)
{
	uint8_t *to = active_answer_output(s, memory) - ACTIVE_FRONT_MAX;
	static const size_t front = 16 + 8;
	struct active_message m = { .type = ACTIVE_WELCOME,
				    .id = id,
				    .window = s->server->attr.window,
				    .region_count = s->view_count };
	struct warp_sge sg = { to, 0, warp_mr_stag(s->mr) };
	const struct warp_send_wr wr = { .wr_id = memory,
					 .opcode = WARP_WR_SEND,
					 .flags = WARP_SEND_SIGNALED,
					 .sg = &sg,
					 .num_sge = 1 };
	size_t used = 0;

	for (unsigned int i = 0; i < s->view_count; i++) {
		const struct warp_active_region *r = s->views[i].region;
		const struct active_region_info info = {
			.addr = (uintptr_t)r->memory,
			.size = r->size,
			.stag = warp_mr_stag(s->views[i].mr),
			.rights = s->views[i].rights,
			.name = { (const uint8_t *)r->name, strlen(r->name) },
		};

		used += (size_t)active_region_put(&info, to + front + used,
						  ACTIVE_WIRE_ANSWER_MAX - front - used);
	}
	m.regions = (struct active_span){ to + front, used };
	sg.length = (uint32_t)active_message_write(&m, to, ACTIVE_WIRE_ANSWER_MAX);
	post(s, &wr);
}
