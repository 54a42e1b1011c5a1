/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control messages of SOL_DDP (include/warp/ddp.h): user messages, one-sided operations,
 * completions.
 *
 * What a message or an operation is about stands in the control message, and msg_iov must be
 * empty: the same call on a plain socket sends nothing, because the kernel passes over control
 * messages of levels that it does not know.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "preload/calls/ddp.h"
#include "preload/sock/worker.h"
#include "preload/table/user_iov.h"
#include "preload/wait/sock_io.h"
#include "rnic/rnic_onesided.h"
#include "stream/cursor.h"

#include <wire/stream_ext.h>

/* --- sending --- */

/* The first of our level, and how many there are; the memory is known to be sound */
static const struct cmsghdr *control_find(const struct msghdr *msg, unsigned int *count)
{
	struct msghdr copy = *msg; /* CMSG_NXTHDR() wants to be able to write */
	const struct cmsghdr *found = NULL;

	*count = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&copy); c; c = CMSG_NXTHDR(&copy, c)) {
		if (c->cmsg_level != SOL_DDP)
			continue;
		if (!found)
			found = c;
		++*count;
	}
	return found;
}

bool ddp_is_wanted(const struct msghdr *msg)
{
	unsigned int count;

	return msg->msg_controllen && control_find(msg, &count);
}

static bool is_far(uint64_t addr, uint64_t len)
{
	return len && user_iov_wild((void *)(uintptr_t)addr, len);
}

static long send_do(struct sock *s, const void *data, int flags)
{
	struct sock_io_call c = { s, s->stream, flags, 0, 0 };
	struct ddp_send m;
	long err;

	memcpy(&m, data, sizeof(m));
	if (is_far(m.addr, m.length))
		return -EFAULT;
	do {
		err = stream_message_send(c.stream, (void *)(uintptr_t)m.addr, m.length);
		if (err != -EAGAIN)
			break;
		err = sock_io_wait(&c, STREAM_WRITABLE);
	} while (!err);
	worker_owing(s);
	if (err == -EPIPE)
		return sock_io_broken(flags);
	return err ? err : (long)m.length;
}

static long job_do(struct sock *s, const struct stream_job *job, bool reserved)
{
	long err;

	if (reserved || job->len > STREAM_JOB_MAX)
		return -EINVAL;
	if (is_far((uintptr_t)job->addr, job->len))
		return -EFAULT;
	err = stream_post(s->stream, job);
	worker_owing(s);
	return err;
}

static long rdma_do(struct sock *s, const void *data, enum stream_job_kind kind, bool mapped)
{
	struct ddp_rdma m;
	struct stream_job job;

	memcpy(&m, data, sizeof(m));
	job = (struct stream_job){
		.kind = kind,
		.cookie = m.cookie,
		.addr = (void *)(uintptr_t)m.addr,
		.len = (uint32_t)base_min(m.length, (__u64)STREAM_JOB_MAX + 1),
		.stag = m.remote_stag,
		.to = m.remote_to,
		.mapped = mapped,
	};
	return job_do(s, &job, m.reserved || (mapped && m.remote_stag));
}

static long write_do(struct sock *s, const void *data, int flags)
{
	return rdma_do(s, data, STREAM_JOB_WRITE, false);
}

static long write_mapped_do(struct sock *s, const void *data, int flags)
{
	return rdma_do(s, data, STREAM_JOB_WRITE, true);
}

static long read_do(struct sock *s, const void *data, int flags)
{
	return rdma_do(s, data, STREAM_JOB_READ, false);
}

static long atomic_do(struct sock *s, const void *data, int flags)
{
	struct ddp_atomic m;
	struct stream_job job;

	memcpy(&m, data, sizeof(m));
	job = (struct stream_job){
		.kind = m.op == DDP_CMP_SWAP ? STREAM_JOB_SWAP : STREAM_JOB_ADD,
		.cookie = m.cookie,
		.addr = (void *)(uintptr_t)m.addr,
		.len = sizeof(__u64),
		.stag = m.remote_stag,
		.to = m.remote_to,
		.data = m.operand,
		.mask = m.mask,
		.compare = m.compare,
		.compare_mask = m.compare_mask,
	};
	return job_do(s, &job, m.op > DDP_CMP_SWAP);
}

static const struct {
	size_t len;
	long (*go)(struct sock *s, const void *data, int flags);
} rows[] = {
	[DDP_CMSG_SEND] = { sizeof(struct ddp_send), send_do },
	[DDP_CMSG_WRITE] = { sizeof(struct ddp_rdma), write_do },
	[DDP_CMSG_READ] = { sizeof(struct ddp_rdma), read_do },
	[DDP_CMSG_ATOMIC] = { sizeof(struct ddp_atomic), atomic_do },
	[DDP_CMSG_WRITE_MAPPED] = { sizeof(struct ddp_rdma), write_mapped_do },
};

static long control_do(struct sock *s, const struct msghdr *msg, int flags)
{
	unsigned int count, type;
	const struct cmsghdr *c = control_find(msg, &count);
	int err;

	type = (unsigned int)c->cmsg_type;
	if (count != 1 || type >= base_array_size(rows) || !rows[type].go ||
	    c->cmsg_len != CMSG_LEN(rows[type].len) ||
	    stream_iov_len(msg->msg_iov, (int)msg->msg_iovlen))
		return -EINVAL;
	err = ddp_ready(s, flags);
	return err ? err : rows[type].go(s, CMSG_DATA(c), flags);
}

