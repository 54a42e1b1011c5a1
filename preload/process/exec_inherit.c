/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Streams that the next program inherits.
 *
 * It inherits what is not close-on-exec. A program that loads us finds the state of each by its
 * socket's cookie (preload/process/inherit.c). One that cannot, or may not read the state, is given
 * one end of a local socket at the same numbers, with a relay (preload/process/relay.c) at the
 * other.
 *
 * Everything is undone when the program is not executed: a stream that the program would
 * have adopted was never given away, a relay has not begun, and the stream's own socket comes
 * back to its number.
 *
 * A guest (preload/table/fork_gen.c) has numbers that are in no table: they are found by their
 * sockets' cookies. What it writes down is on its own stack, or in the shared state.
 */
#include "preload/process/exec_inherit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "base/log.h"
#include "preload/process/environment.h"
#include "preload/process/inherit.h"
#include "preload/process/relay.h"
#include "preload/sock/exec_record.h"
#include "preload/sock/number.h"
#include "preload/sock/others.h"
#include "preload/sock/sock.h"
#include "preload/table/fork_gen.h"
#include "preload/table/libc.h"

static bool is_inherited(int fd)
{
	long flags = libc_try(libc.fcntl(fd, F_GETFD, 0));

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

/* --- which they are --- */

/* @fd is open. With a reference, or NULL */
static struct sock *stream_at(int fd, bool guest)
{
	struct sock *s;

	if (!is_inherited(fd))
		return NULL;
	s = guest ? exec_record_find(sock_cookie(fd)) : sock_get_stream(fd);
	/* Somebody may have put another file there behind our back */
	if (s && !guest && !sock_is_behind(s, fd)) {
		sock_put(s);
		s = NULL;
	}
	return s;
}

static void each_number(bool guest, void (*fn)(int fd, void *ctx), void *ctx);

static void count_one(int fd, void *ctx)
{
	struct exec_inherit *h = ctx;
	struct sock *s = stream_at(fd, h->guest);

	h->room += s != NULL;
	sock_put(s);
}

unsigned int exec_inherit_count(void)
{
	struct exec_inherit h = { .guest = fork_gen_is_guest() };

	if (__atomic_load_n(&fdtab_streams, __ATOMIC_RELAXED))
		each_number(h.guest, count_one, &h);
	return h.room;
}

static void look_at(int fd, void *ctx)
{
	struct exec_inherit *h = ctx;
	struct sock *s = h->n < h->room ? stream_at(fd, h->guest) : NULL;

	if (s)
		h->inherited[h->n++] = (struct inherited_fd){
			.fd = fd, .sock = s, .cookie = s->cookie, .local = -1, .far = -1, .back = -1
		};
}

struct each {
	void (*fn)(int fd, void *ctx);
	void *ctx;
};

static void each_entry(int fd, struct fdent *ent, void *ctx)
{
	struct each *each = ctx;

	if (sock_stream_of_entry(ent))
		each->fn(fd, each->ctx);
}

/* A guest's are those that it has; else the table knows */
static void each_number(bool guest, void (*fn)(int fd, void *ctx), void *ctx)
{
	struct each each = { fn, ctx };

	if (guest)
		inherit_each(fn, ctx);
	else
		fdtab_each(each_entry, &each);
}

void exec_inherit_init(struct exec_inherit *h, struct inherited_fd *room, unsigned int n)
{
	*h = (struct exec_inherit){
		.inherited = room, .room = n, .guest = fork_gen_is_guest(), .relay = -1
	};
	if (n)
		each_number(h->guest, look_at, h);
}

/* The same stream by another number, before this one */
static struct inherited_fd *twin(const struct exec_inherit *h, const struct inherited_fd *inherited)
{
	for (struct inherited_fd *t = h->inherited; t < inherited; t++)
		if (t->cookie == inherited->cookie)
			return t;
	return NULL;
}

static void drop(struct exec_inherit *h, struct inherited_fd *inherited)
{
	sock_put(inherited->sock);
	*inherited = h->inherited[--h->n];
}

/* --- ready --- */

/* Start-up may end now, and in plain TCP */
static void settle(struct exec_inherit *h)
{
	for (unsigned int i = 0; !h->guest && i < h->n;) {
		struct sock *s = h->inherited[i].sock;

		sock_progress(s);
		if (sock_role(s) == SOCK_STREAM_ON)
			i++;
		else
			drop(h, &h->inherited[i]);
	}
}

static int share(struct exec_inherit *h, struct inherited_fd *inherited)
{
	exec_record_write(inherited->sock);
	if (h->guest) {
		stream_share(inherited->sock->stream, STREAM_SHARE_SPAWN);
		others_come(inherited->sock);
	}
	inherited->shared = h->guest;
	h->adopts = true;
	return 0;
}

/* The way of @inherited's stream; -EXDEV: there is none */
static int choose(struct exec_inherit *h, struct inherited_fd *inherited, bool loads)
{
	struct stream *stream = inherited->sock->stream;
	int err = stream_hand_over(stream);

	if (err == -EXDEV)
		return err;
	if (!err && loads)
		return share(h, inherited);
	relay_explain(inherited->fd, err, loads);
	return relay_pair(inherited->fd, &inherited->local, &inherited->far);
}

/* One-sided operations are this process's; others may lose sight of a number by accident */
static int refuse(struct exec_inherit *h, struct inherited_fd *inherited)
{
	struct stream *stream = inherited->sock->stream;

	if (inherited->fd > STDERR_FILENO && (h->guest || stream_shared(stream))) {
		base_fd_set_cloexec(inherited->fd, true);
		drop(h, inherited);
		return 0;
	}
	base_err("descriptor %d is a DDP stream with memory of this process's, which a new program "
		 "cannot inherit",
		 inherited->fd);
	return -EOPNOTSUPP;
}

static int choose_all(struct exec_inherit *h, bool loads)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < h->n;) {
		struct inherited_fd *inherited = &h->inherited[i], *other = twin(h, inherited);

		err = other ? 0 : choose(h, inherited, loads);
		if (other)
			inherited->local = other->local;
		if (err == -EXDEV)
			err = refuse(h, inherited);
		else
			i++;
	}
	return err;
}

