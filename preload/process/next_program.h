/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The streams of the next program: of one that is executed in this process, by a child of vfork(),
 * or started by posix_spawn(). It has each by a number, and goes on with it by adoption, where it
 * can load us and read the state, or else by a local socket with a relay at the other end.
 */
#ifndef PRELOAD_NEXT_PROGRAM_H
#define PRELOAD_NEXT_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/process/loadable.h"

struct sock;

/* A number by which the next program has a stream */
struct next_fd {
	int fd;		   /* -1: not there */
	int before;	   /* this process's number, where file actions begin */
	int from;	   /* the number by which a relay takes the socket */
	struct sock *sock; /* with a reference; NULL: given back already */
	uint64_t cookie;   /* the socket's name */
	bool cloexec;	   /* it goes when the program is executed */
	bool shared;	   /* the stream has been shared for the program's process */
	int local;	   /* what the program gets in its place, by a relay; -1: it adopts */
	int far;	   /* the relay's end of that; -1: none, or another number's */
	int back;	   /* of a child of vfork(): the socket, should nothing be executed; -1 */
};

struct next_program {
	struct next_fd *fd; /* memory of the caller's: a child of vfork() has none of its own */
	unsigned int n, room;
	bool apart;  /* it is in a process of its own: streams are shared with that */
	bool loads;  /* it can load us */
	bool adopts; /* it needs us in it */
	bool relayed;
	int relay; /* the word to the relay that it need not begin; -1: none */
};

/* @room: of @n numbers */
void next_program_init(struct next_program *p, struct next_fd *room, unsigned int n, bool apart);
/* Does the program get it? */
bool next_fd_is_given(const struct next_fd *f);
/* With a reference to @s of its own. NULL: there is no room */
struct next_fd *next_program_add(struct next_program *p, int fd, struct sock *s);
/* @to: what is known of the program */
void next_program_judge(struct next_program *p, enum loadable to);
/* The same stream by another number that the program has, before this one; NULL: there is none */
struct next_fd *next_fd_twin(const struct next_program *p, const struct next_fd *f);
/* By adoption, if the program can: -errno */
int next_fd_adopt(struct next_program *p, struct next_fd *f);
/* By that or by a relay. -EXDEV: neither, for it has memory of this process's */
int next_fd_give(struct next_program *p, struct next_fd *f);
/* What to say, and to return, of one that must not be lost */
int next_fd_refuse(const struct next_fd *f);
/*
 * The relay of all that have one, which takes them from the process @before (0: shares them with
 * it): -errno
 */
int next_program_relay(struct next_program *p, uint32_t before);
/* It has not been executed, or has been started by another process: what @p has here goes */
void next_program_end(struct next_program *p, bool runs);

#endif
