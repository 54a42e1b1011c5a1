/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages and one-sided operations, from sendmsg() to their completion.
 *
 * An operation stands in conn->tx.queue until TCP has all of it, then in ->begun until it is over
 * and all before it are, then in ->done until the program has taken its completion; with a ring
 * the last step is none. Messages leave the queue and are gone. What an operation reads from or
 * writes to is pinned before the socket's lock is taken; short Writes are copied instead. Its sink
 * has an STag of its own from then on, which the peer learns from the request.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "kmod/conn.h"
#include "kmod/op.h"
#include "kmod/region.h"

#define LENGTH_MAX (1u << 30)
#define COPY_MAX 16384 /* Writes up to here are copied, longer ones pinned */
#define STAG_UNUSED 1  /* of a Read of nothing: adapters refuse 0 */

static bool is_message(const struct conn_op *op)
{
	return op->type == DDP_CMSG_SEND;
}

static bool is_asking(const struct conn_op *op)
{
	return op->type == DDP_CMSG_READ || op->type == DDP_CMSG_ATOMIC;
}

static void op_free(struct conn_op *op)
{
	kvfree(op->data.iov_base);
	kfree(op);
}

/* --- what sendmsg() says ---------------------------------------------------------------------- */

static int rdma_parse(struct conn_op *op, const void *data, __u8 opcode)
{
	struct ddp_rdma m;

	memcpy(&m, data, sizeof(m));
	if (m.reserved || m.length > LENGTH_MAX || (m.length && !m.addr) ||
	    m.remote_to + m.length < m.remote_to || m.addr + m.length < m.addr)
		return -EINVAL;
	op->cookie = m.cookie;
	op->wr = (struct rdmap_wr){
		.op = opcode,
		.len = m.length,
		.stag = m.remote_stag,
		.to = m.remote_to,
		.sink_stag = STAG_UNUSED,
		.sink_to = m.addr,
	};
	return 0;
}

static int write_parse(struct conn_op *op, const void *data)
{
	return rdma_parse(op, data, RDMAP_WRITE);
}

static int read_parse(struct conn_op *op, const void *data)
{
	return rdma_parse(op, data, RDMAP_READ_REQ);
}

static int atomic_parse(struct conn_op *op, const void *data)
{
	struct ddp_atomic m;

	memcpy(&m, data, sizeof(m));
	if (m.op > DDP_CMP_SWAP || m.addr % sizeof(__u64) || m.remote_to % sizeof(__u64) || !m.addr)
		return -EINVAL;
	op->cookie = m.cookie;
	op->wr = (struct rdmap_wr){
		.op = RDMAP_ATOMIC_REQ,
		.aop = m.op == DDP_CMP_SWAP ? RDMAP_CMP_SWAP : RDMAP_FETCH_ADD,
		.len = sizeof(__u64),
		.stag = m.remote_stag,
		.to = m.remote_to,
		.sink_to = m.addr,
		.data = m.operand,
		.mask = m.mask,
		.compare = m.compare,
		.compare_mask = m.compare_mask,
	};
	return 0;
}

static const struct {
	size_t len;
	int (*parse)(struct conn_op *op, const void *data);
} rows[] = {
	[DDP_CMSG_WRITE] = { sizeof(struct ddp_rdma), write_parse },
	[DDP_CMSG_READ] = { sizeof(struct ddp_rdma), read_parse },
	[DDP_CMSG_ATOMIC] = { sizeof(struct ddp_atomic), atomic_parse },
};

/* The one control message of ours; NULL: there is none */
static int control_find(struct msghdr *msg, struct cmsghdr **out)
{
	struct cmsghdr *control;

	*out = NULL;
	for_each_cmsghdr(control, msg)
	{
		if (!CMSG_OK(msg, control))
			return -EINVAL;
		if (control->cmsg_level != SOL_DDP)
			continue;
		if (*out)
			return -EINVAL;
		*out = control;
	}
	return 0;
}

static int control_parse(struct msghdr *msg, const struct cmsghdr *control, struct conn_op *op)
{
	unsigned int type = control->cmsg_type;

	if (type >= ARRAY_SIZE(rows) || !rows[type].parse || iov_iter_count(&msg->msg_iter) ||
	    control->cmsg_len != CMSG_LEN(rows[type].len))
		return -EINVAL;
	op->type = type;
	return rows[type].parse(op, CMSG_DATA((struct cmsghdr *)control));
}

/* --- its memory ------------------------------------------------------------------------------- */

