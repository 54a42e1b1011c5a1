/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of SOL_DDP (include/warp/ddp.h).
 *
 * What stands before the connection is kept in struct sock and given to the stream when there is
 * one; a listener's goes to those that it accepts. A socket that is not ours is the kernel's,
 * which knows no such level.
 */
#include "preload/calls/ddp.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/sockutil.h"
#include "preload/sock/info.h"
#include "preload/sock/sock.h"
#include "preload/sock/worker.h"
#include "preload/table/libc.h"
#include "preload/table/user_iov.h"
#include "preload/wait/sock_io.h"
#include "preload/wait/wait.h"
#include "rnic/rnic.h"

#define RING_MIN (8 * 1024)
#define RING_MAX (64 * 1024 * 1024)

int ddp_ready(struct sock *s, int flags)
{
	int err = sock_progress(s);

	if (err != -EAGAIN)
		return err == -ENOMSG ? CALL_THEIRS : err;
	if (flags & MSG_DONTWAIT || base_sock_is_nonblock(stream_fd(s->stream)))
		return -EAGAIN;
	err = wait_levels(s, STREAM_STARTED, BASE_NEVER);
	return err ? err : sock_progress(s);
}

/* --- before the connection --- */

static int mode_set(int fd, const void *value)
{
	static const enum config_transport modes[] = {
		[DDP_MODE_OFF] = CONFIG_USE_TCP,
		[DDP_MODE_ON] = CONFIG_USE_DDP,
		[DDP_MODE_AUTO] = CONFIG_USE_AUTO,
	};
	unsigned int mode;

	memcpy(&mode, value, sizeof(mode));
	return mode < base_array_size(modes) ? sock_set_mode(fd, modes[mode]) : -EINVAL;
}

static int crc_set(struct sock *s, int value)
{
	if (value & ~1)
		return -EINVAL;
	s->opts.no_crc = !value;
	return 0;
}

static int markers_set(struct sock *s, int value)
{
	if (value & ~1)
		return -EINVAL;
	s->opts.markers = value;
	return 0;
}

static int ring_set(struct sock *s, int value)
{
	if (value < RING_MIN || value > RING_MAX)
		return -EINVAL;
	s->opts.ring = (uint32_t)value;
	return 0;
}

static int maps_set(struct sock *s, int value)
{
	if (value < 0 || value > (int)STREAM_SLOTS)
		return -EINVAL;
	s->opts.maps = (uint16_t)value;
	return 0;
}

static int provider_set(struct sock *s, const char *name, socklen_t len)
{
	char text[sizeof(s->opts.provider)] = "";

	if (len >= sizeof(text))
		return -EINVAL;
	memcpy(text, name, len);
	if (text[0] && !rnic_find(text))
		return -ENODEV;
	memcpy(s->opts.provider, text, sizeof(text));
	s->opts.provider_set = true;
	return 0;
}

static long before_set(struct sock *s, int name, const void *value, socklen_t len)
{
	static int (*const set[])(struct sock * s, int value) = {
		[DDP_CRC] = crc_set,
		[DDP_MARKERS] = markers_set,
		[DDP_RING] = ring_set,
		[DDP_MAPS] = maps_set,
	};
	int number;

	if (sock_role(s) != SOCK_NEW && !(name == DDP_MAPS && sock_role(s) == SOCK_LISTENER))
		return -EISCONN;
	if (name == DDP_PROVIDER)
		return provider_set(s, value, len);
	if (len < sizeof(number))
		return -EINVAL;
	memcpy(&number, value, sizeof(number));
	return set[name](s, number);
}

/* --- memory --- */

static long reg_mr(struct sock *s, const void *value, socklen_t len)
{
	struct ddp_reg_mr mr;
	uint32_t stag;
	int err;

	if (len < sizeof(mr))
		return -EINVAL;
	memcpy(&mr, value, sizeof(mr));
	if (mr.reserved)
		return -EINVAL;
	if (user_iov_wild((void *)(uintptr_t)mr.addr, mr.length) ||
	    user_iov_wild((void *)(uintptr_t)mr.stag, sizeof(stag)))
		return -EFAULT;
	err = stream_region_add(s->stream, (void *)(uintptr_t)mr.addr, mr.length, mr.access, &stag);
	if (err)
		return err;
	memcpy((void *)(uintptr_t)mr.stag, &stag, sizeof(stag));
	worker_owing(s);
	return 0;
}

static long dereg_mr(struct sock *s, const void *value, socklen_t len)
{
	uint32_t stag;

	if (len < sizeof(stag))
		return -EINVAL;
	memcpy(&stag, value, sizeof(stag));
	return stream_region_remove(s->stream, stag);
}

