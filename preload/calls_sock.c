/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that make, name, change and end sockets.
 *
 * accept() gives what the kernel gives and never waits for a Request. connect() in ON waits for
 * the Reply where the program waits for TCP; where it does not, start-up is part of the
 * connection that is under way. A listener of the same process cannot answer while this thread
 * waits for it: there connect() returns, and writes are held until the answer comes.
 *
 * A descriptor of a stream cannot be duplicated yet: EOPNOTSUPP.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "preload/attend.h"
#include "preload/epoll.h"
#include "preload/libc.h"
#include "preload/report.h"
#include "preload/sock.h"
#include "preload/wait.h"

/* --- making --- */

static bool is_wanted(int domain, int type, int protocol)
{
	if (!sock_config.all || sock_config.mode == CONFIG_OFF)
		return false;
	return (domain == AF_INET || domain == AF_INET6) &&
	       (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

long call_socket(int domain, int type, int protocol)
{
	long fd = libc_try(libc.socket(domain, type, protocol));
	int err;

	if (fd < 0 || !is_wanted(domain, type, protocol))
		return fd;
	err = sock_create((int)fd, sock_config.mode);
	if (err)
		base_warn("descriptor %ld stays on TCP: %s", fd, strerror(-err));
	return fd;
}

static void listening(struct sock *s)
{
	socklen_t len = sizeof(s->name);

	if (sock_role(s) != SOCK_NEW || getsockname(s->fd, (struct sockaddr *)&s->name, &len))
		return;
	__atomic_store_n(&s->role, SOCK_LISTENER, __ATOMIC_RELEASE);
	epoll_give_back(s);
}

long call_listen(int fd, int backlog)
{
	struct sock *s = sock_get(fd);
	long err = libc_try(libc.listen(fd, backlog));

	if (!err && s)
		listening(s);
	sock_put(s);
	return err;
}

/* A connection that the kernel gave us */
static long accepted(struct sock *listener, long fd)
{
	int err;

	if (fd < 0 || !listener || sock_role(listener) != SOCK_LISTENER)
		return fd;
	err = sock_create_accepted((int)fd, listener);
	if (!err)
		return fd;
	base_err("a connection cannot be served: %s", strerror(-err));
	base_sock_abort((int)fd);
	libc.close((int)fd);
	return -ECONNABORTED;
}

long call_accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct sock *s = sock_get(fd);
	long got = accepted(s, libc_try(libc.accept(fd, addr, len)));

	sock_put(s);
	return got;
}

long call_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct sock *s = sock_get(fd);
	long got = accepted(s, libc_try(libc.accept4(fd, addr, len, flags)));

	sock_put(s);
	return got;
}

/* --- connecting --- */

static long start_failed(struct sock *s, int err)
{
	int told = s->stream->ops->take_error(s->stream);

	sock_forget_stream(s);
	return told ? -told : err;
}

/* Waits for the Reply, which has a time limit of its own */
static long start_wait(struct sock *s)
{
	int err = wait_levels(s, STREAM_WRITABLE, BASE_NEVER), state;

	if (err == -EINTR)
		return err; /* and goes on, as TCP's connect() does */
	state = sock_progress(s);
	return state ? start_failed(s, state) : 0;
}

/* TCP is connected, or goes on to be (-EINPROGRESS, -EINTR) */
static long connected(struct sock *s, long tcp, bool here)
{
	bool wait = !tcp && !here;
	int err = sock_connect(s, tcp != 0, here);

	if (err) {
		base_sock_abort(s->fd);
		return err;
	}
	epoll_rearm(s);
	if (wait)
		return start_wait(s);
	if (!tcp)
		attend_starting(s);
	else
		sock_progress(s);
	return tcp;
}

static long connect_new(struct sock *s, const struct sockaddr *addr, socklen_t len)
{
	bool here = len >= sizeof(struct sockaddr_in) && sock_listens_here(addr, len);
	long tcp;

	if (s->mode != CONFIG_ON && addr->sa_family != AF_UNSPEC && !here)
		sock_give_back(s, "peer-unknown");
	tcp = libc_try(libc.connect(s->fd, addr, len));
	if (sock_role(s) == SOCK_PLAIN || addr->sa_family == AF_UNSPEC)
		return tcp;
	if (tcp && tcp != -EINPROGRESS && tcp != -EINTR)
		return tcp;
	return connected(s, tcp, here);
}

