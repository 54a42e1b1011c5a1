/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stream: an RDMA connection of a provider's stream front, a state that holds all there is of it,
 * and the calls of a stream socket over it. How it comes, goes, and is handed on.
 */
#include "stream/life/life.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/process.h"
#include "base/sockutil.h"

/* The program's SO_RCVLOWAT is ours from now on, and the socket is to wake for each byte */
static void options_take(struct stream *s)
{
	int lowat = base_sock_lowat(stream_fd(s));
	int in_line = base_sock_number(stream_fd(s), SOL_SOCKET, SO_OOBINLINE);

	s->state->urgent.in_line = in_line > 0;

	s->state->lowat = (uint32_t)base_max(1, base_min(lowat, (int)stream_half(s)));
	if (lowat != 1)
		base_sock_set_lowat(stream_fd(s), 1);
}

int stream_attach(int fd, const struct stream_param *param, struct stream **out)
{
	struct stream *s;
	int err = stream_memory_create(fd, param, &s);

	if (err)
		return err;
	stream_again_init(s, param);
	options_take(s);
	*out = s;
	return 0;
}

int stream_adopt(int fd, const struct stream_param *param, struct stream **out)
{
	struct stream *s;
	int err = stream_memory_adopt(fd, param, &s);

	if (err)
		return err;
	stream_start_join(s);
	*out = s;
	return 0;
}

int stream_hand_over(struct stream *s)
{
	if (base_load(&s->state->owner) || stream_jobs_count(s))
		return -EXDEV;
	/* One that is over would take the name of its socket's next connection */
	if (!s->is_file || base_load(&s->state->closer))
		return -EOPNOTSUPP;
	if (s->slab->place.user != (uid_t)syscall(SYS_geteuid))
		return -EACCES;
	return stream_slab_publish(s);
}

void *stream_exec_record(struct stream *s)
{
	return s->state->exec_record;
}

void stream_disown(struct stream *s)
{
	stream_slab_share(s);
	s->disowned = true;
	base_store(&s->last, false);
}

/* Nobody comes to its cell by another socket: this one is not closed before all is done */
int stream_linger_handoff(struct stream *s, bool on)
{
	uint32_t self = base_process_self().pid;
	int err;

	if (!on) {
		base_store(&s->state->closer, self);
		stream_slab_unpublish(s);
		return 0;
	}
	if (!stream_is_open(s) || !s->is_file || base_load(&s->state->owner) ||
	    s->slab->place.user != (uid_t)syscall(SYS_geteuid))
		return -EOPNOTSUPP;
	base_store(&s->state->closer, 0);
	err = stream_slab_publish(s);
	if (err)
		base_store(&s->state->closer, self);
	return err;
}

void stream_share(struct stream *s, enum stream_share how)
{
	stream_slab_share(s);
	stream_holder_expect(s, how);
}

/* Whoever is in a call on it comes back yet, and destroys it then */
void stream_leave(struct stream *s)
{
	if (stream_memory_leave(s))
		base_store(&s->last, true);
}

void stream_destroy(struct stream *s)
{
	bool last;

	if (!s)
		return;
	last = stream_memory_leave(s) || base_load(&s->last);
	stream_start_leave(s);
	stream_onesided_uninit(s);
	stream_maps_uninit(s);
	if (s->mem.native)
		s->rnic->native->destroy(s->mem.native);
	stream_memory_destroy(s, last);
}
