/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sending: operations and answers into FPDUs, and these to TCP.
 *
 * One FPDU is built at a time, and the next when TCP has all of it; so a peer that asks and does
 * not read runs out of IRD. What the program wants to send and what the peer asked for take turns,
 * message by message. The octets of a message are copied when it is accepted, those of an answer
 * or of pinned memory when their FPDU is built, so the CRC is that of what leaves. All of it runs
 * in process context: in a call of the program's, or in the work. Who waits for room goes on by
 * himself; for all others the work does.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "kmod/conn.h"
#include "kmod/op.h"
#include "kmod/region.h"

#define EMSS_MAX 16384	   /* loopback has a larger one; the peer must find memory for an FPDU */
#define RUN_MAX (1u << 20) /* octets of one run; then others have the lock */
#define DRAIN_MAX (8u << 20)
#define RETRY (HZ / 50 + 1) /* there was no memory */

int conn_tx_init(struct conn *c)
{
	bool marked = c->s.ddp.mpa.flags & MPA_F_TX_MARKERS;
	__u32 markers = marked ? MPA_TXV_MARKERS(EMSS_MAX) : 0;
	struct mpa_txv *v = &c->tx.v;

	v->iov_cap = DDP_SGE_MAX + 4 + 2 * markers;
	v->scratch_cap = MPA_TXV_SCRATCH(0) + 4 * markers;
	v->iov = kmalloc(v->iov_cap * sizeof(*v->iov) + v->scratch_cap, GFP_KERNEL_ACCOUNT);
	if (!v->iov)
		return -ENOMEM;
	v->scratch = (__u8 *)(v->iov + v->iov_cap);
	return 0;
}

void conn_tx_uninit(struct conn *c)
{
	kfree(c->tx.v.iov);
	kvfree(c->tx.hold);
	c->tx.v.iov = NULL;
	c->tx.hold = NULL;
}

bool conn_tx_idle(const struct conn *c)
{
	return !READ_ONCE(c->tx.pending) && list_empty_careful(&c->tx.queue);
}

bool conn_tx_refuse(struct conn *c)
{
	WRITE_ONCE(c->tx.refused, true);
	smp_mb(); /* pairs with tell_idle() */
	return !conn_tx_idle(c);
}

static void tell_idle(struct conn *c)
{
	smp_mb(); /* pairs with conn_tx_refuse() */
	if (!READ_ONCE(c->tx.refused) || !conn_tx_idle(c))
		return;
	WRITE_ONCE(c->tx.refused, false);
	c->write_space(c->sk);
}

/* --- one FPDU --------------------------------------------------------------------------------- */

static void mulpdu_update(struct conn *c)
{
	struct mpa_conn *mpa = &c->s.ddp.mpa;

	mpa_conn_set_emss(mpa, min_t(u32, tcp_sk(c->sk)->mss_cache, EMSS_MAX));
	if (c->mulpdu_max)
		mpa->mulpdu = min_t(u32, mpa->mulpdu, c->mulpdu_max);
}

/* 0: TCP has all that was built; -EAGAIN: it tells of room; -EPIPE: it takes nothing any more */
static int fpdu_push(struct conn *c)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct conn_tx *tx = &c->tx;
	int rc;

	if (!tx->pending)
		return 0;
	/* TCP would take the error, and the program would not get it */
	if (c->sk->sk_err || c->sk->sk_shutdown & SEND_SHUTDOWN)
		return -EPIPE;
	if (c->aligned)
		msg.msg_flags |= MSG_EOR;
	else if (tx->more)
		msg.msg_flags |= MSG_MORE;
	msg.msg_iter = tx->iter;
	tx->pushing = true;
	rc = tcp_sendmsg_locked(c->sk, &msg, iov_iter_count(&tx->iter));
	tx->pushing = false;
	if (rc < 0)
		return rc == -EAGAIN ? rc : -EPIPE;
	tx->iter = msg.msg_iter;
	if (iov_iter_count(&tx->iter))
		return -EAGAIN;
	tx->pending = false;
	if (tx->leaving)
		conn_op_left(c, tx->leaving);
	tx->leaving = NULL;
	return 0;
}

static __u8 *hold_get(struct conn *c, size_t len)
{
	struct conn_tx *tx = &c->tx;

	if (len > tx->hold_cap) {
		kvfree(tx->hold);
		tx->hold_cap = 0;
		tx->hold = kvmalloc(len, GFP_KERNEL_ACCOUNT);
		if (tx->hold)
			tx->hold_cap = len;
	}
	return tx->hold;
}

/* An answer to the peer, and what it is read from */
struct answer {
	struct conn *c;
	__u32 stag;
	__u8 *number; /* mapped for an Atomic */
};

