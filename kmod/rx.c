/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receiving: from TCP's queue into FPDUs, and from these into messages.
 *
 * It runs wherever TCP says that data are ready, so also in softirqs and whether or not the program
 * runs. An FPDU is gathered in one chunk from the pieces of the socket buffers, and judged by
 * mpa_rx_fpdu() and rdmap_rx(). What fits no more is left to TCP, whose window closes then: while a
 * whole message waits for the program, no FPDU is begun beyond the receive buffer's size; a message
 * in progress has at most recv_max octets. A fault is told to the peer by the work, for a softirq
 * cannot send; until it has been told to the program, nothing more is taken in.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "kmod/conn.h"
#include "kmod/ooo.h"
#include "kmod/op.h"

#define RETRY (HZ / 50 + 1) /* there was no memory */

/* Where octets are taken from: a socket buffer, or flat memory where skb is NULL */
struct source {
	const struct sk_buff *skb;
	const __u8 *flat;
	__u32 off;
};

void conn_rx_init(struct conn_rx *rx, __u32 recv_max)
{
	memset(rx, 0, sizeof(*rx));
	INIT_LIST_HEAD(&rx->messages);
	rx->recv_max = recv_max;
}

void conn_rx_uninit(struct conn_rx *rx)
{
	struct conn_message *m, *next;

	list_for_each_entry_safe(m, next, &rx->messages, list) conn_message_free(rx, m);
	if (rx->message)
		conn_message_free(rx, rx->message);
	kvfree(rx->chunk);
	kvfree(rx->spare);
	kvfree(rx->left);
	kfree(rx->spare_message);
	conn_rx_init(rx, 0);
}

static __u8 *fpdu_at(struct conn_rx *rx)
{
	return rx->chunk ? rx->chunk->data : rx->head;
}

/* The next FPDU has @need octets: a chunk for them, with what is there already */
static int fpdu_room(struct conn_rx *rx, __u32 need, gfp_t gfp)
{
	struct conn_chunk *chunk;

	if (need <= sizeof(rx->head) && !rx->chunk)
		return 0;
	if (rx->chunk && rx->chunk->cap >= need)
		return 0;
	chunk = conn_chunk_get(need, gfp);
	if (!chunk)
		return -ENOMEM;
	memcpy(chunk->data, fpdu_at(rx), rx->have);
	kvfree(rx->chunk);
	rx->chunk = chunk;
	return 0;
}

/* A kept chunk is for FPDUs whose length is known; the head of the next one goes to rx->head */
static void fpdu_next(struct conn_rx *rx)
{
	kvfree(rx->chunk);
	rx->chunk = NULL;
	rx->have = rx->need = rx->keep = 0;
}

static void fpdu_need(struct conn_rx *rx, __u32 need)
{
	rx->need = rx->keep = need;
}

static bool rx_full(const struct conn *c)
{
	const struct conn_rx *rx = &c->rx;

	return !list_empty(&rx->messages) && rx->held >= READ_ONCE(c->sk->sk_rcvbuf);
}

static void rx_take(struct conn *c, const struct mpa_fpdu *f)
{
	struct rdmap_sink sink = conn_sink;

	sink.ctx = c;
	rdmap_rx(&c->s, &c->slots, f->ulpdu, f->len, &sink);
	fpdu_next(&c->rx);
}

/* Of an FPDU that seems to be placed: its head is compared, and then the rest passes by */
static int rx_early(struct conn *c)
{
	struct conn_rx *rx = &c->rx;
	struct mpa_fpdu f;

	if (rx->have < rx->early->octets) {
		if (memcmp(rx->head, rx->early->head, sizeof(rx->head))) {
			rx->early = NULL; /* the peer has sent something else there */
			return 0;
		}
		rx->need = rx->early->octets;
		return -EAGAIN;
	}
	mpa_ahead_take(&c->s.ddp.mpa, rx->head, rx->need, &f);
	rx_take(c, &f);
	conn_ooo_forget(c, rx->early);
	rx->early = NULL;
	return 0;
}