long ddp_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct sock *s = sock_get_stream(fd);
	long r = s ? control_do(s, msg, flags) : CALL_THEIRS;

	sock_put(s);
	return r;
}

/* --- receiving --- */

/* One control message as the only one of @msg; there is room for it */
static void control_put(struct msghdr *msg, int type, const void *data, size_t len)
{
	struct cmsghdr *c = msg->msg_control;

	memset(msg->msg_control, 0, base_min(CMSG_SPACE(len), (size_t)msg->msg_controllen));
	c->cmsg_level = SOL_DDP;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	msg->msg_controllen = base_min(CMSG_SPACE(len), (size_t)msg->msg_controllen);
}

static bool control_room(const struct msghdr *msg, size_t len)
{
	return msg->msg_controllen >= CMSG_LEN(len) &&
	       !user_iov_wild(msg->msg_control, CMSG_LEN(len));
}

bool ddp_may_recv(const struct msghdr *msg)
{
	return control_room(msg, sizeof(struct ddp_send));
}

static long message_got(struct msghdr *msg, size_t len, ssize_t got, int flags)
{
	struct ddp_send m = { .length = len };

	control_put(msg, DDP_CMSG_SEND, &m, sizeof(m));
	if (msg->msg_name)
		msg->msg_namelen = 0;
	msg->msg_flags = MSG_EOR | (flags & MSG_CMSG_CLOEXEC) | ((size_t)got < len ? MSG_TRUNC : 0);
	return flags & MSG_TRUNC ? (long)len : (long)got;
}

/*
 * Octets first, for who waits must wait there; they end before a message, which is then looked for.
 * Another thread may have taken it meanwhile.
 */
long ddp_recvmsg(struct sock *s, struct msghdr *msg, int flags)
{
	int n = (int)msg->msg_iovlen;
	ssize_t got;
	size_t len;

	do {
		got = stream_message_recv(s->stream, msg->msg_iov, n, flags & MSG_PEEK, &len);
		if (got != -ENODATA)
			return got < 0 ? got : message_got(msg, len, got, flags);
		got = sock_recv(s, msg->msg_iov, n, flags);
	} while (got == -EBADMSG);
	if (got >= 0) {
		if (msg->msg_name)
			msg->msg_namelen = 0;
		msg->msg_controllen = 0;
		msg->msg_flags = flags & MSG_CMSG_CLOEXEC;
	}
	return got;
}

static long completion_get(struct sock *s, struct msghdr *msg)
{
	static const __u32 types[] = {
		[STREAM_JOB_WRITE] = DDP_CMSG_WRITE,
		[STREAM_JOB_READ] = DDP_CMSG_READ,
		[STREAM_JOB_ADD] = DDP_CMSG_ATOMIC,
		[STREAM_JOB_SWAP] = DDP_CMSG_ATOMIC,
	};
	struct stream_completion c;
	struct ddp_completion out;
	int err;

	if (!control_room(msg, sizeof(out)))
		return CALL_THEIRS;
	err = stream_complete(s->stream, &c);
	if (err)
		return err == -EAGAIN ? CALL_THEIRS : err;
	out = (struct ddp_completion){
		.cookie = c.cookie,
		.length = c.len,
		.type = types[c.kind],
		.status = (__u32)c.status,
	};
	control_put(msg, DDP_CMSG_COMPLETION, &out, sizeof(out));
	if (msg->msg_name)
		msg->msg_namelen = 0;
	msg->msg_flags = MSG_ERRQUEUE;
	return 0;
}

long ddp_errqueue(int fd, struct msghdr *msg)
{
	struct sock *s = sock_get_stream(fd);
	long r = s ? completion_get(s, msg) : CALL_THEIRS;

	if (s && sock_role(s) == SOCK_STREAM_ON)
		worker_owing(s);
	sock_put(s);
	return r;
}

_Static_assert((int)DDP_STATUS_OK == (int)STREAM_JOB_DONE &&
		       (int)DDP_STATUS_FLUSHED == (int)STREAM_JOB_FLUSHED &&
		       (int)DDP_STATUS_REMOTE == (int)STREAM_JOB_REFUSED,
	       "statuses go through as they are");
_Static_assert(DDP_ACCESS_REMOTE_WRITE == RNIC_REMOTE_WRITE &&
		       DDP_ACCESS_REMOTE_READ == RNIC_REMOTE_READ &&
		       DDP_ACCESS_REMOTE_ATOMIC == RNIC_REMOTE_ATOMIC,
	       "rights go through as they are");
_Static_assert((int)DDP_FEATURE_ABORT == (int)STREAM_FEATURE_ABORT &&
		       (int)DDP_FEATURE_INLINE == (int)STREAM_FEATURE_INLINE &&
		       (int)DDP_FEATURE_MESSAGES == (int)STREAM_FEATURE_MESSAGES &&
		       (int)DDP_FEATURE_ONESIDED == (int)STREAM_FEATURE_ONESIDED &&
		       (int)DDP_FEATURE_URGENT == (int)STREAM_FEATURE_URGENT,
	       "features go through as they are");
