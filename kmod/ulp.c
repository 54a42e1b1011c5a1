/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The TCP upper-layer protocol "ddp": how a socket comes to the module and leaves it.
 *
 * As kernel TLS does, the socket's operations are replaced by copies, and the file's socket stays
 * what it is. Attached (TCP_ULP) a socket is still TCP's, but can be handed over; from DDP_HANDOVER
 * on it sends and receives messages. close() gives TCP its operations back before TCP closes, so
 * no code of the module is called for a socket that nobody has; the core holds a reference to the
 * module until the socket is gone.
 */
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/splice.h>
#include <net/inet_common.h>
#include <net/transp_v6.h>

#include "kmod/compat/version.h"
#include "kmod/conn.h"
#include "kmod/region.h"
#include "kmod/start.h"
#include "kmod/ulp.h"

#include <warp/ddp.h>

enum family { V4, V6, FAMILIES };

static struct proto attached[FAMILIES], handed[FAMILIES];
static struct proto_ops ops[FAMILIES];
static const struct proto_ops *ops_base[FAMILIES]; /* NULL: ops is not filled in yet */
/* IPv4's, IPv6's, and IPv6's of IPv4; with ops_lock, and each is filled in but once */
static struct inet_connection_sock_af_ops afs[3];
static const struct inet_connection_sock_af_ops *afs_base[ARRAY_SIZE(afs)];
static DEFINE_MUTEX(ops_lock);

static struct tcp_ulp_ops ulp_ops;
static int ulp_accept(struct socket *sock, struct socket *newsock, COMPAT_ACCEPT_ARGS);

static enum family family_of(const struct conn *c)
{
	return c->base == &tcp_prot ? V4 : V6;
}

/* --- what TCP calls --------------------------------------------------------------------------- */

void conn_kick(struct conn *c)
{
	if (!c->closing)
		mod_delayed_work(system_wq, &c->work, 0);
}

static void ulp_data_ready(struct sock *sk)
{
	struct conn *c = conn_of(sk);

	conn_rx_pump(c, GFP_ATOMIC | __GFP_NOWARN);
	if (conn_readable(c))
		c->data_ready(sk);
}

/* Callers that wait go on by themselves */
static void ulp_write_space(struct sock *sk)
{
	struct conn *c = conn_of(sk);

	if (!conn_tx_idle(c) && !c->tx.waiting)
		conn_kick(c);
	c->write_space(sk);
}

/* TCP has closed: nobody will answer, and nothing leaves any more */
static void conn_lost(struct conn *c)
{
	conn_ops_flush_begun(c);
	conn_ops_flush_queue(c);
}

static void ulp_state_change(struct sock *sk)
{
	struct conn *c = conn_of(sk);

	if (sk->sk_state == TCP_CLOSE && (c->tx.pushing || c->state == CONN_START))
		conn_kick(c);
	else if (sk->sk_state == TCP_CLOSE)
		conn_lost(c);
	c->state_change(sk);
}

/* Each acknowledgement passes here: those of segments out of order, too */
static int ulp_queue_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *fl)
{
	struct conn *c = conn_of(sk);
	int rc = c->af->queue_xmit(sk, skb, fl);

	conn_ooo_look(c);
	return rc;
}

/* Says what was found, to the peer and to the program */
static void conn_end(struct conn *c)
{
	struct sock *sk = c->sk;

	conn_tx_drain(c);
	c->state = CONN_ENDED;
	conn_lost(c);
	if (!(sk->sk_shutdown & SEND_SHUTDOWN)) {
		sk->sk_shutdown |= SEND_SHUTDOWN;
		c->base->shutdown(sk, SEND_SHUTDOWN);
	}
	if (!sk->sk_err)
		sk->sk_err = ECONNRESET;
	sk_error_report(sk);
	c->state_change(sk);
}

