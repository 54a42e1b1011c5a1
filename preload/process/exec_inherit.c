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
#include "preload/process/inherit.h"
#include "preload/sock/exec_record.h"
#include "preload/sock/number.h"
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

	h->next.room += s != NULL;
	sock_put(s);
}

unsigned int exec_inherit_count(void)
{
	struct exec_inherit h = { .guest = fork_gen_is_guest() };

	if (__atomic_load_n(&fdtab_streams, __ATOMIC_RELAXED))
		each_number(h.guest, count_one, &h);
	return h.next.room;
}

static void look_at(int fd, void *ctx)
{
	struct exec_inherit *h = ctx;
	struct sock *s = h->next.n < h->next.room ? stream_at(fd, h->guest) : NULL;

	if (s)
		next_program_add(&h->next, fd, s);
	sock_put(s);
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

void exec_inherit_init(struct exec_inherit *h, struct next_fd *room, unsigned int n)
{
	h->guest = fork_gen_is_guest();
	next_program_init(&h->next, room, n, h->guest);
	if (n)
		each_number(h->guest, look_at, h);
}

static void drop(struct exec_inherit *h, struct next_fd *f)
{
	sock_put(f->sock);
	*f = h->next.fd[--h->next.n];
}

/* --- ready --- */

/* Start-up may end now, and in plain TCP */
static void settle(struct exec_inherit *h)
{
	for (unsigned int i = 0; !h->guest && i < h->next.n;) {
		struct sock *s = h->next.fd[i].sock;

		sock_progress(s);
		if (sock_role(s) == SOCK_STREAM_ON)
			i++;
		else
			drop(h, &h->next.fd[i]);
	}
}

/* One-sided operations are this process's; others may lose sight of a number by accident */
static int refuse(struct exec_inherit *h, struct next_fd *f)
{
	struct stream *stream = f->sock->stream;

	if (f->fd > STDERR_FILENO && (h->guest || stream_shared(stream))) {
		base_fd_set_cloexec(f->fd, true);
		drop(h, f);
		return 0;
	}
	return next_fd_refuse(f);
}

static int give_all(struct exec_inherit *h)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < h->next.n;) {
		struct next_fd *f = &h->next.fd[i], *other = next_fd_twin(&h->next, f);

		err = other ? 0 : next_fd_give(&h->next, f);
		if (other)
			f->local = other->local;
		if (err == -EXDEV)
			err = refuse(h, f);
		else
			i++;
	}
	return err;
}

/* --- relays --- */

/* Other threads go on with the socket by another number; a guest has no threads, and no table */
static int way_back(struct exec_inherit *h, struct next_fd *f)
{
	if (f->local < 0)
		return 0;
	if (!h->guest)
		return sock_own(f->sock);
	f->back = base_fd_dup_high(f->fd);
	return f->back < 0 ? f->back : 0;
}

static void spare_all(struct exec_inherit *h, bool on)
{
	for (unsigned int i = 0; !h->guest && i < h->next.n; i++)
		h->next.fd[i].sock->executed = on;
}

/* A guest's exec does not come back, and its parent's socket would live for ever */
static void put_all(struct exec_inherit *h)
{
	for (unsigned int i = 0; h->guest && i < h->next.n; i++) {
		sock_put(h->next.fd[i].sock);
		h->next.fd[i].sock = NULL;
	}
}

int exec_inherit_prepare(struct exec_inherit *h, enum loadable to)
{
	int err;

	settle(h);
	next_program_judge(&h->next, to);
	err = give_all(h);
	if (!err)
		err = next_program_relay(&h->next, h->guest ? 0 : (uint32_t)getpid());
	for (unsigned int i = 0; !err && i < h->next.n; i++)
		err = way_back(h, &h->next.fd[i]);
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
	for (unsigned int i = 0; !h->guest && i < h->next.n; i++)
		if (!next_fd_twin(&h->next, &h->next.fd[i]))
			stream_rest(h->next.fd[i].sock->stream, on);
}

void exec_inherit_leave(struct exec_inherit *h)
{
	rest_all(h, true);
	for (unsigned int i = 0; i < h->next.n; i++)
		if (h->next.fd[i].local >= 0)
			syscall(SYS_dup3, h->next.fd[i].local, h->next.fd[i].fd, 0);
}

/* --- back --- */

static void number_return(struct exec_inherit *h, struct next_fd *f)
{
	int back = h->guest ? f->back : stream_fd(f->sock->stream);

	if (f->local >= 0 && back >= 0 && back != f->fd)
		syscall(SYS_dup3, back, f->fd, 0);
}

void exec_inherit_return(struct exec_inherit *h)
{
	rest_all(h, false);
	spare_all(h, false);
	for (unsigned int i = 0; i < h->next.n; i++)
		number_return(h, &h->next.fd[i]);
	next_program_end(&h->next, false);
}