/* More octets are needed, @need in all */
static int rx_more(struct conn *c, __u32 need, gfp_t gfp)
{
	struct conn_rx *rx = &c->rx;

	if (rx->have && rx->have < sizeof(rx->head) && need > sizeof(rx->head))
		rx->early = conn_ooo_find(c, rx->seq - rx->have, need);
	if (rx->early) {
		fpdu_need(rx, sizeof(rx->head));
		return -EAGAIN;
	}
	if (fpdu_room(rx, need, gfp))
		return -ENOMEM;
	fpdu_need(rx, need);
	return -EAGAIN;
}

/* The FPDU at hand: 0: it is done with; -EAGAIN: more octets are needed; -ENOMEM */
static int rx_step(struct conn *c, gfp_t gfp)
{
	struct conn_rx *rx = &c->rx;
	struct mpa_fpdu f;
	int rc;

	if (conn_message_prepare(rx, gfp))
		return -ENOMEM;
	if (rx->early) {
		rc = rx_early(c);
		if (rc || !rx->have)
			return rc;
	}
	rc = mpa_rx_fpdu(&c->s.ddp.mpa, fpdu_at(rx), rx->have, &f);
	if (rc == -EAGAIN)
		return rx_more(c, f.used, gfp);
	if (!rc) {
		rx_take(c, &f);
		return 0;
	}
	rdmap_fault(&c->s, c->s.ddp.mpa.fault);
	fpdu_next(rx);
	return 0;
}

static bool rx_ended(const struct conn *c)
{
	return c->state != CONN_DDP || rdmap_state_of(&c->s) != RDMAP_OPEN;
}

static void source_copy(const struct source *from, __u8 *to, __u32 n)
{
	if (from->skb)
		skb_copy_bits(from->skb, from->off, to, n);
	else
		memcpy(to, from->flat + from->off, n);
}

/* Takes up to @len octets; how many were taken. Behind a fault all of them are thrown away. */
static __u32 rx_feed(struct conn *c, struct source from, __u32 len, gfp_t gfp)
{
	struct conn_rx *rx = &c->rx;
	__u32 done = 0, n;
	int rc;

	while (done < len && !rx_ended(c)) {
		if (!rx->need) {
			if (rx_full(c))
				break;
			rc = rx_step(c, gfp);
		} else {
			n = min(rx->need - rx->have, len - done);
			if (rx->have < rx->keep)
				source_copy(&from, fpdu_at(rx) + rx->have, n);
			rx->have += n;
			rx->seq += n;
			from.off += n;
			done += n;
			rc = rx->have < rx->need ? -EAGAIN : rx_step(c, gfp);
		}
		if (rc == -ENOMEM) {
			rx->starved = true;
			break;
		}
	}
	return rx_ended(c) ? len : done;
}

struct actor {
	struct conn *c;
	gfp_t gfp;
};

static int rx_actor(read_descriptor_t *desc, struct sk_buff *skb, unsigned int off, size_t len)
{
	const struct actor *a = desc->arg.data;

	a->c->rx.seq = TCP_SKB_CB(skb)->seq + off;
	return rx_feed(a->c, (struct source){ .skb = skb, .off = off }, len, a->gfp);
}

/* What the program had read before the hand-over; false: some of it must wait */
static bool left_feed(struct conn *c, gfp_t gfp)
{
	struct conn_chunk *left = c->rx.left;
	__u32 n;

	if (!left)
		return true;
	n = rx_feed(c, (struct source){ .flat = left->data, .off = left->off }, left->len, gfp);
	left->off += n;
	left->len -= n;
	if (left->len)
		return false;
	kvfree(left);
	c->rx.left = NULL;
	return true;
}

/* The peer's FIN, once all before it has been taken in */
static void rx_look_for_end(struct conn *c)
{
	struct sock *sk = c->sk;

	if (c->rx.eof || c->rx.starved || rx_ended(c) || c->rx.left ||
	    !skb_queue_empty(&sk->sk_receive_queue))
		return;
	if (!sock_flag(sk, SOCK_DONE) && sk->sk_state != TCP_CLOSE)
		return;
	if (mpa_rx_end(&c->s.ddp.mpa, c->rx.have) || c->rx.message)
		rdmap_fault(&c->s, MPA_E_CLOSED);
	c->rx.eof = true;
	/* The peer answers nothing more: what waits for an answer before it leaves need not */
	conn_ops_flush_begun(c);
	c->s.out_head = c->s.out_tail;
	conn_kick(c);
}