static void ulp_work(struct work_struct *work)
{
	struct conn *c = container_of(to_delayed_work(work), struct conn, work);
	struct sock *sk = c->sk;
	LIST_HEAD(dead);

	lock_sock(sk);
	if (!c->closing && c->state == CONN_START)
		conn_start_run(c);
	if (!c->closing && c->state == CONN_DDP) {
		conn_rx_pump(c, GFP_KERNEL);
		conn_tx_run(c);
		if (rdmap_state_of(&c->s) != RDMAP_OPEN)
			conn_end(c);
		if (sk->sk_state == TCP_CLOSE)
			conn_lost(c);
		if (conn_tx_idle(c))
			c->write_space(sk);
		if (conn_readable(c))
			c->data_ready(sk);
	}
	list_splice_init(&c->dead, &dead);
	release_sock(sk);
	conn_regions_free(&dead);
}

/* --- what the program calls ------------------------------------------------------------------- */

static int ulp_setsockopt(struct sock *sk, int level, int name, sockptr_t value, unsigned int len)
{
	struct conn *c = conn_of(sk);

	if (level == SOL_DDP)
		return conn_option_set(c, name, value, len);
	if (level == SOL_TCP && name == TCP_REPAIR)
		return -EOPNOTSUPP;
	return c->base->setsockopt(sk, level, name, value, len);
}

static int ulp_getsockopt(struct sock *sk, int level, int name, char __user *value, int __user *len)
{
	struct conn *c = conn_of(sk);

	if (level == SOL_DDP)
		return conn_option_get(c, name, value, len);
	if (level == SOL_TCP && name == TCP_ZEROCOPY_RECEIVE && c->state != CONN_TCP)
		return -EOPNOTSUPP;
	return c->base->getsockopt(sk, level, name, value, len);
}

/* shutdown() of a listener comes here, too */
static int ulp_disconnect(struct sock *sk, int flags)
{
	return sk->sk_state == TCP_LISTEN ? conn_of(sk)->base->disconnect(sk, flags) : -EOPNOTSUPP;
}

static void ulp_shutdown(struct sock *sk, int how)
{
	struct conn *c = conn_of(sk);

	if (how & SEND_SHUTDOWN) {
		sk->sk_shutdown &= ~SEND_SHUTDOWN; /* TCP takes nothing behind it */
		conn_tx_drain(c);
		sk->sk_shutdown |= SEND_SHUTDOWN;
		conn_ops_flush_queue(c);
	}
	c->base->shutdown(sk, how);
}

static __poll_t ulp_poll(struct file *file, struct socket *sock, struct poll_table_struct *wait)
{
	struct conn *c = conn_of(sock->sk);
	__poll_t mask = tcp_poll(file, sock, wait);

	if (c->state == CONN_LISTEN)
		return mask;
	mask &= ~(EPOLLIN | EPOLLRDNORM);
	if (conn_readable(c))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (conn_op_told(c))
		mask |= EPOLLERR;
	if (c->state <= CONN_DDP &&
	    (!mpa_conn_may_send(&c->s.ddp.mpa) || (!conn_tx_idle(c) && conn_tx_refuse(c))))
		mask &= ~(EPOLLOUT | EPOLLWRNORM);
	return mask;
}

static int ulp_mmap(struct file *file, struct socket *sock, struct vm_area_struct *vma)
{
	return conn_ring_mmap(smp_load_acquire(&conn_of(sock->sk)->ring), vma);
}

static ssize_t ulp_splice_read(struct socket *sock, loff_t *pos, struct pipe_inode_info *pipe,
			       size_t len, unsigned int flags)
{
	return -EOPNOTSUPP;
}

/* A message is ready when it is whole, and TCP must tell of each octet */
static int ulp_set_rcvlowat(struct sock *sk, int value)
{
	return 0;
}

static void conn_detach(struct conn *c)
{
	struct sock *sk = c->sk;

	if (c->state >= CONN_START) {
		if (c->state == CONN_DDP && !list_empty(&c->rx.messages)) {
			sock_set_flag(sk, SOCK_LINGER); /* as TCP does with octets unread */
			sk->sk_lingertime = 0;
		}
		conn_tx_drain(c);
		sk->sk_data_ready = c->data_ready;
		sk->sk_write_space = c->write_space;
		sk->sk_state_change = c->state_change;
		WRITE_ONCE(inet_csk(sk)->icsk_af_ops, c->af);
	}
	c->closing = true;
	sk->sk_user_data = NULL;
	WRITE_ONCE(sk->sk_prot, c->base);
}

