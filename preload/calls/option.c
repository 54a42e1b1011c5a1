/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that ask and change what a socket does: options and ioctls.
 *
 * Options stay in the kernel's socket. What would spoil the frames on it is kept or refused
 * here, and getsockopt() shows what the program set. A socket that may yet be plain TCP has its
 * options in the kernel as well, until it carries frames; what is only of use where TCP's own
 * octets are the program's is refused from the beginning, for programs ask once and then rely on
 * the answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/bits.h"
#include "preload/calls/ddp.h"
#include "preload/device/device.h"
#include "preload/sock/option.h"
#include "preload/sock/sock.h"
#include "preload/sock/worker.h"
#include "preload/table/libc.h"
#include "preload/table/tmp_cloexec.h"
#include "preload/table/user_iov.h"
#include "preload/wait/confine.h"

/* --- ioctls, in octets of the program --- */

static long readable(struct sock *s)
{
	return (long)stream_readable(s->stream);
}

/* A device does not tell what it has from what it has sent */
static long carrier_count(struct sock *s, unsigned long request, const struct stream_stats *stats)
{
	int frames = 0;

	if (stats->device)
		return (long)stats->queued;
	return libc.ioctl(stream_fd(s->stream), request, (long)&frames) ? -errno : frames;
}

/*
 * Accepted, and not acknowledged, or not even sent (SIOCOUTQNSD). The kernel's number counts
 * frames and grants as well: it bounds ours, and where it is nought, so is ours. What was
 * acknowledged once counts no more.
 */
static long unacked(struct sock *s, unsigned long request)
{
	struct stream_stats stats;
	uint64_t since;
	long frames;

	stream_stats(s->stream, &stats);
	since = stats.tx_octets - __atomic_load_n(&s->acked, __ATOMIC_RELAXED);
	frames = carrier_count(s, request, &stats);
	if (frames < 0)
		return frames;
	if (!frames && request == SIOCOUTQ && !stream_owes(s->stream)) {
		__atomic_store_n(&s->acked, stats.tx_octets, __ATOMIC_RELAXED);
		return 0;
	}
	return (long)base_min(since, (uint64_t)frames);
}

static long int_tell(int *value, int answer)
{
	if (user_iov_wild(value, sizeof(*value)))
		return -EFAULT;
	*value = answer;
	return 0;
}

static long stream_count(struct sock *s, unsigned long request, int *value)
{
	long count = request == FIONREAD ? readable(s) : unacked(s, request);

	if (count < 0)
		return count;
	return int_tell(value, (int)count);
}

static long mark_look(struct sock *s, int *value)
{
	unsigned int levels = stream_levels(s->stream, NULL);

	return int_tell(value, !!(levels & STREAM_AT_MARK));
}

/* libc's own goes to the kernel by a name that is not to be had */
long call_sockatmark(int fd)
{
	int at = 0;
	long r = call_ioctl(fd, SIOCATMARK, (long)&at);

	return r ? r : at;
}

/* Somebody must look, then, for what the owner is to be told of */
static long owner_set(struct sock *s, unsigned long request, long arg)
{
	long r;

	/* What came earlier is not for the new owner */
	if (sock_role(s) == SOCK_STREAM_ON)
		sock_progress(s);
	r = libc_try(libc.ioctl(s->fd, request, arg));
	if (!r)
		worker_urgent_owner(s);
	return r;
}

long call_ioctl(int fd, unsigned long request, long arg)
{
	struct sock *s;
	bool counts = request == FIONREAD || request == SIOCOUTQ || request == SIOCOUTQNSD;
	long r = CALL_THEIRS;

	if (request == FIOCLEX || request == FIONCLEX)
		return tmp_cloexec_flags(fd, F_SETFD, request == FIOCLEX ? FD_CLOEXEC : 0);
	s = sock_get(fd);
	if (s && counts && sock_role(s) == SOCK_STREAM_ON && !sock_progress(s))
		r = stream_count(s, request, (int *)arg);
	if (s && request == SIOCATMARK && sock_role(s) == SOCK_STREAM_ON && !sock_progress(s))
		r = mark_look(s, (int *)arg);
	if (s && (request == FIOSETOWN || request == SIOCSPGRP))
		r = owner_set(s, request, arg);
	if (s && request == FIONBIO && sock_role(s) == SOCK_STREAM_ON &&
	    !user_iov_wild((void *)arg, sizeof(int)))
		r = confine_nonblock_set(s, *(int *)arg);
	if (s && request == FIONBIO && r == CALL_THEIRS) {
		r = libc_try(libc.ioctl(fd, request, arg));
		sock_waits_changed(s);
	}
	sock_put(s);
	return r;
}

