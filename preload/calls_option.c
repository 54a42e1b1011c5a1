/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that ask and change what a socket does: options and ioctls.
 *
 * Options stay in the kernel's socket. What would spoil the frames on it is kept, ignored or
 * refused here, and getsockopt() shows what the program set.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/bits.h"
#include "preload/libc.h"
#include "preload/sock.h"

long call_ioctl(int fd, unsigned long request, long arg)
{
	struct sock *s = sock_get(fd);
	long r = 0;

	if (s && sock_role(s) == SOCK_STREAM_ON && request == FIONREAD && !sock_progress(s))
		*(int *)arg = (int)s->stream->ops->readable(s->stream);
	else
		r = libc_try(libc.ioctl(fd, request, arg));
	sock_put(s);
	return r;
}

/* Options of the TCP socket that would spoil the frames on it */
enum option_rule { OPTION_KERNEL, OPTION_KEPT, OPTION_IGNORED, OPTION_REFUSED };

static enum option_rule option_rule(int level, int name)
{
	static const struct {
		int level, name;
		enum option_rule rule;
	} rules[] = {
		{ IPPROTO_TCP, TCP_NODELAY, OPTION_KEPT },
		{ IPPROTO_TCP, TCP_CORK, OPTION_IGNORED },
		{ SOL_SOCKET, SO_RCVLOWAT, OPTION_IGNORED },
		{ IPPROTO_TCP, TCP_ULP, OPTION_REFUSED },
		{ IPPROTO_TCP, TCP_REPAIR, OPTION_REFUSED },
		{ IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, OPTION_REFUSED },
		{ SOL_SOCKET, SO_ATTACH_FILTER, OPTION_REFUSED },
		{ SOL_SOCKET, SO_ATTACH_BPF, OPTION_REFUSED },
	};

	for (unsigned int i = 0; i < base_array_size(rules); i++)
		if (rules[i].level == level && rules[i].name == name)
			return rules[i].rule;
	return OPTION_KERNEL;
}

static long int_answer(void *value, socklen_t *len, int answer)
{
	if (!value || !len)
		return -EFAULT;
	*len = base_min(*len, (socklen_t)sizeof(answer));
	memcpy(value, &answer, *len);
	return 0;
}

/* What the kernel's socket does not know; -ENOMSG: it does */
static long stream_option(struct sock *s, int level, int name, void *value, socklen_t *len)
{
	if (level == SOL_SOCKET && name == SO_ERROR) {
		if (sock_progress(s) == -ENOMSG)
			return -ENOMSG;
		return int_answer(value, len, s->stream->ops->take_error(s->stream));
	}
	if (option_rule(level, name) == OPTION_KEPT)
		return int_answer(value, len, s->nodelay);
	return option_rule(level, name) == OPTION_REFUSED ? -EOPNOTSUPP : -ENOMSG;
}

long call_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct sock *s = sock_get(fd);
	long r = -ENOMSG;

	if (s && sock_role(s) == SOCK_STREAM_ON)
		r = stream_option(s, level, name, value, len);
	sock_put(s);
	return r == -ENOMSG ? libc_try(libc.getsockopt(fd, level, name, value, len)) : r;
}

/*
 * Before there is a stream, the program's wish is only noted: it may stay plain TCP, so the
 * kernel hears it too
 */
static bool option_passes(struct sock *s, int level, int name, const void *value, socklen_t len)
{
	bool stream = sock_role(s) == SOCK_STREAM_ON;
	int on = 0;

	if (option_rule(level, name) == OPTION_KEPT && value && len >= sizeof(on)) {
		memcpy(&on, value, sizeof(on));
		s->nodelay = on != 0;
	}
	return !stream || option_rule(level, name) == OPTION_KERNEL;
}

long call_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct sock *s = sock_get(fd);
	bool passes = !s || option_passes(s, level, name, value, len);
	bool refused = option_rule(level, name) == OPTION_REFUSED;

	sock_put(s);
	if (passes)
		return libc_try(libc.setsockopt(fd, level, name, value, len));
	return refused ? -EOPNOTSUPP : 0;
}
