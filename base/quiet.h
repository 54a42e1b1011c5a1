/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_QUIET_H
#define BASE_QUIET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/*
 * Octets to a socket where sendmsg(), and so MSG_NOSIGNAL, is not to be had: by write(), which
 * raises SIGPIPE when the peer has gone. What it takes to be quiet is made beforehand.
 */

/* Two descriptors for base_quiet_init(); -errno */
int base_quiet_create(int *taker, int *broken);
/*
 * @taker gives what the kernel has raised; to write to @broken raises SIGPIPE. Either may be
 * negative: none.
 */
void base_quiet_init(int taker, int broken);

/*
 * As writev() to a non-blocking descriptor, by one write() for each @BASE_QUIET_MAX octets, and
 * without a signal: octets taken, or -errno
 */
#define BASE_QUIET_MAX 4096
long base_quiet_write(int fd, const struct iovec *iov, unsigned int n);

/*
 * Around a write() that may raise SIGPIPE or, by a limit for files, SIGXFSZ. False: nothing is
 * to be ended. @raised: it failed with EPIPE or EFBIG
 */
struct base_quiet {
	uint64_t before;
	bool waited;
};
bool base_quiet_begin(struct base_quiet *q);
void base_quiet_end(const struct base_quiet *q, bool raised);

/* Raises SIGPIPE in the calling thread */
void base_quiet_raise(void);

#endif