/* --- relays --- */

/* The relay takes the number as it is in this process, or guest */
static int relay_begin(struct exec_inherit *h)
{
	struct relay_ask *asks = __builtin_alloca((h->n + 1) * sizeof(*asks));
	unsigned int n = 0;

	for (unsigned int i = 0; i < h->n; i++)
		if (h->inherited[i].far >= 0)
			asks[n++] = (struct relay_ask){ h->inherited[i].sock, h->inherited[i].fd,
							h->inherited[i].far };
	return n ? relay_create(asks, n, h->guest ? 0 : (uint32_t)getpid(), &h->relay) : 0;
}

/* Other threads go on with the socket by another number; a guest has no threads, and no table */
static int way_back(struct exec_inherit *h, struct inherited_fd *inherited)
{
	if (inherited->local < 0)
		return 0;
	if (!h->guest)
		return sock_own(inherited->sock);
	inherited->back = base_fd_dup_high(inherited->fd);
	return inherited->back < 0 ? inherited->back : 0;
}

static void spare_all(struct exec_inherit *h, bool on)
{
	for (unsigned int i = 0; !h->guest && i < h->n; i++)
		h->inherited[i].sock->executed = on;
}

/* A guest's exec does not come back, and its parent's socket would live for ever */
static void put_all(struct exec_inherit *h)
{
	for (unsigned int i = 0; h->guest && i < h->n; i++) {
		sock_put(h->inherited[i].sock);
		h->inherited[i].sock = NULL;
	}
}

int exec_inherit_prepare(struct exec_inherit *h, enum loadable to)
{
	int err;

	settle(h);
	err = choose_all(h, to == LOADABLE_YES && environment_library_readable());
	if (!err)
		err = relay_begin(h);
	for (unsigned int i = 0; !err && i < h->n; i++)
		err = way_back(h, &h->inherited[i]);
	if (err) {
		exec_inherit_return(h);
		return err;
	}
	spare_all(h, true);
	put_all(h);
	return 0;
}

/* Threads that are lost with this program hold nothing of what the next one gets */
static void rest_all(struct exec_inherit *h, bool on)
{
	for (unsigned int i = 0; !h->guest && i < h->n; i++)
		if (!twin(h, &h->inherited[i]))
			stream_rest(h->inherited[i].sock->stream, on);
}

void exec_inherit_leave(struct exec_inherit *h)
{
	rest_all(h, true);
	for (unsigned int i = 0; i < h->n; i++)
		if (h->inherited[i].local >= 0)
			syscall(SYS_dup3, h->inherited[i].local, h->inherited[i].fd, 0);
}

/* --- back --- */

/* A socket that the guest's parent has closed meanwhile is nobody's to take back */
static void share_undo(const struct inherited_fd *inherited)
{
	struct sock *s = inherited->shared ? exec_record_find(inherited->cookie) : NULL;

	if (s)
		stream_unshare(s->stream, STREAM_SHARE_SPAWN);
	sock_put(s);
}

static void inherited_fd_return(struct exec_inherit *h, struct inherited_fd *inherited)
{
	int back = h->guest ? inherited->back : stream_fd(inherited->sock->stream);

	if (inherited->local >= 0 && back >= 0 && back != inherited->fd)
		syscall(SYS_dup3, back, inherited->fd, 0);
	share_undo(inherited);
	base_fd_close(inherited->back);
}

void exec_inherit_return(struct exec_inherit *h)
{
	rest_all(h, false);
	spare_all(h, false);
	for (unsigned int i = 0; i < h->n; i++)
		inherited_fd_return(h, &h->inherited[i]);
	for (unsigned int i = 0; i < h->n; i++) {
		if (!twin(h, &h->inherited[i]))
			base_fd_close(h->inherited[i].local);
		base_fd_close(h->inherited[i].far);
	}
	if (h->relay >= 0)
		relay_cancel(h->relay);
	for (unsigned int i = 0; i < h->n; i++)
		sock_put(h->inherited[i].sock);
	h->n = 0;
	h->relay = -1;
}