static void conn_free(struct conn *c)
{
	conn_start_end(c);
	conn_rx_uninit(&c->rx);
	conn_ooo_uninit(&c->ooo);
	conn_ops_uninit(c);
	conn_tx_uninit(c);
	conn_regions_uninit(c);
	kfree(c);
}

static void ulp_close(struct sock *sk, long timeout)
{
	struct conn *c = conn_of(sk);
	struct proto *base = c->base;

	lock_sock(sk);
	conn_detach(c);
	release_sock(sk);
	cancel_delayed_work_sync(&c->work);
	lock_sock(sk);
	rcu_assign_pointer(inet_csk(sk)->icsk_ulp_data, NULL);
	release_sock(sk);
	conn_free(c);
	base->close(sk, timeout);
}

/* --- attaching -------------------------------------------------------------------------------- */

static int conn_attach(struct sock *sk)
{
	struct conn *c;

	if ((sk->sk_prot != &tcp_prot && sk->sk_prot != &tcpv6_prot) || sk->sk_user_data)
		return -EBUSY;
	c = kzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);
	if (!c)
		return -ENOMEM;
	c->sk = sk;
	c->base = sk->sk_prot;
	c->slots = (struct rdmap_slots)RDMAP_SLOTS(c->in, c->out);
	INIT_DELAYED_WORK(&c->work, ulp_work);
	INIT_LIST_HEAD(&c->tx.queue);
	INIT_LIST_HEAD(&c->begun);
	INIT_LIST_HEAD(&c->done);
	INIT_LIST_HEAD(&c->regions);
	INIT_LIST_HEAD(&c->dead);
	conn_rx_init(&c->rx, 0);
	conn_ooo_init(&c->ooo);
	rcu_assign_pointer(inet_csk(sk)->icsk_ulp_data, c);
	sk->sk_user_data = c; /* nobody else is to take the socket over */
	WRITE_ONCE(sk->sk_prot, &attached[family_of(c)]);
	return 0;
}

static int ulp_init(struct sock *sk)
{
	if (sk->sk_state != TCP_ESTABLISHED && sk->sk_state != TCP_LISTEN)
		return -ENOTCONN;
	return conn_attach(sk);
}

/* Copies the family's operations when the first socket of it comes: IPv6's are not exported */
static int ops_prepare(enum family f, const struct proto_ops *base)
{
	int rc = 0;

	mutex_lock(&ops_lock);
	if (!ops_base[f]) {
		ops[f] = *base;
		ops[f].poll = ulp_poll;
		ops[f].accept = ulp_accept;
		ops[f].splice_read = ulp_splice_read;
		ops[f].mmap = ulp_mmap;
		ops[f].read_sock = NULL;
		ops[f].peek_len = NULL;
		ops[f].set_rcvlowat = ulp_set_rcvlowat;
		ops_base[f] = base;
	} else if (ops_base[f] != base && base != &ops[f]) {
		rc = -EBUSY;
	}
	mutex_unlock(&ops_lock);
	return rc;
}

/* The copy of @base, made when the first socket with it comes; NULL: there are too many */
static const struct inet_connection_sock_af_ops *
af_prepare(const struct inet_connection_sock_af_ops *base)
{
	size_t i;

	mutex_lock(&ops_lock);
	for (i = 0; i < ARRAY_SIZE(afs) && afs_base[i] && afs_base[i] != base; i++)
		;
	if (i < ARRAY_SIZE(afs) && !afs_base[i]) {
		afs[i] = *base;
		afs[i].queue_xmit = ulp_queue_xmit;
		afs_base[i] = base;
	}
	mutex_unlock(&ops_lock);
	return i < ARRAY_SIZE(afs) ? &afs[i] : NULL;
}