static long map(struct sock *s, const void *value, socklen_t len)
{
	struct sock_io_call c = { s, s->stream, 0, 0, 0 };
	struct ddp_map m;
	int err;

	if (len < sizeof(m))
		return -EINVAL;
	memcpy(&m, value, sizeof(m));
	if (user_iov_wild((void *)(uintptr_t)m.addr, m.length))
		return -EFAULT;
	do {
		err = stream_map(c.stream, (void *)(uintptr_t)m.addr, m.length, m.offset);
		if (err != -EAGAIN)
			break;
		err = (int)sock_io_wait(&c, STREAM_WRITABLE);
	} while (!err);
	worker_owing(s);
	return err;
}

static long unmap(struct sock *s, const void *value, socklen_t len)
{
	struct ddp_map m;

	if (len < sizeof(m))
		return -EINVAL;
	memcpy(&m, value, sizeof(m));
	return stream_unmap(s->stream, (void *)(uintptr_t)m.addr, m.length);
}

static long memory_set(struct sock *s, int name, const void *value, socklen_t len)
{
	static long (*const set[])(struct sock * s, const void *value, socklen_t len) = {
		[DDP_REG_MR] = reg_mr,
		[DDP_DEREG_MR] = dereg_mr,
		[DDP_MAP] = map,
		[DDP_UNMAP] = unmap,
	};
	int err;

	if (sock_role(s) != SOCK_STREAM_ON)
		return -ENOTCONN;
	err = ddp_ready(s, 0);
	return err ? err : set[name](s, value, len);
}

/* --- the calls --- */

static long ours_set(struct sock *s, int name, const void *value, socklen_t len)
{
	switch (name) {
	case DDP_CRC:
	case DDP_MARKERS:
	case DDP_PROVIDER:
	case DDP_RING:
	case DDP_MAPS:
		return before_set(s, name, value, len);
	case DDP_REG_MR:
	case DDP_DEREG_MR:
	case DDP_MAP:
	case DDP_UNMAP:
		return memory_set(s, name, value, len);
	default:
		return -ENOPROTOOPT;
	}
}

long ddp_setsockopt(int fd, int name, const void *value, socklen_t len)
{
	struct sock *s;
	long r;

	if (len && user_iov_wild(value, len))
		return -EFAULT;
	if (name == DDP_MODE)
		return len < sizeof(int) ? -EINVAL : mode_set(fd, value);
	s = sock_get(fd);
	r = s ? ours_set(s, name, value, len) : CALL_THEIRS;
	sock_put(s);
	return r;
}

/* As the kernel has it: no more than there is room for, and *@len says how much it was */
static long answer(void *value, socklen_t *len, const void *what, size_t size)
{
	if (user_iov_wild(len, sizeof(*len)) || (*len && user_iov_wild(value, *len)))
		return -EFAULT;
	*len = base_min(*len, (socklen_t)size);
	memcpy(value, what, *len);
	return 0;
}

static long number_get(struct sock *s, const struct ddp_info *info, int name, void *value,
		       socklen_t *len)
{
	bool connected = info->connected;
	int number;

	if (name == DDP_MODE)
		number = (int)info->mode;
	else if (name == DDP_CRC)
		number = connected ? info->crc : !s->opts.no_crc;
	else if (name == DDP_MARKERS)
		number = connected ? info->rx_markers : s->opts.markers;
	else if (name == DDP_MAPS)
		number = s->opts.maps;
	else
		number = (int)(connected ? info->ring : s->opts.ring);
	return answer(value, len, &number, sizeof(number));
}

static long ours_get(struct sock *s, int name, void *value, socklen_t *len)
{
	struct ddp_info info;

	info_get(s, &info);
	switch (name) {
	case DDP_INFO:
		return answer(value, len, &info, sizeof(info));
	case DDP_PROVIDER:
		if (!info.connected)
			memcpy(info.provider, s->opts.provider, sizeof(info.provider));
		return answer(value, len, info.provider, strlen(info.provider) + 1);
	case DDP_MODE:
	case DDP_CRC:
	case DDP_MARKERS:
	case DDP_RING:
	case DDP_MAPS:
		return number_get(s, &info, name, value, len);
	default:
		return -ENOPROTOOPT;
	}
}

long ddp_getsockopt(int fd, int name, void *value, socklen_t *len)
{
	struct sock *s = sock_get(fd);
	struct ddp_info info;
	long r = CALL_THEIRS;

	if (s && sock_role(s) == SOCK_STREAM_ON)
		sock_progress(s);
	if (s && sock_role(s) != SOCK_PLAIN)
		r = ours_get(s, name, value, len);
	else if (name == DDP_INFO && info_plain(fd, &info))
		r = answer(value, len, &info, sizeof(info));
	sock_put(s);
	return r;
}
