/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The streams of the next program, whoever executes it.
 *
 * Until the program runs nothing is given away: a stream that it would have adopted is unshared
 * again, and a relay that has not begun is told to leave.
 */
#include "preload/process/next_program.h"

#include <errno.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "base/log.h"
#include "preload/process/environment.h"
#include "preload/process/relay.h"
#include "preload/sock/exec_record.h"
#include "preload/sock/others.h"
#include "preload/sock/sock.h"

void next_program_init(struct next_program *p, struct next_fd *room, unsigned int n, bool apart)
{
	*p = (struct next_program){ .fd = room, .room = n, .apart = apart, .relay = -1 };
}

struct next_fd *next_program_add(struct next_program *p, int fd, struct sock *s)
{
	struct next_fd *f = p->n < p->room ? &p->fd[p->n++] : NULL;

	if (!f)
		return NULL;
	fdtab_hold(&s->ent);
	*f = (struct next_fd){ .fd = fd,
			       .before = fd,
			       .from = fd,
			       .sock = s,
			       .cookie = s->cookie,
			       .local = -1,
			       .far = -1,
			       .back = -1 };
	return f;
}

void next_program_judge(struct next_program *p, enum loadable to)
{
	p->loads = to == LOADABLE_YES && environment_library_readable();
}

bool next_fd_is_given(const struct next_fd *f)
{
	return f->fd >= 0 && !f->cloexec;
}

/* Where the kernel gives no cookies, only sockets that are held can be compared */
static bool is_same(const struct next_fd *a, const struct next_fd *b)
{
	return a->sock && b->sock ? a->sock == b->sock : a->cookie && a->cookie == b->cookie;
}

struct next_fd *next_fd_twin(const struct next_program *p, const struct next_fd *f)
{
	for (struct next_fd *t = p->fd; t < f; t++)
		if (next_fd_is_given(t) && is_same(t, f))
			return t;
	return NULL;
}

int next_fd_adopt(struct next_program *p, struct next_fd *f)
{
	int err = stream_hand_over(f->sock->stream);

	if (!err && !p->loads)
		err = -EOPNOTSUPP;
	if (err)
		return err;
	exec_record_write(f->sock);
	if (p->apart) {
		stream_share(f->sock->stream, STREAM_SHARE_SPAWN);
		others_come(f->sock);
	}
	f->shared = p->apart;
	p->adopts = true;
	return 0;
}

int next_fd_give(struct next_program *p, struct next_fd *f)
{
	int err = next_fd_adopt(p, f);

	if (!err || err == -EXDEV)
		return err;
	p->relayed = true;
	relay_explain(f->fd, err, p->loads);
	return relay_pair(f->from, &f->local, &f->far);
}

int next_fd_refuse(const struct next_fd *f)
{
	base_err("descriptor %d is a DDP stream with memory of this process's, which a new program "
		 "cannot inherit",
		 f->fd);
	return -EOPNOTSUPP;
}

int next_program_relay(struct next_program *p, uint32_t before)
{
	struct relay_ask *asks = __builtin_alloca((p->n + 1) * sizeof(*asks));
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->n; i++)
		if (p->fd[i].far >= 0)
			asks[n++] =
				(struct relay_ask){ p->fd[i].sock, p->fd[i].from, p->fd[i].far };
	return n ? relay_create(asks, n, before, &p->relay) : 0;
}

/* A socket that the parent of a child of vfork() has closed meanwhile is nobody's to take back */
static void take_back(const struct next_fd *f)
{
	struct sock *found = f->sock ? NULL : exec_record_find(f->cookie);
	struct sock *s = f->sock ? f->sock : found;

	if (s)
		stream_unshare(s->stream, STREAM_SHARE_SPAWN);
	sock_put(found);
}

void next_program_end(struct next_program *p, bool runs)
{
	for (unsigned int i = 0; i < p->n; i++) {
		struct next_fd *f = &p->fd[i];

		if (f->shared && !runs)
			take_back(f);
		if (f->local >= 0 && !next_fd_twin(p, f))
			base_fd_close(f->local);
		base_fd_close(f->far);
		base_fd_close(f->back);
		sock_put(f->sock);
	}
	if (p->relay >= 0 && runs)
		base_fd_close(p->relay);
	else if (p->relay >= 0)
		relay_cancel(p->relay);
	p->n = 0;
	p->relay = -1;
}