/* An FPDU whose octets are all there, but which there was no memory for */
static bool rx_again(struct conn *c, gfp_t gfp)
{
	c->rx.starved = false;
	if (!c->rx.need || c->rx.have < c->rx.need || rx_ended(c))
		return true;
	c->rx.starved = rx_step(c, gfp) == -ENOMEM;
	return !c->rx.starved;
}

void conn_rx_pump(struct conn *c, gfp_t gfp)
{
	struct actor a = { c, gfp };
	read_descriptor_t desc = { .arg.data = &a, .count = 1 };

	if (c->state == CONN_START && conn_start_pump(c))
		conn_kick(c);
	if (c->state < CONN_DDP)
		return;
	if (rx_again(c, gfp) && left_feed(c, gfp))
		tcp_read_sock(c->sk, &desc, rx_actor);
	rx_look_for_end(c);
	if (rx_ended(c) && c->state == CONN_DDP)
		conn_kick(c);
	else if (c->rx.starved)
		queue_delayed_work(system_wq, &c->work, RETRY);
}

/* --- recvmsg() -------------------------------------------------------------------------------- */

/* Nothing more will come: the peer's FIN, an end that was told, or shutdown() of ours */
static bool recv_over(const struct conn *c)
{
	const struct sock *sk = c->sk;

	return c->state == CONN_ENDED || (c->rx.eof && !rx_ended(c)) ||
	       (sk->sk_shutdown & RCV_SHUTDOWN && !sock_flag(sk, SOCK_DONE));
}

bool conn_readable(const struct conn *c)
{
	return !list_empty(&c->rx.messages) || c->sk->sk_err || recv_over(c);
}

/* Sleeps until there is something; 0, or why not */
static int recv_wait(struct conn *c, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = c->sk;

	if (!*timeo)
		return -EAGAIN;
	if (signal_pending(current))
		return sock_intr_errno(*timeo);
	add_wait_queue(sk_sleep(sk), &wait);
	sk_set_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	sk_wait_event(sk, timeo, conn_readable(c), &wait);
	sk_clear_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	remove_wait_queue(sk_sleep(sk), &wait);
	return 0;
}

static ssize_t recv_message(struct conn *c, struct msghdr *msg, size_t len, int flags)
{
	struct conn_message *m = list_first_entry(&c->rx.messages, struct conn_message, list);
	ssize_t n = conn_message_copy(m, msg, len);

	if (n < 0)
		return n;
	msg->msg_flags |= MSG_EOR | (m->len > len ? MSG_TRUNC : 0);
	if (flags & MSG_TRUNC)
		n = m->len;
	if (flags & MSG_PEEK)
		return n;
	list_del(&m->list);
	conn_message_free(&c->rx, m);
	conn_rx_pump(c, GFP_KERNEL);
	return n;
}

/* With the socket's lock */
static ssize_t recv_locked(struct conn *c, struct msghdr *msg, size_t len, int flags)
{
	struct sock *sk = c->sk;
	long timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	int rc;

	for (;;) {
		conn_rx_pump(c, GFP_KERNEL);
		if (!list_empty(&c->rx.messages))
			return recv_message(c, msg, len, flags);
		if (sk->sk_err)
			return sock_error(sk);
		if (recv_over(c))
			return 0;
		rc = recv_wait(c, &timeo);
		if (rc)
			return rc;
	}
}

int conn_recvmsg(struct sock *sk, struct msghdr *msg, size_t len, int flags, int *addr_len)
{
	struct conn *c = conn_of(sk);
	ssize_t n;

	if (flags & MSG_ERRQUEUE) {
		n = conn_op_collect(c, msg);
		if (n != -EAGAIN && n != -EMSGSIZE)
			return n;
		return c->base->recvmsg(sk, msg, len, flags, addr_len);
	}
	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	lock_sock(sk);
	n = recv_locked(c, msg, len, flags);
	release_sock(sk);
	return n;
}