/*
 * Asked again about a connection that is under way: the kernel's answer counts when start-up is
 * over too
 */
static long connect_again(struct sock *s, const struct sockaddr *addr, socklen_t len)
{
	int state = sock_progress(s);

	if (state == -EAGAIN)
		return -EALREADY;
	if (state && state != -ENOMSG)
		return start_failed(s, state);
	return libc_try(libc.connect(s->fd, addr, len));
}

long call_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sock *s = sock_get(fd);
	enum sock_role role = s ? sock_role(s) : SOCK_PLAIN;
	long r;

	if (role == SOCK_NEW && addr && len >= sizeof(addr->sa_family))
		r = connect_new(s, addr, len);
	else if (role == SOCK_STREAM_ON && addr)
		r = connect_again(s, addr, len);
	else
		r = libc_try(libc.connect(fd, addr, len));
	sock_put(s);
	return r;
}

/* --- ending --- */

static long stream_shutdown(struct sock *s, int how)
{
	long r = s->stream->ops->shutdown(s->stream, how);

	attend_owing(s);
	return r;
}

long call_shutdown(int fd, int how)
{
	struct sock *s = sock_get(fd);
	long r;

	if (s && sock_role(s) == SOCK_STREAM_ON && sock_progress(s) == 0)
		r = stream_shutdown(s, how);
	else
		r = libc_try(libc.shutdown(fd, how));
	sock_put(s);
	return r;
}

/* The number becomes free only when the connection has left it */
static long stream_close(struct sock *s, int fd)
{
	struct stream *stream = s->stream;
	int high;

	if (stream->ops->close(stream) != -EAGAIN) {
		stream->ops->set_fd(stream, -1);
		return libc_try(libc.close(fd));
	}
	high = base_fd_dup_high(fd);
	if (high < 0) {
		base_warn("no descriptor to finish a connection with: %s", strerror(-high));
		stream->ops->set_fd(stream, -1);
		return libc_try(libc.close(fd));
	}
	stream->ops->set_fd(stream, high);
	fdtab_hold(&s->ent);
	attend_closed(s);
	return libc_try(libc.close(fd));
}

static long sock_close(struct sock *s, int fd)
{
	long r;

	epoll_forget(s);
	r = sock_role(s) == SOCK_STREAM_ON ? stream_close(s, fd) : libc_try(libc.close(fd));
	sock_put(s);
	return r;
}

long call_close(int fd)
{
	struct fdent *ent = fdtab_take(fd, NULL);

	if (!ent)
		return libc_try(libc.close(fd));
	if (ent->kind == FD_SOCK)
		return sock_close((struct sock *)(void *)ent, fd);
	epoll_set_close((struct epset *)(void *)ent);
	fdtab_put(ent);
	return libc_try(libc.close(fd));
}

/* --- duplicating --- */

long call_dup(int fd)
{
	return -EOPNOTSUPP;
}

/* What stands at @to is closed as close() would, so that its peer hears of it */
static void make_way(int fd, int to)
{
	if (fd != to && fdtab_is_ours(to) && base_fd_is_open(fd))
		call_close(to);
}

long call_dup2(int fd, int to)
{
	if (fdtab_is_ours(fd))
		return fd == to ? to : -EOPNOTSUPP;
	make_way(fd, to);
	return libc_try(libc.dup2(fd, to));
}

long call_dup3(int fd, int to, int flags)
{
	if (fdtab_is_ours(fd))
		return fd == to ? -EINVAL : -EOPNOTSUPP;
	make_way(fd, to);
	return libc_try(libc.dup3(fd, to, flags));
}

/* --- options --- */

long call_fcntl(int fd, int cmd, long arg)
{
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
		return -EOPNOTSUPP;
	return libc_try(libc.fcntl(fd, cmd, arg));
}

long call_fcntl64(int fd, int cmd, long arg)
{
	return call_fcntl(fd, cmd, arg);
}

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
		sock_progress(s);
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
