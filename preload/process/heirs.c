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
 * A guest (preload/table/life.c) has numbers that are in no table: they are found by their sockets'
 * cookies. What it writes down is on its own stack, or in the shared state.
 */
#include "preload/process/heirs.h"

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
#include "preload/sock/kept.h"
#include "preload/sock/others.h"
#include "preload/table/libc.h"
#include "preload/table/life.h"

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
	s = guest ? kept_find(sock_cookie(fd)) : sock_get_stream(fd);
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
	struct heirs *h = ctx;
	struct sock *s = stream_at(fd, h->guest);

	h->room += s != NULL;
	sock_put(s);
}

unsigned int heirs_count(void)
{
	struct heirs h = { .guest = life_is_guest() };

	if (__atomic_load_n(&fdtab_streams, __ATOMIC_RELAXED))
		each_number(h.guest, count_one, &h);
	return h.room;
}

static void look_at(int fd, void *ctx)
{
	struct heirs *h = ctx;
	struct sock *s = h->n < h->room ? stream_at(fd, h->guest) : NULL;

	if (s)
		h->heir[h->n++] = (struct heir){
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

void heirs_init(struct heirs *h, struct heir *room, unsigned int n)
{
	*h = (struct heirs){ .heir = room, .room = n, .guest = life_is_guest(), .relay = -1 };
	if (n)
		each_number(h->guest, look_at, h);
}

/* The same stream by another number, before this one */
static struct heir *twin(const struct heirs *h, const struct heir *heir)
{
	for (struct heir *t = h->heir; t < heir; t++)
		if (t->cookie == heir->cookie)
			return t;
	return NULL;
}

static void drop(struct heirs *h, struct heir *heir)
{
	sock_put(heir->sock);
	*heir = h->heir[--h->n];
}

/* --- ready --- */

/* Start-up may end now, and in plain TCP */
static void settle(struct heirs *h)
{
	for (unsigned int i = 0; !h->guest && i < h->n;) {
		struct sock *s = h->heir[i].sock;

		sock_progress(s);
		if (sock_role(s) == SOCK_STREAM_ON)
			i++;
		else
			drop(h, &h->heir[i]);
	}
}

static int share(struct heirs *h, struct heir *heir)
{
	kept_write(heir->sock);
	if (h->guest) {
		heir->sock->stream->ops->share(heir->sock->stream, STREAM_SHARE_SPAWN);
		others_come(heir->sock);
	}
	heir->shared = h->guest;
	h->adopts = true;
	return 0;
}

/* The way of @heir's stream; -EXDEV: there is none */
static int choose(struct heirs *h, struct heir *heir, bool loads)
{
	struct stream *stream = heir->sock->stream;
	int err = stream->ops->hand_over(stream);

	if (err == -EXDEV)
		return err;
	if (!err && loads)
		return share(h, heir);
	relay_explain(heir->fd, err, loads);
	return relay_pair(heir->fd, &heir->local, &heir->far);
}

/* One-sided operations are this process's; others may lose sight of a number by accident */
static int refuse(struct heirs *h, struct heir *heir)
{
	struct stream *stream = heir->sock->stream;

	if (heir->fd > STDERR_FILENO && (h->guest || stream->ops->shared(stream))) {
		base_fd_set_cloexec(heir->fd, true);
		drop(h, heir);
		return 0;
	}
	base_err("descriptor %d is a DDP stream with memory of this process's, which a new program "
		 "cannot inherit",
		 heir->fd);
	return -EOPNOTSUPP;
}

static int choose_all(struct heirs *h, bool loads)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < h->n;) {
		struct heir *heir = &h->heir[i], *other = twin(h, heir);

		err = other ? 0 : choose(h, heir, loads);
		if (other)
			heir->local = other->local;
		if (err == -EXDEV)
			err = refuse(h, heir);
		else
			i++;
	}
	return err;
}

/* --- relays --- */

/* The relay takes the number as it is in this process, or guest */
static int relay_begin(struct heirs *h)
{
	struct relay_ask *asks = __builtin_alloca((h->n + 1) * sizeof(*asks));
	unsigned int n = 0;

	for (unsigned int i = 0; i < h->n; i++)
		if (h->heir[i].far >= 0)
			asks[n++] = (struct relay_ask){ h->heir[i].sock, h->heir[i].fd,
							h->heir[i].far };
	return n ? relay_create(asks, n, h->guest ? 0 : (uint32_t)getpid(), &h->relay) : 0;
}

/* Other threads go on with the socket by another number; a guest has no threads, and no table */
static int way_back(struct heirs *h, struct heir *heir)
{
	if (heir->local < 0)
		return 0;
	if (!h->guest)
		return sock_own(heir->sock);
	heir->back = base_fd_dup_high(heir->fd);
	return heir->back < 0 ? heir->back : 0;
}

static void spare_all(struct heirs *h, bool on)
{
	for (unsigned int i = 0; !h->guest && i < h->n; i++)
		h->heir[i].sock->heir = on;
}

/* A guest's exec does not come back, and its parent's socket would live for ever */
static void put_all(struct heirs *h)
{
	for (unsigned int i = 0; h->guest && i < h->n; i++) {
		sock_put(h->heir[i].sock);
		h->heir[i].sock = NULL;
	}
}

int heirs_prepare(struct heirs *h, enum loadable to)
{
	int err;

	settle(h);
	err = choose_all(h, to == LOADABLE_YES && environment_library_readable());
	if (!err)
		err = relay_begin(h);
	for (unsigned int i = 0; !err && i < h->n; i++)
		err = way_back(h, &h->heir[i]);
	if (err) {
		heirs_return(h);
		return err;
	}
	spare_all(h, true);
	put_all(h);
	return 0;
}

/* Threads that are lost with this program hold nothing of what the next one gets */
static void rest_all(struct heirs *h, bool on)
{
	for (unsigned int i = 0; !h->guest && i < h->n; i++)
		if (!twin(h, &h->heir[i]))
			h->heir[i].sock->stream->ops->rest(h->heir[i].sock->stream, on);
}

void heirs_leave(struct heirs *h)
{
	rest_all(h, true);
	for (unsigned int i = 0; i < h->n; i++)
		if (h->heir[i].local >= 0)
			syscall(SYS_dup3, h->heir[i].local, h->heir[i].fd, 0);
}

/* --- back --- */

/* A socket that the guest's parent has closed meanwhile is nobody's to take back */
static void share_undo(const struct heir *heir)
{
	struct sock *s = heir->shared ? kept_find(heir->cookie) : NULL;

	if (s)
		s->stream->ops->unshare(s->stream, STREAM_SHARE_SPAWN);
	sock_put(s);
}

static void heir_return(struct heirs *h, struct heir *heir)
{
	int back = h->guest ? heir->back : stream_fd(heir->sock->stream);

	if (heir->local >= 0 && back >= 0 && back != heir->fd)
		syscall(SYS_dup3, back, heir->fd, 0);
	share_undo(heir);
	base_fd_close(heir->back);
}

void heirs_return(struct heirs *h)
{
	rest_all(h, false);
	spare_all(h, false);
	for (unsigned int i = 0; i < h->n; i++)
		heir_return(h, &h->heir[i]);
	for (unsigned int i = 0; i < h->n; i++) {
		if (!twin(h, &h->heir[i]))
			base_fd_close(h->heir[i].local);
		base_fd_close(h->heir[i].far);
	}
	if (h->relay >= 0)
		relay_cancel(h->relay);
	for (unsigned int i = 0; i < h->n; i++)
		sock_put(h->heir[i].sock);
	h->n = 0;
	h->relay = -1;
}
