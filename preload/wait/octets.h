/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_OCTETS_H
#define PRELOAD_OCTETS_H

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "preload/sock/sock.h"
#include "preload/table/libc.h"

/*
 * Octets between a program's buffers and a stream, with the waiting that the socket's options
 * and the call's flags ask for. Every call that moves octets is a form of these.
 */

/* Not a thing of ours, or no longer: the call goes to libc */
#define OCTETS_THEIRS CALL_THEIRS

/*
 * A bit among the MSG_ flags that is none of them: read() and write() and their kin, to which no
 * octets are no question
 */
#define OCTETS_FILE 0x10000000

/* How long a server that speaks first waits for a Request */
uint64_t octets_grace(const struct sock *s);

/* For one that cannot do without: no Request has come by then, and its octets are TCP's */
bool octets_go_plain(struct sock *s);

/* Octets, 0 the end (in), -errno or OCTETS_THEIRS */
long octets_in(struct sock *s, const struct iovec *iov, int n, int flags);
long octets_out(struct sock *s, const struct iovec *iov, int n, int flags);
/*
 * For calls of the same kind: waits for a level as options and flags
 * allow: 0 try again, or the errno to return. What a call that sends says when nobody takes it:
 * SIGPIPE, unless @flags forbid it.
 */
struct octets_call {
	struct sock *sock;
	struct stream *stream; /* connect() may make another, which is not the call's */
	int flags;
	uint64_t deadline; /* 0: it has not waited yet */
	int ends;	   /* what the next wait is to say, unless a look finds something */
};

int octets_wait(struct octets_call *call, unsigned int level);
long octets_broken(int flags);
/* Behind what a call has moved already: is it for the next call to tell? */
bool octets_is_error(long err);
/* The same for a descriptor */
long octets_recv(int fd, const struct iovec *iov, int n, int flags);
long octets_send(int fd, const struct iovec *iov, int n, int flags);

#endif
