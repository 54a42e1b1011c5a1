/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_SOCK_IO_H
#define PRELOAD_SOCK_IO_H

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
#define SOCK_IO_THEIRS CALL_THEIRS

/*
 * A bit among the MSG_ flags that is none of them: read() and write() and their kin, to which no
 * bytes are no question
 */
#define SOCK_IO_FILE 0x10000000

/* For one that cannot do without: no Request has come by then, and its octets are TCP's */
bool sock_io_go_plain(struct sock *s);

/* Octets, 0 the end (in), -errno or SOCK_IO_THEIRS */
long sock_recv(struct sock *s, const struct iovec *iov, int n, int flags);
long sock_send(struct sock *s, const struct iovec *iov, int n, int flags);
/*
 * For calls of the same kind: waits for a level as options and flags
 * allow: 0 try again, or the errno to return. What a call that sends says when nobody takes it:
 * SIGPIPE, unless @flags forbid it.
 */
struct sock_io_call {
	struct sock *sock;
	struct stream *stream; /* connect() may make another, which is not the call's */
	int flags;
	uint64_t deadline; /* 0: it has not waited yet */
	int ends;	   /* what the next wait is to say, unless a look finds something */
};

int sock_io_wait(struct sock_io_call *call, unsigned int level);
long sock_io_broken(int flags);
/* Behind what a call has moved already: is it for the next call to tell? */
bool sock_io_is_error(long err);
/* The same for a descriptor */
long sock_recv_fd(int fd, const struct iovec *iov, int n, int flags);
long sock_send_fd(int fd, const struct iovec *iov, int n, int flags);

#endif
