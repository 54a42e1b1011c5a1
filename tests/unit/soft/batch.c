/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many connections of one completion queue with WARPSOCK_CARRIER=uring: what several of them
 * receive by one system call is what each would have received alone, whoever ends meanwhile,
 * whether a caller or the progress thread attends to them; and the same without a ring.
 */
#include "tests/unit/soft/end.h"

#include "llp/uring.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/syscall.h>

#include "tests/unit/forbid.h"

#define LINES 24u
#define SLOT 100000u
#define DEPTH 8

struct side {
	struct warp_pd *pd;
	struct warp_cq *cq;
	struct warp_mr *mr;
	uint8_t *mem; /* SLOT to send of each line, and as much to receive */
};

struct line {
	struct warp_qp *qp;
	struct warp_conn *conn;
	unsigned int sent, got; /* messages */
	bool over;
};

static struct warp_device *dev;
static struct side side[2];
static struct line line[2][LINES];

static uint32_t length_of(unsigned int i, unsigned int n)
{
	uint32_t mixed = (i * 7919u + n * 104729u + 13) * 2654435761u;

	/* mostly few bytes, now and then more than the way in has room for at once */
	return mixed % 8 ? 1 + mixed % 900 : 1 + mixed % SLOT;
}

static uint8_t byte_of(unsigned int i, unsigned int n, size_t at)
{
	return (uint8_t)(at * 31 + i * 5 + n * 3);
}

static uint8_t *slot_of(const struct side *s, unsigned int i, bool receives)
{
	return s->mem + (2 * i + receives) * (size_t)SLOT;
}

static void side_make(struct side *s)
{
	size_t room = 2 * LINES * (size_t)SLOT;

	s->mem = malloc(room);
	memset(s->mem, 0, room);
	MUST(warp_pd_create(dev, &s->pd) == 0);
	MUST(warp_cq_create(dev, 2 * DEPTH * LINES, &s->cq) == 0);
	MUST(warp_mr_register(s->pd, s->mem, room, end_all_access, &s->mr) == 0);
}

static void qp_make(struct side *s, struct line *l)
{
	struct warp_qp_attr attr = { .send_cq = s->cq,
				     .recv_cq = s->cq,
				     .max_send_wr = DEPTH,
				     .max_recv_wr = DEPTH,
				     .max_send_sge = 1,
				     .max_recv_sge = 1,
				     .context = l };

	MUST(warp_qp_create(s->pd, &attr, &l->qp) == 0);
}

static void receive(struct side *s, struct line *l, unsigned int i)
{
	struct warp_sge sg = { slot_of(s, i, true), SLOT, warp_mr_stag(s->mr) };
	struct warp_recv_wr wr = { .wr_id = i, .sg = &sg, .num_sge = 1 };

	MUST(warp_qp_post_recv(l->qp, &wr, 1) == 1);
}

static void lines_make(void)
{
	struct sockaddr_storage at;
	struct warp_listener *listener;

	MUST(warp_device_open("soft", &dev) == 0);
	listener = end_listen(dev, &at);
	for (int k = 0; k < 2; k++)
		side_make(&side[k]);
	for (unsigned int i = 0; i < LINES; i++) {
		struct line *a = &line[0][i], *b = &line[1][i];

		qp_make(&side[0], a);
		qp_make(&side[1], b);
		MUST(warp_connect(a->qp, (struct sockaddr *)&at, sizeof(struct sockaddr_in), NULL,
				  &a->conn) == 0);
		MUST(warp_listener_get(listener, 5000, &b->conn) == 0);
		MUST(warp_conn_accept(b->conn, b->qp, NULL) == 0);
		MUST(warp_conn_wait(a->conn, 5000) == 0);
		MUST(warp_conn_wait(b->conn, 5000) == 0);
		receive(&side[0], a, i);
		receive(&side[1], b, i);
	}
	MUST(warp_listener_destroy(listener) == 0);
}