static int data_get(struct conn_op *op, size_t len)
{
	op->data = (struct kvec){ kvmalloc(len ?: 1, GFP_KERNEL_ACCOUNT), len };
	op->wr.sg = &op->data;
	op->wr.nsg = 1;
	op->wr.len = len;
	return op->data.iov_base ? 0 : -ENOMEM;
}

static int write_memory(struct conn_op *op)
{
	__u32 len = op->wr.len;
	int rc;

	if (len > COPY_MAX)
		return conn_region_pin(op->wr.sink_to, len, 0, &op->memory);
	rc = data_get(op, len);
	if (!rc && copy_from_user(op->data.iov_base, u64_to_user_ptr(op->wr.sink_to), len))
		rc = -EFAULT;
	return rc;
}

static int op_memory(struct conn_op *op)
{
	if (op->type == DDP_CMSG_WRITE)
		return write_memory(op);
	if (!op->wr.len)
		return 0;
	return conn_region_pin(op->wr.sink_to, op->wr.len, DDP_LOCAL_WRITE, &op->memory);
}

/* --- into the queue --------------------------------------------------------------------------- */

static struct conn_op *op_get(void)
{
	struct conn_op *op = kzalloc(sizeof(*op), GFP_KERNEL_ACCOUNT);

	if (op)
		INIT_LIST_HEAD(&op->list);
	return op;
}

int conn_op_message(struct msghdr *msg, size_t len, struct conn_op **out)
{
	struct conn_op *op = op_get();
	int rc;

	if (!op)
		return -ENOMEM;
	op->type = DDP_CMSG_SEND;
	op->wr.op = RDMAP_SEND;
	rc = data_get(op, len);
	if (!rc && !copy_from_iter_full(op->data.iov_base, len, &msg->msg_iter))
		rc = -EFAULT;
	if (rc)
		op_free(op);
	else
		*out = op;
	return rc;
}

void conn_op_enter(struct conn *c, struct conn_op *op)
{
	list_add_tail(&op->list, &c->tx.queue);
	c->tx.entered++;
	if (!is_message(op))
		c->operations++;
	if (!is_message(op))
		c->ops++;
}

/* Operations whose completion may still need an entry */
static bool ops_full(const struct conn *c)
{
	if (c->ring)
		return c->ops + conn_ring_used(c->ring) >= conn_ring_entries(c->ring);
	return c->ops >= DDP_KERNEL_OPS_MAX;
}

static int op_begin(struct conn *c, struct conn_op *op)
{
	const struct sock *sk = c->sk;
	int rc = 0;

	if (c->state < CONN_DDP)
		return -ENOTCONN;
	if (sk->sk_err || c->state != CONN_DDP || sk->sk_shutdown & SEND_SHUTDOWN ||
	    rdmap_state_of(&c->s) != RDMAP_OPEN || (is_asking(op) && c->rx.eof))
		return -EPIPE;
	if (is_asking(op) && !c->s.ddp.mpa.ord)
		return -EOPNOTSUPP;
	if (ops_full(c))
		return -ENOBUFS;
	if (is_asking(op) && op->memory)
		rc = conn_region_enter(c, op->memory, &op->wr.sink_stag);
	if (rc)
		return rc;
	op->wr.cookie = (uintptr_t)op;
	conn_op_enter(c, op);
	conn_tx_run(c);
	return 0;
}

static int op_post(struct conn *c, struct msghdr *msg, const struct cmsghdr *control)
{
	struct conn_op *op = op_get();
	int rc;

	if (!op)
		return -ENOMEM;
	conn_regions_reap(c);
	rc = control_parse(msg, control, op);
	if (!rc)
		rc = op_memory(op);
	if (rc)
		goto err_free;
	lock_sock(c->sk);
	rc = op_begin(c, op);
	release_sock(c->sk);
	if (!rc)
		return 0;
	if (op->memory)
		conn_region_free(op->memory);
err_free:
	op_free(op);
	return rc;
}

int conn_op_sendmsg(struct conn *c, struct msghdr *msg)
{
	struct cmsghdr *control;
	int rc = control_find(msg, &control);

	if (rc)
		return rc;
	return control ? op_post(c, msg, control) : 1;
}

/* --- its end ---------------------------------------------------------------------------------- */

static void completion_of(const struct conn_op *op, struct ddp_completion *out)
{
	*out = (struct ddp_completion){
		.cookie = op->cookie,
		.length = op->status == DDP_STATUS_OK ? op->wr.len : 0,
		.type = op->type,
		.status = op->status,
	};
}

