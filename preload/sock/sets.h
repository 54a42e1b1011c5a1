/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_SETS_H
#define PRELOAD_SETS_H

struct sock;

/*
 * Sets of sockets (epoll's) stand above sockets, and hear of them by this: each of these is called
 * with no lock of the socket's, and means all sets that it is in.
 */
struct sets_ops {
	/* It is worked on by another descriptor: sets are to know it by that one */
	void (*rekey)(struct sock *s);
	/* Its last number goes: it is in none any more */
	void (*forget)(struct sock *s);
	/* It becomes the kernel's: its registrations too */
	void (*give_back)(struct sock *s);
	/*
	 * How many registrations it has, each of which has a reference. None of them looks any more
	 * at a stream that it had before the call. Not for a caller that a set has called
	 */
	unsigned int (*pass)(struct sock *s);
	/* It was the kernel's, and is ours: the registrations that it has by this number too */
	void (*take)(struct sock *s, int fd);
};

/* At the start: what is called */
void sets_begin(const struct sets_ops *ops);
/* There is a set: from now on it is */
void sets_made(void);

void sets_rekey(struct sock *s);
void sets_forget(struct sock *s);
void sets_give_back(struct sock *s);
unsigned int sets_pass(struct sock *s);
void sets_take(struct sock *s, int fd);

#endif