static void lines_drop(void)
{
	for (int k = 0; k < 2; k++) {
		for (unsigned int i = 0; i < LINES; i++) {
			MUST(warp_conn_destroy(line[k][i].conn) == 0);
			MUST(warp_qp_destroy(line[k][i].qp) == 0);
		}
		MUST(warp_mr_deregister(side[k].mr) == 0);
		MUST(warp_cq_destroy(side[k].cq) == 0);
		MUST(warp_pd_destroy(side[k].pd) == 0);
		free(side[k].mem);
	}
	MUST(warp_device_close(dev) == 0);
}

static void chosen(void)
{
	struct llp_uring *ring;

	if (llp_uring_create(&ring))
		cr_skip_test("no io_uring here");
	llp_uring_destroy(ring);
	setenv("WARPSOCK_CARRIER", "uring", 1);
}

TestSuite(soft_batch, .init = chosen, .timeout = 120);

/* The next message of one's; its memory must be free */
static void say(int k, unsigned int i)
{
	struct line *l = &line[k][i];
	uint32_t len = length_of(i, l->sent);
	uint8_t *p = slot_of(&side[k], i, false);
	struct warp_sge sg = { p, len, warp_mr_stag(side[k].mr) };
	struct warp_send_wr wr = { .wr_id = i,
				   .opcode = WARP_WR_SEND,
				   .flags = WARP_SEND_SIGNALED,
				   .sg = &sg,
				   .num_sge = 1 };

	for (uint32_t at = 0; at < len; at++)
		p[at] = byte_of(i, l->sent, at);
	cr_assert_eq(warp_qp_post_send(l->qp, &wr, 1), 1);
	l->sent++;
}

/* A message came: is it the next one of that line? Then its sender has the next turn */
static void hear(int k, const struct warp_wc *wc, unsigned int messages)
{
	unsigned int i = (unsigned int)wc->wr_id;
	struct line *l = &line[k][i];
	const uint8_t *p = slot_of(&side[k], i, true);

	cr_assert_eq(wc->byte_len, length_of(i, l->got), "line %u, message %u", i, l->got);
	for (uint32_t at = 0; at < wc->byte_len; at++)
		cr_assert_eq(p[at], byte_of(i, l->got, at), "line %u, message %u, byte %u", i,
			     l->got, at);
	l->got++;
	if (l->over)
		return;
	receive(&side[k], l, i);
	if (l->got < messages)
		say(1 - k, i);
}

/* What has come at one side; the initiators' ends are polled, those of the others waited for */
static void look(int k, unsigned int messages)
{
	struct warp_wc wc[8];
	int n;

	if (k)
		warp_cq_wait(side[k].cq, 1);
	n = warp_cq_poll(side[k].cq, wc, 8);
	cr_assert_geq(n, 0);
	for (int j = 0; j < n; j++) {
		unsigned int i = (unsigned int)wc[j].wr_id;

		if (wc[j].status != WARP_WC_SUCCESS)
			cr_assert(line[k][i].over, "line %u: %s", i,
				  warp_wc_status_text(wc[j].status));
		else if (wc[j].opcode == WARP_WC_RECV)
			hear(k, &wc[j], messages);
	}
}

static bool all_have(unsigned int messages)
{
	for (unsigned int i = 0; i < LINES; i++)
		for (int k = 0; k < 2; k++)
			if (!line[k][i].over && line[k][i].got < messages)
				return false;
	return true;
}

/* Both sides send so many on each line */
static void talk(unsigned int messages)
{
	for (unsigned int i = 0; i < LINES; i++)
		for (int k = 0; k < 2; k++)
			if (!line[k][i].over)
				say(k, i);
	while (!all_have(messages))
		for (int k = 0; k < 2; k++)
			look(k, messages);
}

static unsigned int rings(void)
{
	char path[32], target[64];
	unsigned int found = 0;

	for (int fd = 0; fd < 8192; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		if (strcmp(target, "anon_inode:[io_uring]"))
			continue;
		cr_assert_gt(fd, 255, "the interposer would take it for the program's");
		found++;
	}
	return found;
}

/* The thread's, and one of each completion queue */
static void has_rings(void)
{
	cr_assert_eq(rings(), 3);
}