static enum ddp_stag_error answer_get(void *ctx, __u32 stag, __u64 to, __u64 len,
				      unsigned int access, __u8 **addr)
{
	struct answer *a = ctx;
	enum ddp_stag_error e = conn_region_check(a->c, stag, to, len, access, addr);

	a->stag = stag;
	if (!e && access == DDP_REMOTE_ATOMIC)
		*addr = a->number = conn_region_map(a->c, stag, *addr);
	return e;
}

/* The program may write to the memory meanwhile, so what leaves is a copy */
static const __u8 *answer_hold(void *ctx, const __u8 *addr, size_t len)
{
	struct answer *a = ctx;
	__u8 *hold = hold_get(a->c, len);

	if (hold)
		conn_region_read(a->c, a->stag, addr, hold, len);
	return hold;
}

static int answer_build(struct conn *c)
{
	struct answer a = { .c = c };
	const struct rdmap_source source = { .get = answer_get, .hold = answer_hold, .ctx = &a };
	int rc = rdmap_tx_response(&c->s, &c->slots, &c->tx.v, &source);

	if (a.number)
		conn_region_unmap(a.number);
	rdmap_tx_commit(&c->s);
	c->tx.more = c->s.in_sent;
	if (rc == -ENOBUFS) /* of memory: the FPDU has room */
		return -ENOMEM;
	return rc > 0 ? rc : 0;
}

/* A Write of pinned memory: each segment is built as if the message began with it */
static ssize_t pinned_build(struct conn *c, struct conn_op *op, bool *last)
{
	__u32 left = op->wr.len - op->sent;
	__u32 n = min_t(__u32, left, c->s.ddp.mpa.mulpdu - DDP_TAGGED_LEN);
	__u8 *hold = hold_get(c, n);
	const struct kvec sg[2] = { { hold, n }, { hold, left - n } };
	struct rdmap_wr wr = op->wr;

	if (!hold)
		return -ENOMEM;
	conn_region_copy(op->memory, op->sent, hold, n, false);
	wr.to += op->sent;
	wr.len = left;
	wr.sg = sg;
	wr.nsg = 2;
	return rdmap_tx_wr(&c->s, &c->slots, &c->tx.v, &wr, 0, last);
}

static struct conn_op *op_first(struct conn *c)
{
	return list_first_entry_or_null(&c->tx.queue, struct conn_op, list);
}

static int op_build(struct conn *c)
{
	struct conn_op *op = op_first(c);
	bool last = false;
	ssize_t n;

	if (!op)
		return 0;
	if (op->memory && op->type == DDP_CMSG_WRITE)
		n = pinned_build(c, op, &last);
	else
		n = rdmap_tx_wr(&c->s, &c->slots, &c->tx.v, &op->wr, op->sent, &last);
	if (n < 0) /* held back, or at an end: then something comes of it by itself */
		return n == -ENOMEM ? n : 0;
	op->sent += n;
	c->tx.leaving = last ? op : NULL;
	c->tx.more = !last;
	return 1;
}

/* A message that has begun goes on; else who had no turn is asked first */
static int message_build(struct conn *c)
{
	const struct conn_op *op = op_first(c);
	bool answers = c->tx.answers;
	int rc;

	if (op && op->sent)
		return op_build(c);
	if (c->s.in_sent)
		return answer_build(c);
	rc = answers ? answer_build(c) : op_build(c);
	if (!rc) {
		answers = !answers;
		rc = answers ? answer_build(c) : op_build(c);
	}
	if (rc > 0)
		c->tx.answers = !answers;
	return rc;
}

/* 1; 0: nothing is due; -ENOMEM */
static int fpdu_build(struct conn *c)
{
	struct conn_tx *tx = &c->tx;
	int rc = 0;

	tx->v.niov = tx->v.used = tx->v.octets = 0;
	tx->leaving = NULL;
	tx->more = false;
	if (rdmap_state_of(&c->s) == RDMAP_OPEN)
		rc = message_build(c);
	if (!rc) /* of a fault found just now, too */
		rc = rdmap_tx_terminate(&c->s, &tx->v);
	if (rc <= 0)
		return rc;
	iov_iter_kvec(&tx->iter, WRITE, tx->v.iov, tx->v.niov, tx->v.octets);
	tx->pending = true;
	return 1;
}

/* --- runs ------------------------------------------------------------------------------------- */