/* --- options --- */

enum option_rule {
	OPTION_KERNEL,
	OPTION_KEPT,   /* a member of struct option_values, 0 or 1 */
	OPTION_TIME,   /* a member: is it less than nothing? */
	OPTION_LOWAT,  /* SO_RCVLOWAT, which a stream has for itself */
	OPTION_INLINE, /* SO_OOBINLINE, which the kernel's socket has as well */
	OPTION_ERROR,
	OPTION_REFUSED, /* by a stream */
	OPTION_NEVER,	/* by every socket that may become one */
	OPTION_OURS,	/* the same, and it is set beneath */
};

struct option {
	int level, name;
	enum option_rule rule;
	size_t member;
};

static const struct option *option_find(int level, int name)
{
	static const struct option options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, OPTION_KEPT, offsetof(struct option_values, nodelay) },
		{ IPPROTO_TCP, TCP_CORK, OPTION_KEPT, offsetof(struct option_values, cork) },
		{ IPPROTO_TCP, TCP_FASTOPEN_CONNECT, OPTION_KEPT,
		  offsetof(struct option_values, fast_open) },
		{ SOL_SOCKET, SO_RCVTIMEO, OPTION_TIME, offsetof(struct option_values, never_in) },
		{ SOL_SOCKET, SO_SNDTIMEO, OPTION_TIME, offsetof(struct option_values, never_out) },
		{ SOL_SOCKET, SO_RCVLOWAT, OPTION_LOWAT, 0 },
		{ SOL_SOCKET, SO_OOBINLINE, OPTION_INLINE, 0 },
		{ SOL_SOCKET, SO_ERROR, OPTION_ERROR, 0 },
		{ IPPROTO_TCP, TCP_ULP, OPTION_REFUSED, 0 },
		{ IPPROTO_TCP, TCP_REPAIR, OPTION_REFUSED, 0 },
		{ IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, OPTION_REFUSED, 0 },
		{ IPPROTO_TCP, TCP_INQ, OPTION_OURS, 0 },
		{ SOL_SOCKET, SO_ZEROCOPY, OPTION_NEVER, 0 },
		{ SOL_SOCKET, SO_PEEK_OFF, OPTION_NEVER, 0 },
		{ SOL_SOCKET, SO_ATTACH_FILTER, OPTION_NEVER, 0 },
		{ SOL_SOCKET, SO_ATTACH_BPF, OPTION_NEVER, 0 },
	};
	static const struct option other = { 0, 0, OPTION_KERNEL, 0 };

	for (unsigned int i = 0; i < base_array_size(options); i++)
		if (options[i].level == level && options[i].name == name)
			return &options[i];
	return &other;
}

/* Atomic: another thread's call may go by it meanwhile */
static bool *value_at(struct sock *s, const struct option *o)
{
	return (bool *)((char *)&s->option + o->member);
}

static bool value_get(struct sock *s, const struct option *o)
{
	return __atomic_load_n(value_at(s, o), __ATOMIC_RELAXED);
}

static void value_set(struct sock *s, const struct option *o, bool on)
{
	__atomic_store_n(value_at(s, o), on, __ATOMIC_RELAXED);
}

static bool is_refused(const struct option *o, bool stream)
{
	return o->rule >= OPTION_NEVER || (o->rule == OPTION_REFUSED && stream);
}

static int int_answer(void *value, socklen_t *len, int answer)
{
	*len = base_min(*len, (socklen_t)sizeof(answer));
	if (*len && user_iov_wild(value, *len))
		return -EFAULT;
	memcpy(value, &answer, *len);
	return 0;
}

