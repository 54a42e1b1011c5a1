/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sending: messages into FPDUs, and these to TCP.
 *
 * The octets of a message are copied before its first FPDU is built, so the CRC is that of what
 * leaves, and a message is sent whole or not at all. Its FPDUs stand in conn->unsent, in the order
 * of the wire, until TCP has taken them; a message that began to leave is accepted, and the work
 * goes on with it when TCP has room. No other is built before that.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "kmod/conn.h"
#include "kmod/region.h"

#define EMSS_MAX 16384 /* loopback has a larger one; the peer must find memory for an FPDU */

static void fpdu_free(struct conn_fpdu *f)
{
	kvfree(f->payload);
	kvfree(f);
}

static void list_free(struct list_head *list)
{
	struct conn_fpdu *f, *next;

	list_for_each_entry_safe(f, next, list, list)
	{
		list_del(&f->list);
		fpdu_free(f);
	}
}

void conn_tx_uninit(struct conn *c)
{
	list_free(&c->unsent);
}

static void mulpdu_update(struct conn *c)
{
	struct mpa_conn *mpa = &c->s.ddp.mpa;

	mpa_conn_set_emss(mpa, min_t(u32, tcp_sk(c->sk)->mss_cache, EMSS_MAX));
	if (c->mulpdu_max)
		mpa->mulpdu = min_t(u32, mpa->mulpdu, c->mulpdu_max);
}

/* Room for one FPDU with all its markers; its payload is elsewhere */
static struct conn_fpdu *fpdu_get(const struct conn *c)
{
	const struct mpa_conn *mpa = &c->s.ddp.mpa;
	__u32 markers = mpa->flags & MPA_F_TX_MARKERS ? MPA_TXV_MARKERS(mpa->mulpdu) : 0;
	__u32 niov = DDP_SGE_MAX + 2 + 2 * markers;
	__u32 scratch = MPA_TXV_SCRATCH(0) + 4 * markers;
	struct conn_fpdu *f =
		kvmalloc(sizeof(*f) + niov * sizeof(struct kvec) + scratch, GFP_KERNEL_ACCOUNT);

	if (!f)
		return NULL;
	memset(f, 0, sizeof(*f));
	f->v.iov = (struct kvec *)(f + 1);
	f->v.iov_cap = niov;
	f->v.scratch = (__u8 *)(f->v.iov + niov);
	f->v.scratch_cap = scratch;
	return f;
}

static void fpdu_queue(struct conn_fpdu *f, struct list_head *list)
{
	iov_iter_kvec(&f->iter, WRITE, f->v.iov, f->v.niov, f->v.octets);
	list_add_tail(&f->list, list);
}

int conn_tx_push(struct conn *c)
{
	while (!list_empty(&c->unsent)) {
		struct conn_fpdu *f = list_first_entry(&c->unsent, struct conn_fpdu, list);
		struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
		int rc;

		if (c->aligned)
			msg.msg_flags |= MSG_EOR;
		else if (!list_is_last(&f->list, &c->unsent))
			msg.msg_flags |= MSG_MORE;
		msg.msg_iter = f->iter;
		rc = tcp_sendmsg_locked(c->sk, &msg, iov_iter_count(&f->iter));
		if (rc < 0)
			return rc;
		f->iter = msg.msg_iter;
		if (iov_iter_count(&f->iter))
			return -EAGAIN;
		list_del(&f->list);
		fpdu_free(f);
	}
	if (c->rx.kicked)
		schedule_work(&c->work);
	return 0;
}

void conn_tx_drain(struct conn *c)
{
	int size = c->sk->sk_sndbuf;

	WRITE_ONCE(c->sk->sk_sndbuf, INT_MAX / 2);
	conn_tx_push(c);
	WRITE_ONCE(c->sk->sk_sndbuf, size);
}

/* --- what the protocol sends ------------------------------------------------------------------ */

/* An answer to a Read, and what it is read from */
struct answer {
	struct conn *c;
	struct conn_fpdu *f;
	__u32 stag;
};

static enum ddp_stag_error answer_get(void *ctx, __u32 stag, __u64 to, __u64 len,
				      unsigned int access, __u8 **addr)
{
	struct answer *a = ctx;

	a->stag = stag;
	return conn_region_check(a->c, stag, to, len, access, addr);
}

/* The program may write to the memory meanwhile, so what leaves is a copy */
static const __u8 *answer_hold(void *ctx, const __u8 *addr, size_t len)
{
	struct answer *a = ctx;

	a->f->payload = kvmalloc(len, GFP_KERNEL_ACCOUNT);
	if (a->f->payload)
		conn_region_read(a->c, a->stag, addr, a->f->payload, len);
	return a->f->payload;
}

/* The next FPDU of the protocol's own: 1, or 0: there is none */
static int control_build(struct conn *c, struct conn_fpdu *f)
{
	struct answer a = { c, f, 0 };
	const struct rdmap_source source = { .get = answer_get, .hold = answer_hold, .ctx = &a };
	int rc = rdmap_tx_response(&c->s, &c->slots, &f->v, &source);

	rdmap_tx_commit(&c->s);
	if (rc == -ENOBUFS) /* of memory: the FPDU has room */
		rdmap_fault(&c->s, RDMAP_E_LOCAL);
	return rc > 0 ? rc : rdmap_tx_terminate(&c->s, &f->v);
}