void conn_tx_run(struct conn *c)
{
	__u64 octets = 0;
	int rc;

	if (c->state != CONN_DDP)
		return;
	mulpdu_update(c);
	do {
		rc = fpdu_push(c);
		if (!rc)
			rc = fpdu_build(c);
		octets += c->tx.v.octets;
	} while (rc > 0 && octets < RUN_MAX);
	if (rc == -ENOMEM)
		queue_delayed_work(system_wq, &c->work, RETRY);
	else if (rc > 0 || rdmap_state_of(&c->s) != RDMAP_OPEN)
		conn_kick(c);
	tell_idle(c);
}

/* What was accepted: messages, short Writes; a pinned one may be long, and was not completed */
static bool drain_due(struct conn *c)
{
	const struct conn_op *op = op_first(c);

	return rdmap_state_of(&c->s) == RDMAP_FAULTED || (op && op->data.iov_base);
}

void conn_tx_drain(struct conn *c)
{
	int size = c->sk->sk_sndbuf, rc;
	__u64 octets = 0;

	WRITE_ONCE(c->sk->sk_sndbuf, INT_MAX / 2);
	do {
		rc = fpdu_push(c);
		if (rc || octets > DRAIN_MAX || !drain_due(c))
			break;
		c->tx.answers = false; /* one that has begun goes on, for all wait for it */
		rc = fpdu_build(c);
		octets += c->tx.v.octets;
	} while (rc > 0);
	WRITE_ONCE(c->sk->sk_sndbuf, size);
}

/* --- sendmsg() -------------------------------------------------------------------------------- */

static bool is_open(const struct conn *c)
{
	return c->state <= CONN_DDP && !c->sk->sk_err && !(c->sk->sk_shutdown & SEND_SHUTDOWN);
}

/* May a message be accepted? A responder's not before the first FPDU has come, nor in start-up */
static bool send_ready(struct conn *c)
{
	return mpa_conn_may_send(&c->s.ddp.mpa) && sk_stream_memory_free(c->sk) && conn_tx_idle(c);
}

/* Until something has changed: room, the first FPDU, an end; 0, or why it did not sleep */
static int send_wait(struct conn *c, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = c->sk;

	if (!*timeo)
		return -EAGAIN;
	if (signal_pending(current)) {
		conn_kick(c);
		return sock_intr_errno(*timeo);
	}
	set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	c->tx.waiting++;
	add_wait_queue(sk_sleep(sk), &wait);
	sk_wait_event(sk, timeo, !is_open(c), &wait);
	remove_wait_queue(sk_sleep(sk), &wait);
	c->tx.waiting--;
	return 0;
}

/* Until a message may be accepted */
static int send_turn(struct conn *c, long *timeo)
{
	int rc = 0;

	while (!rc) {
		if (!is_open(c))
			return -EPIPE;
		if (rdmap_state_of(&c->s) != RDMAP_OPEN)
			return -ECONNRESET;
		conn_tx_run(c);
		if (send_ready(c))
			return 0;
		conn_tx_refuse(c);
		rc = send_wait(c, timeo);
	}
	set_bit(SOCK_NOSPACE, &c->sk->sk_socket->flags);
	return rc;
}

/* It is accepted: whoever waits no longer leaves the rest to the work */
static void send_rest(struct conn *c, long timeo)
{
	__u32 number = c->tx.entered;

	conn_tx_run(c);
	while ((__s32)(c->tx.left - number) < 0 && is_open(c)) {
		conn_tx_refuse(c);
		if (send_wait(c, &timeo))
			break;
		conn_tx_run(c);
	}
	if (!conn_tx_idle(c) && !c->tx.waiting)
		conn_kick(c);
}

static int send_locked(struct conn *c, struct msghdr *msg, size_t len)
{
	long timeo = sock_sndtimeo(c->sk, msg->msg_flags & MSG_DONTWAIT);
	struct conn_op *op;
	int rc = send_turn(c, &timeo);

	if (!rc)
		rc = conn_op_message(msg, len, &op);
	if (rc)
		return sk_stream_error(c->sk, msg->msg_flags, rc);
	conn_op_enter(c, op);
	c->tx_messages++;
	c->tx_octets += len;
	send_rest(c, timeo);
	return len;
}

int conn_sendmsg(struct sock *sk, struct msghdr *msg, size_t len)
{
	struct conn *c = conn_of(sk);
	int rc = 1;

	if (msg->msg_flags & (MSG_OOB | MSG_ZEROCOPY))
		return -EOPNOTSUPP;
	if (msg->msg_controllen)
		rc = conn_op_sendmsg(c, msg);
	if (rc <= 0)
		return rc;
	if (len > DDP_KERNEL_SEND_MAX)
		return -EMSGSIZE;
	lock_sock(sk);
	rc = send_locked(c, msg, len);
	release_sock(sk);
	return rc;
}