/* Tells of all that are over and have nothing before them that is not */
static void ops_settle(struct conn *c)
{
	struct ddp_completion completion;
	struct conn_op *op, *next;
	bool told = false;

	list_for_each_entry_safe(op, next, &c->begun, list)
	{
		if (!op->over)
			break;
		if (!c->ring) {
			list_move_tail(&op->list, &c->done);
		} else {
			completion_of(op, &completion);
			if (!conn_ring_put(c->ring, &completion))
				break;
			list_del(&op->list);
			c->ops--;
			op_free(op);
		}
		told = true;
	}
	if (told)
		sk_error_report(c->sk);
}

/* An answer that comes all the same finds nobody: the operation goes before the connection */
static void answer_forget(struct conn *c, const struct conn_op *op)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(c->out); i++)
		if (c->out[i].cookie == (uintptr_t)op)
			c->out[i].cookie = RDMAP_COOKIE_NONE;
}

static void op_end(struct conn *c, struct conn_op *op, enum ddp_status status)
{
	if (is_asking(op))
		answer_forget(c, op);
	op->over = true;
	op->status = status;
	if (op->memory)
		conn_region_bury(c, op->memory);
	op->memory = NULL;
}

void conn_op_left(struct conn *c, struct conn_op *op)
{
	c->tx.left++;
	if (is_message(op)) {
		list_del(&op->list);
		op_free(op);
		return;
	}
	list_move_tail(&op->list, &c->begun);
	if (!is_asking(op))
		op_end(c, op, DDP_STATUS_OK);
	else if (c->rx.eof && !op->over) /* the answer that nobody gives */
		op_end(c, op, DDP_STATUS_FLUSHED);
	ops_settle(c);
}

void conn_op_answered(struct conn *c, struct conn_op *op, __u64 value)
{
	if (op->over)
		return;
	if (op->type == DDP_CMSG_ATOMIC)
		conn_region_copy(op->memory, 0, (__u8 *)&value, sizeof(value), true);
	op_end(c, op, DDP_STATUS_OK);
	ops_settle(c);
}

/* The peer refuses memory by a Terminate; its first victim is told */
static enum ddp_status why_not(struct conn *c)
{
	if (rdmap_state_of(&c->s) != RDMAP_TERM_RCVD || c->refused)
		return DDP_STATUS_FLUSHED;
	c->refused = true;
	return DDP_STATUS_REMOTE;
}

void conn_ops_flush_begun(struct conn *c)
{
	struct conn_op *op;

	list_for_each_entry(op, &c->begun, list)
	{
		if (!op->over)
			op_end(c, op, why_not(c));
	}
	ops_settle(c);
}

void conn_ops_flush_queue(struct conn *c)
{
	struct conn_op *op, *next;

	c->tx.pending = false; /* it may refer to what goes now */
	c->tx.leaving = NULL;
	list_for_each_entry_safe(op, next, &c->tx.queue, list)
	{
		c->tx.left++;
		if (is_message(op)) {
			list_del(&op->list);
			op_free(op);
			continue;
		}
		if (!op->over)
			op_end(c, op, why_not(c));
		list_move_tail(&op->list, &c->begun);
	}
	ops_settle(c);
}

static void list_free(struct list_head *list)
{
	struct conn_op *op, *next;

	list_for_each_entry_safe(op, next, list, list)
	{
		if (op->memory)
			conn_region_free(op->memory);
		op_free(op);
	}
	INIT_LIST_HEAD(list);
}

void conn_ops_uninit(struct conn *c)
{
	list_free(&c->tx.queue);
	list_free(&c->begun);
	list_free(&c->done);
	conn_ring_destroy(c->ring);
}

/* --- completions ------------------------------------------------------------------------------ */

bool conn_op_told(const struct conn *c)
{
	const struct conn_ring *ring = smp_load_acquire(&c->ring);

	return !list_empty_careful(&c->done) || (ring && conn_ring_used(ring));
}

static int collect_locked(struct conn *c, struct msghdr *msg)
{
	struct ddp_completion completion;
	struct conn_op *op;
	int rc;

	if (list_empty(&c->done))
		return -EAGAIN;
	op = list_first_entry(&c->done, struct conn_op, list);
	completion_of(op, &completion);
	rc = put_cmsg(msg, SOL_DDP, DDP_CMSG_COMPLETION, sizeof(completion), &completion);
	if (rc)
		return rc;
	msg->msg_flags |= MSG_ERRQUEUE;
	list_del_init(&op->list);
	c->ops--;
	op_free(op);
	return 0;
}

int conn_op_collect(struct conn *c, struct msghdr *msg)
{
	int rc;

	if (msg->msg_controllen < CMSG_LEN(sizeof(struct ddp_completion)))
		return -EMSGSIZE;
	lock_sock(c->sk);
	rc = collect_locked(c, msg);
	release_sock(c->sk);
	return rc;
}
