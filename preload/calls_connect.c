/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect().
 *
 * In ON it waits for the Reply where the program waits for TCP; where it does not, start-up is
 * part of the connection that is under way. A listener of the same process cannot answer while
 * this thread waits for it: there connect() returns, and writes are held until the answer comes.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/sockutil.h"
#include "preload/attend.h"
#include "preload/choose.h"
#include "preload/epoll.h"
#include "preload/libc.h"
#include "preload/sock.h"
#include "preload/wait.h"

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

/* What the program, or the rules, say of a connection to @addr */
static void connect_choose(struct sock *s, const struct sockaddr *addr, socklen_t len, bool here,
			   struct choice *out)
{
	if (s->fixed)
		*out = (struct choice){ s->mode, CONFIG_REASON_MODE_OFF, false };
	else
		choose_client(addr, len, out);
	if (out->mode == CONFIG_USE_AUTO && !here)
		*out = (struct choice){ CONFIG_USE_TCP, CONFIG_REASON_PEER_UNKNOWN, false };
}

static long connect_new(struct sock *s, const struct sockaddr *addr, socklen_t len)
{
	bool here = len >= sizeof(struct sockaddr_in) && sock_listens_here(addr, len);
	struct choice choice;
	long tcp;

	connect_choose(s, addr, len, here, &choice);
	tcp = libc_try(libc.connect(s->fd, addr, len));
	if (addr->sa_family == AF_UNSPEC || (tcp && tcp != -EINPROGRESS && tcp != -EINTR))
		return tcp;
	if (choice.mode == CONFIG_USE_TCP) {
		sock_give_back(s, choice.reason);
		return tcp;
	}
	s->mode = choice.mode;
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
