/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Start-up of a responder in the kernel (RFC 5044 section 7.1, RFC 6581).
 *
 * The Request is taken in wherever TCP says that data are ready; the Reply is sent in process
 * context, by accept() or the work. What is no Request, or is not whole in time, ends the
 * connection: the listener is for DDP alone. A Request with private data is of a protocol above
 * messages, which the kernel does not speak, and is rejected.
 */
#include <linux/slab.h>

#include "kmod/conn.h"
#include "kmod/start.h"

#define TIME (10 * HZ)

int conn_start_begin(struct conn *c, const struct conn_wanted *wanted)
{
	const struct mpa_config config = {
		.rev = 2,
		.want = MPA_F_ENHANCED | (wanted->no_crc ? 0 : MPA_F_CRC) |
			(wanted->markers ? MPA_F_RX_MARKERS : 0),
		.rtr = MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ,
		.ird = DDP_KERNEL_DEPTH_MAX,
		.ord = DDP_KERNEL_DEPTH_MAX,
	};

	c->start = kzalloc(sizeof(*c->start), GFP_KERNEL_ACCOUNT);
	if (!c->start)
		return -ENOMEM;
	c->start->until = jiffies + TIME;
	c->start->need = MPA_RR_LEN;
	rdmap_stream_init(&c->s, MPA_RESPONDER, &config, base_array_size(c->in),
			  base_array_size(c->out));
	return 0;
}

void conn_start_end(struct conn *c)
{
	kfree(c->start);
	c->start = NULL;
}

/* --- the Request ------------------------------------------------------------------------------ */

static void frame_judge(struct conn *c)
{
	struct conn_start *start = c->start;
	struct mpa_startup in;
	size_t used;
	int rc = mpa_start_request_get(&c->s.ddp.mpa, start->frame, start->have, &in, &used);

	if (rc == -EAGAIN) {
		start->need = used;
		return;
	}
	start->asked = true;
	start->error = rc ? -ECONNRESET : in.pd_len ? -ECONNREFUSED : 0;
}

static int frame_actor(read_descriptor_t *desc, struct sk_buff *skb, unsigned int off, size_t len)
{
	struct conn *c = desc->arg.data;
	struct conn_start *start = c->start;
	__u32 n;

	if (start->asked)
		return 0;
	n = min_t(size_t, len, start->need - start->have);
	if (skb_copy_bits(skb, off, start->frame + start->have, n))
		return 0;
	start->have += n;
	frame_judge(c);
	return n;
}

bool conn_start_pump(struct conn *c)
{
	read_descriptor_t desc = { .arg.data = c, .count = 1 };
	struct conn_start *start = c->start;
	struct sock *sk = c->sk;

	if (!start->asked)
		tcp_read_sock(sk, &desc, frame_actor);
	if (!start->asked && skb_queue_empty(&sk->sk_receive_queue) &&
	    (sock_flag(sk, SOCK_DONE) || sk->sk_state == TCP_CLOSE)) {
		start->asked = true;
		start->error = -ECONNRESET;
	}
	return start->asked;
}

/* --- the Reply -------------------------------------------------------------------------------- */

static int frame_send(struct conn *c, size_t len)
{
	struct kvec piece = { c->start->frame, len };
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };

	if (c->sk->sk_err || c->sk->sk_shutdown & SEND_SHUTDOWN)
		return -ECONNRESET;
	iov_iter_kvec(&msg.msg_iter, WRITE, &piece, 1, len);
	return tcp_sendmsg_locked(c->sk, &msg, len) == len ? 0 : -ECONNRESET;
}

static void start_fail(struct conn *c, int error)
{
	struct sock *sk = c->sk;

	conn_start_end(c);
	c->state = CONN_ENDED;
	if (!(sk->sk_shutdown & SEND_SHUTDOWN)) {
		sk->sk_shutdown |= SEND_SHUTDOWN;
		c->base->shutdown(sk, SEND_SHUTDOWN);
	}
	if (!sk->sk_err)
		sk->sk_err = -error;
	sk_error_report(sk);
	c->state_change(sk);
}

static void start_reject(struct conn *c)
{
	size_t len;

	if (!mpa_start_reject_put(&c->s.ddp.mpa, NULL, 0, c->start->frame, &len))
		frame_send(c, len);
	start_fail(c, -ECONNRESET);
}

static int start_answer(struct conn *c)
{
	size_t len;
	int rc = conn_tx_init(c);

	if (!rc)
		rc = mpa_start_reply_put(&c->s.ddp.mpa, NULL, 0, c->start->frame, &len);
	return rc ? rc : frame_send(c, len);
}

void conn_start_run(struct conn *c)
{
	struct conn_start *start = c->start;
	long left = start->until - jiffies;
	int rc;

	if (!conn_start_pump(c)) {
		if (left > 0)
			queue_delayed_work(system_wq, &c->work, left);
		else
			start_fail(c, -ETIMEDOUT);
		return;
	}
	if (start->error == -ECONNREFUSED) {
		start_reject(c);
		return;
	}
	rc = start->error ?: start_answer(c);
	if (rc) {
		start_fail(c, rc);
		return;
	}
	conn_start_end(c);
	c->state = CONN_DDP;
	c->rx.seq = tcp_sk(c->sk)->copied_seq;
	rdmap_stream_started(&c->s);
	conn_rx_pump(c, GFP_KERNEL);
	conn_tx_run(c);
}
