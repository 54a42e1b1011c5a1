/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A socket of the program that is ours: a TCP socket of the kernel's and, once it is connected,
 * a stream over it.
 */
#ifndef PRELOAD_SOCK_H
#define PRELOAD_SOCK_H

#include "preload/sock/sock_type.h"

/* After the kernel has set what waits go by, or others may have had it set */
static inline void sock_waits_changed(struct sock *s)
{
	__atomic_add_fetch(&s->changes, 1, __ATOMIC_SEQ_CST);
}

static inline enum sock_role sock_role(const struct sock *s)
{
	return (enum sock_role)__atomic_load_n(&s->role, __ATOMIC_ACQUIRE);
}

static inline enum sock_number sock_number(const struct sock *s)
{
	return (enum sock_number)__atomic_load_n(&s->number, __ATOMIC_ACQUIRE);
}

static inline bool sock_in_work_list(const struct sock *s)
{
	return __atomic_load_n(&s->work.listed, __ATOMIC_ACQUIRE);
}

static inline const struct sock_ops *sock_ops(const struct sock *s)
{
	return (const struct sock_ops *)(const void *)s->ent.ops;
}

static inline bool sock_role_set(struct sock *s, enum sock_role role)
{
	return sock_state_move(&sock_role_moves, &s->role, role);
}

static inline enum sock_start sock_start(const struct sock *s)
{
	return (enum sock_start)__atomic_load_n(&s->start, __ATOMIC_ACQUIRE);
}

static inline bool sock_start_set(struct sock *s, enum sock_start start)
{
	return sock_state_move(&sock_start_moves, &s->start, start);
}

static inline enum sock_tenure sock_tenure(const struct sock *s)
{
	return (enum sock_tenure)__atomic_load_n(&s->tenure, __ATOMIC_ACQUIRE);
}

static inline bool sock_tenure_set(struct sock *s, enum sock_tenure tenure)
{
	return sock_state_move(&sock_tenure_moves, &s->tenure, tenure);
}

/* Has it a stream, and a device carries that? */
static inline bool sock_on_device(const struct sock *s)
{
	return sock_role(s) == SOCK_STREAM_ON && s->stream->carrier >= 0;
}

/* What a set's shadow knows it by */
static inline int sock_wait_fd(const struct sock *s)
{
	return sock_on_device(s) ? s->stream->carrier : __atomic_load_n(&s->fd, __ATOMIC_SEQ_CST);
}

/* NULL: it is something else */
static inline struct sock *sock_of_entry(struct fdent *ent)
{
	return ent && ent->kind == FD_SOCK ? (struct sock *)(void *)ent : NULL;
}

static inline struct stream *sock_stream_of_entry(struct fdent *ent)
{
	struct sock *s = sock_of_entry(ent);

	return s && sock_role(s) == SOCK_STREAM_ON ? s->stream : NULL;
}

static inline void sock_put(struct sock *s)
{
	if (s)
		fdtab_put(&s->ent);
}

/* The socket behind a descriptor, with a reference; NULL: none of ours */
static inline struct sock *sock_get(int fd)
{
	struct sock *s = sock_of_entry(fdtab_get(fd, FD_SOCK));

	if (s && sock_tenure(s) == SOCK_NEW_ELSEWHERE)
		sock_ops(s)->catch_up(s, fd);
	return s;
}

/* The same of one that has a stream */
static inline struct sock *sock_get_stream(int fd)
{
	struct sock *s = sock_get(fd);

	if (s && sock_role(s) == SOCK_STREAM_ON)
		return s;
	sock_put(s);
	return NULL;
}

/* Has connect() not taken away @stream, that it had, or made another? */
static inline bool sock_has(const struct sock *s, const struct stream *stream)
{
	return __atomic_load_n(&s->stream, __ATOMIC_ACQUIRE) == stream && sock_role(s) != SOCK_NEW;
}

/* Each enters a new socket into the table. @native: of a device, taken over in any case; or NULL */
int sock_create(int fd);
int sock_create_accepted(int fd, const struct sock *listener, enum config_transport mode,
			 struct rnic_native *native);
/* One that other processes have made, and for the table: as stream_adopt() */
int sock_create_adopted(int fd, struct sock **out);
/*
 * The program's own wish for a socket that is neither connected nor a listener yet; it goes before
 * the rules. -ENOPROTOOPT: no TCP socket, -EISCONN: too late
 */
int sock_set_mode(int fd, enum config_transport mode);
/* As stream_progress(); a peer without DDP makes the socket plain (-ENOMSG) */
int sock_progress(struct sock *s);
void sock_progressed(struct sock *s, int err); /* by who has asked the stream itself */

/* In who forked, and in the child: another one may connect what is new */
void sock_after_fork(void);

#endif