/* What the kernel's socket does not know; CALL_THEIRS: it does */
static long stream_get(struct sock *s, const struct option *o, void *value, socklen_t *len)
{
	switch (o->rule) {
	case OPTION_KERNEL:
	case OPTION_TIME:
	case OPTION_INLINE:
	case OPTION_NEVER:
		return CALL_THEIRS;
	case OPTION_REFUSED:
		return -EOPNOTSUPP;
	default:
		break;
	}
	if (user_iov_wild(len, sizeof(*len)))
		return -EFAULT;
	if ((int)*len < 0)
		return -EINVAL;
	if (o->rule == OPTION_LOWAT)
		return int_answer(value, len, (int)stream_lowat(s->stream));
	if (o->rule == OPTION_KEPT)
		return int_answer(value, len, value_get(s, o));
	if (o->rule == OPTION_OURS)
		return int_answer(value, len, 0);
	sock_progress(s);
	return int_answer(value, len, stream_take_error(s->stream));
}

long call_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	long r = CALL_THEIRS;
	struct sock *s;

	if (level == SOL_DDP)
		return ddp_getsockopt(fd, name, value, len);
	s = sock_get(fd);
	if (s && sock_role(s) == SOCK_STREAM_ON)
		r = stream_get(s, option_find(level, name), value, len);
	if (s && r == CALL_THEIRS)
		r = device_option(s, level, name, value, len);
	sock_put(s);
	return r;
}

static int int_value(const void *value, socklen_t len, int *out)
{
	if ((int)len < (int)sizeof(*out))
		return -EINVAL;
	if (user_iov_wild(value, sizeof(*out)))
		return -EFAULT;
	memcpy(out, value, sizeof(*out));
	return 0;
}

static void lowat_set(struct sock *s, int octets)
{
	stream_set_lowat(s->stream, octets < 0 ? INT32_MAX : (size_t)octets);
}

/* Of an option that a stream has for itself */
static long stream_set(struct sock *s, const struct option *o, const void *value, socklen_t len)
{
	int n, err = int_value(value, len, &n);

	if (err)
		return err;
	if (o->rule == OPTION_LOWAT)
		lowat_set(s, n);
	else
		value_set(s, o, n != 0);
	return 0;
}

/* Of a socket without a stream: the kernel has it, and we know of it */
static long plain_set(struct sock *s, const struct option *o, const void *value, socklen_t len)
{
	long err = libc_try(libc.setsockopt(s->fd, o->level, o->name, value, len));
	int n;

	if (!err && !int_value(value, len, &n))
		value_set(s, o, n != 0);
	return err;
}

/* Calls do not wait then; getsockopt() shows nought, as where they wait for ever */
static long time_set(struct sock *s, const struct option *o, const void *value, socklen_t len)
{
	long err = libc_try(libc.setsockopt(s->fd, o->level, o->name, value, len));
	struct timeval tv;

	if (err)
		return err;
	memcpy(&tv, value, sizeof(tv));
	value_set(s, o, tv.tv_sec < 0);
	sock_waits_changed(s);
	return 0;
}

static long inline_set(struct sock *s, const struct option *o, const void *value, socklen_t len)
{
	long err = libc_try(libc.setsockopt(s->fd, o->level, o->name, value, len));
	int n;

	if (!err && !int_value(value, len, &n))
		stream_set_inline(s->stream, n != 0);
	return err;
}

static bool is_streams_own(const struct option *o)
{
	/* TCP_FASTOPEN_CONNECT comes too late, as the kernel says */
	return o->rule == OPTION_LOWAT ||
	       (o->rule == OPTION_KEPT && o->name != TCP_FASTOPEN_CONNECT);
}

static long sock_set(struct sock *s, const struct option *o, const void *value, socklen_t len)
{
	bool stream = sock_role(s) == SOCK_STREAM_ON;

	if (is_refused(o, stream))
		return -EOPNOTSUPP;
	if (o->rule == OPTION_TIME)
		return time_set(s, o, value, len);
	if (stream && o->rule == OPTION_INLINE)
		return inline_set(s, o, value, len);
	if (stream && is_streams_own(o))
		return stream_set(s, o, value, len);
	if (o->rule == OPTION_KEPT && !stream)
		return plain_set(s, o, value, len);
	return CALL_THEIRS;
}

long call_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct sock *s;
	long r;

	if (level == SOL_DDP)
		return ddp_setsockopt(fd, name, value, len);
	s = sock_get(fd);
	r = s ? sock_set(s, option_find(level, name), value, len) : CALL_THEIRS;
	if (s && r == CALL_THEIRS)
		r = device_option_set(s, level, name, value, len);
	sock_put(s);
	return r;
}