Test(soft_batch, messages_of_many)
{
	lines_make();
	has_rings();
	talk(60);
	lines_drop();
	cr_assert_eq(rings(), 0);
}

Test(soft_batch, those_that_end_disturb_no_other)
{
	lines_make();
	has_rings();
	talk(10);
	for (unsigned int i = 0; i < LINES; i += 3) {
		line[0][i].over = line[1][i].over = true;
		say(0, i);
		say(1, i);
		if (i % 2)
			cr_assert_eq(warp_conn_abort(line[i / 3 % 2][i].conn), 0);
		else
			cr_assert_eq(warp_conn_disconnect(line[i / 3 % 2][i].conn), 0);
	}
	talk(30);
	for (unsigned int i = 0; i < LINES; i += 3) {
		struct warp_conn_info info = { .state = WARP_CONN_ESTABLISHED };

		for (int n = 0; n < 3000 && info.state == WARP_CONN_ESTABLISHED; n++) {
			look(0, 0);
			look(1, 0);
			cr_assert_eq(warp_conn_query(line[1 - i / 3 % 2][i].conn, &info), 0);
		}
		cr_assert_gt(info.state, WARP_CONN_ESTABLISHED);
	}
	lines_drop();
}

/* Posts a Write of a line's next message and a Read of it behind; their memory is the line's */
static void write_and_read(unsigned int i)
{
	struct line *l = &line[0][i];
	uint32_t len = length_of(i, l->sent);
	uint8_t *out = slot_of(&side[0], i, false), *back = slot_of(&side[0], i, true);
	struct warp_sge sg[] = { { out, len, warp_mr_stag(side[0].mr) },
				 { back, len, warp_mr_stag(side[0].mr) } };
	struct warp_send_wr wr[2] = { { .wr_id = i, .opcode = WARP_WR_WRITE, .sg = &sg[0] },
				      { .wr_id = i, .opcode = WARP_WR_READ, .sg = &sg[1] } };

	for (int n = 0; n < 2; n++) {
		wr[n].num_sge = 1;
		wr[n].remote_stag = warp_mr_stag(side[1].mr);
		wr[n].remote_to = (uintptr_t)slot_of(&side[1], i, false);
	}
	wr[1].flags = WARP_SEND_SIGNALED;
	for (uint32_t at = 0; at < len; at++)
		out[at] = byte_of(i, l->sent, at);
	memset(back, 0, len);
	cr_assert_eq(warp_qp_post_send(l->qp, wr, 2), 2);
	l->sent++;
}

/* The peer's program does nothing: its progress thread serves all of them */
Test(soft_batch, memory_of_many_is_written_and_read)
{
	unsigned int done = 0;
	const unsigned int each = 40;

	lines_make();
	has_rings();
	for (unsigned int i = 0; i < LINES; i++)
		write_and_read(i);
	while (done < LINES * each) {
		struct warp_wc wc;
		unsigned int i;

		if (warp_cq_poll(side[0].cq, &wc, 1) != 1)
			continue;
		i = (unsigned int)wc.wr_id;
		cr_assert_eq(wc.status, WARP_WC_SUCCESS, "%s", warp_wc_status_text(wc.status));
		cr_assert_arr_eq(slot_of(&side[0], i, true), slot_of(&side[0], i, false),
				 length_of(i, line[0][i].sent - 1));
		done++;
		if (line[0][i].sent < each)
			write_and_read(i);
	}
	lines_drop();
}

/* --- without a ring --- */

Test(soft_batch, a_filter_that_forbids_rings)
{
	unit_forbid(SYS_io_uring_setup, EPERM);
	lines_make();
	cr_assert_eq(rings(), 0);
	talk(5);
	lines_drop();
}

Test(soft_batch, another_word_is_tcp)
{
	setenv("WARPSOCK_CARRIER", "pigeon", 1);
	lines_make();
	cr_assert_eq(rings(), 0);
	talk(5);
	lines_drop();
}

Test(soft_batch, nobody_gets_a_ring_unasked)
{
	unsetenv("WARPSOCK_CARRIER");
	lines_make();
	cr_assert_eq(rings(), 0);
	lines_drop();
}