/*
 * One FPDU waits for TCP at most, so that a peer which asks and does not read runs out of IRD; the
 * others are built when it has left.
 */
void conn_tx_control(struct conn *c)
{
	struct conn_fpdu *f;

	mulpdu_update(c);
	while (!conn_tx_push(c)) {
		f = fpdu_get(c);
		if (!f)
			return;
		if (control_build(c, f) <= 0) {
			fpdu_free(f);
			return;
		}
		fpdu_queue(f, &c->unsent);
	}
	c->rx.kicked = true;
}

/* --- sendmsg() -------------------------------------------------------------------------------- */

static int message_segments(struct conn *c, const struct rdmap_wr *wr, struct list_head *list)
{
	bool last = false;
	__u32 off = 0;

	while (!last) {
		struct conn_fpdu *f = fpdu_get(c);
		ssize_t n;

		if (!f)
			return -ENOMEM;
		n = rdmap_tx_wr(&c->s, &c->slots, &f->v, wr, off, &last);
		if (n < 0) {
			fpdu_free(f);
			return n;
		}
		fpdu_queue(f, list);
		off += n;
	}
	return 0;
}

/* The message as FPDUs behind those that are unsent, or nothing has happened */
static int message_build(struct conn *c, struct msghdr *msg, size_t len)
{
	struct kvec sg = { kvmalloc(len ?: 1, GFP_KERNEL_ACCOUNT), len };
	const struct rdmap_wr wr = { .op = RDMAP_SEND, .sg = &sg, .nsg = 1, .len = len };
	struct rdmap_tx_mark mark;
	LIST_HEAD(list);
	int rc = -EFAULT;

	if (!sg.iov_base)
		return -ENOMEM;
	if (!copy_from_iter_full(sg.iov_base, len, &msg->msg_iter))
		goto err_free;
	mulpdu_update(c);
	rdmap_tx_mark(&c->s, &mark);
	rc = message_segments(c, &wr, &list);
	if (rc)
		goto err_rewind;
	list_last_entry(&list, struct conn_fpdu, list)->payload = sg.iov_base;
	list_splice_tail(&list, &c->unsent);
	return 0;
err_rewind:
	list_free(&list);
	rdmap_tx_rewind(&c->s, &mark);
err_free:
	kvfree(sg.iov_base);
	return rc;
}

static bool gate_moved(const struct conn *c)
{
	return mpa_conn_may_send(&c->s.ddp.mpa) || c->state != CONN_DDP || c->sk->sk_err;
}

/* A responder waits for the first FPDU */
static int gate_wait(struct conn *c, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = c->sk;

	if (signal_pending(current))
		return sock_intr_errno(*timeo);
	add_wait_queue(sk_sleep(sk), &wait);
	sk_wait_event(sk, timeo, gate_moved(c), &wait);
	remove_wait_queue(sk_sleep(sk), &wait);
	return 0;
}

/* Until a message may begin */
static int send_turn(struct conn *c, long *timeo)
{
	struct sock *sk = c->sk;
	bool gated;
	int rc = 0;

	while (!rc) {
		if (sk->sk_err || c->state != CONN_DDP || sk->sk_shutdown & SEND_SHUTDOWN)
			return -EPIPE;
		if (rdmap_state_of(&c->s) != RDMAP_OPEN)
			return -ECONNRESET;
		gated = !mpa_conn_may_send(&c->s.ddp.mpa);
		if (!conn_tx_push(c) && !gated && sk_stream_memory_free(sk))
			return 0;
		if (!*timeo) {
			set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
			return -EAGAIN;
		}
		rc = gated ? gate_wait(c, timeo) : sk_stream_wait_memory(sk, timeo);
	}
	return rc;
}

static int send_locked(struct conn *c, struct msghdr *msg, size_t len)
{
	long timeo = sock_sndtimeo(c->sk, msg->msg_flags & MSG_DONTWAIT);
	int rc = send_turn(c, &timeo);

	if (!rc)
		rc = message_build(c, msg, len);
	if (rc)
		return sk_stream_error(c->sk, msg->msg_flags, rc);
	c->tx_messages++;
	c->tx_octets += len;
	/* It is accepted: whoever waits no longer leaves the rest to the work */
	while (conn_tx_push(c) == -EAGAIN && timeo) {
		if (sk_stream_wait_memory(c->sk, &timeo))
			break;
	}
	return len;
}

int conn_sendmsg(struct sock *sk, struct msghdr *msg, size_t len)
{
	int rc;

	if (msg->msg_flags & (MSG_OOB | MSG_ZEROCOPY))
		return -EOPNOTSUPP;
	if (len > DDP_KERNEL_SEND_MAX)
		return -EMSGSIZE;
	lock_sock(sk);
	rc = send_locked(conn_of(sk), msg, len);
	release_sock(sk);
	return rc;
}