int kmod_ulp_take(struct conn *c, enum conn_state state)
{
	struct sock *sk = c->sk;
	enum family f = family_of(c);
	const struct inet_connection_sock_af_ops *af = af_prepare(inet_csk(sk)->icsk_af_ops);
	int rc = af ? ops_prepare(f, sk->sk_socket->ops) : -EBUSY;

	if (rc)
		return rc;
	c->af = inet_csk(sk)->icsk_af_ops;
	WRITE_ONCE(inet_csk(sk)->icsk_af_ops, af);
	c->data_ready = sk->sk_data_ready;
	c->write_space = sk->sk_write_space;
	c->state_change = sk->sk_state_change;
	c->state = state;
	tcp_sk(sk)->nonagle |= TCP_NAGLE_OFF | TCP_NAGLE_PUSH;
	WRITE_ONCE(sk->sk_rcvlowat, 1);
	sk->sk_data_ready = ulp_data_ready;
	sk->sk_write_space = ulp_write_space;
	sk->sk_state_change = ulp_state_change;
	WRITE_ONCE(sk->sk_prot, &handed[f]);
	WRITE_ONCE(sk->sk_socket->ops, &ops[f]);
	return 0;
}

/* --- listeners -------------------------------------------------------------------------------- */

/*
 * A socket that a listener's handshake has made is one of TCP until accept() returns it: the
 * listener may be closing meanwhile, so nothing of its conn is looked at
 */
static void ulp_clone(const struct request_sock *req, struct sock *newsk, const gfp_t priority)
{
	struct proto *base = newsk->sk_family == AF_INET ? &tcp_prot : &tcpv6_prot;

	inet_csk(newsk)->icsk_ulp_ops = NULL;
	RCU_INIT_POINTER(inet_csk(newsk)->icsk_ulp_data, NULL);
	newsk->sk_user_data = NULL;
	WRITE_ONCE(newsk->sk_prot, base);
	newsk->sk_prot_creator = base; /* frees it, perhaps when the module has gone */
}

static int adopt_locked(struct sock *sk, const struct conn_wanted *wanted)
{
	struct conn *c;
	int rc = inet_csk(sk)->icsk_ulp_ops ? -EBUSY : conn_attach(sk);

	if (rc)
		return rc;
	__module_get(THIS_MODULE); /* the listener has a reference, too */
	inet_csk(sk)->icsk_ulp_ops = &ulp_ops;
	c = conn_of(sk);
	c->rx.recv_max = DDP_KERNEL_RECV_DEFAULT;
	rc = conn_start_begin(c, wanted);
	if (!rc)
		rc = kmod_ulp_take(c, CONN_START);
	if (!rc)
		conn_start_run(c);
	return rc;
}

/* An error closes the socket, whose number the program does not get */
static int ulp_accept(struct socket *sock, struct socket *newsock, COMPAT_ACCEPT_ARGS)
{
	const struct conn *listener = conn_of(sock->sk);
	const struct proto_ops *base = ops_base[family_of(listener)];
	int rc = base->accept(sock, newsock, COMPAT_ACCEPT_PASS);

	if (rc)
		return rc;
	if (!listener->wanted.on) {
		newsock->ops = base;
		return 0;
	}
	lock_sock(newsock->sk);
	rc = adopt_locked(newsock->sk, &listener->wanted);
	release_sock(newsock->sk);
	return rc;
}

int kmod_ulp_listen(struct conn *c)
{
	enum family f = family_of(c);
	int rc = ops_prepare(f, c->sk->sk_socket->ops);

	if (rc)
		return rc;
	c->state = CONN_LISTEN;
	WRITE_ONCE(c->sk->sk_socket->ops, &ops[f]);
	return 0;
}

/* --- the module ------------------------------------------------------------------------------ */

static struct tcp_ulp_ops ulp_ops __read_mostly = {
	.name = DDP_ULP_NAME,
	.owner = THIS_MODULE,
	.init = ulp_init,
	.clone = ulp_clone,
};

static void protos_fill(enum family f, const struct proto *base)
{
	attached[f] = *base;
	attached[f].close = ulp_close;
	attached[f].setsockopt = ulp_setsockopt;
	attached[f].getsockopt = ulp_getsockopt;
	attached[f].disconnect = ulp_disconnect;
	handed[f] = attached[f];
	handed[f].sendmsg = conn_sendmsg;
	handed[f].recvmsg = conn_recvmsg;
	handed[f].shutdown = ulp_shutdown;
	compat_no_sendpage(&handed[f]);
}

int kmod_ulp_init(void)
{
	protos_fill(V4, &tcp_prot);
	protos_fill(V6, &tcpv6_prot);
	return tcp_register_ulp(&ulp_ops);
}

void kmod_ulp_exit(void)
{
	tcp_unregister_ulp(&ulp_ops);
}
