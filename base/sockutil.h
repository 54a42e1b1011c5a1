/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_SOCKUTIL_H
#define BASE_SOCKUTIL_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

/*
 * Questions to and orders for a TCP socket, by raw system calls as in base/fdutil.h. errno
 * stays as it was.
 */

/*
 * As the kernel's ppoll(), which takes the time from @limit when it begins: how many, or -errno.
 * Where a sandbox has only poll(), it may come back with nothing BASE_POLL_SLICE_MS later
 */
#define BASE_POLL_SLICE_MS 20
int base_ppoll(struct pollfd *fds, unsigned int n, struct timespec *limit, const sigset_t *mask);
/*
 * Sleeps until @deadline (base/clock.h; 0: not at all). How many are ready, 0 in time out of
 * luck, or -EINTR. More descriptors than there may be it looks at as base_select() does
 */
int base_poll(struct pollfd *fds, unsigned int n, uint64_t deadline);
/* The same for who has no use for a number: 0, -ETIMEDOUT at @deadline, -EINTR */
int base_poll_until(struct pollfd *fds, unsigned int n, uint64_t deadline);
/* What of @events holds now, with POLLERR and POLLHUP; POLLOUT also where nobody may ask */
short base_sock_ready(int fd, short events);

/* An option that is a number from 0; -errno */
int base_sock_number(int fd, int level, int option);
/* SO_ERROR, which it takes: 0 or a positive errno */
int base_sock_error(int fd);
/* Octets that the peer has not acknowledged, our FIN among them; -errno, -EPERM: nobody may ask */
int base_sock_unacked(int fd);
/* Octets that the peer has acknowledged, ever; 0: nobody may ask */
uint64_t base_sock_acked(int fd);
/* Octets that wait to be read; -errno */
int base_sock_unread(int fd);
/* The kernel's name of the socket, unique as long as the machine runs */
int base_sock_cookie(int fd, uint64_t *cookie);
/* SO_RCVLOWAT */
int base_sock_lowat(int fd);
void base_sock_set_lowat(int fd, int octets);
/* connect() that never waits, whatever O_NONBLOCK says: 0, -EINPROGRESS, -EALREADY or -errno */
int base_sock_connect(int fd, const struct sockaddr *addr, socklen_t len);
/* The same, and what O_NONBLOCK says, which it has to ask for */
int base_sock_connect_flagged(int fd, const struct sockaddr *addr, socklen_t len, bool *nonblock);
/*
 * Plain octets, all of them, as soon as there is room: 0, -EAGAIN at the deadline, -errno. The last
 * one of the first @urgent is urgent.
 */
int base_sock_send_all(int fd, const void *p, size_t len, size_t urgent, uint64_t deadline);
/* Drops the connection with a reset; the descriptor stays */
void base_sock_abort(int fd);
bool base_sock_is_nonblock(int fd);
/* Has TCP a connection, of which the peer has not ended its side? False: perhaps */
bool base_sock_is_connected(int fd);
/* The round trip as TCP has measured it, in nanoseconds; 0: not yet */
uint64_t base_sock_rtt(int fd);
/* Seconds of SO_LINGER; 0: close() is to reset; -1: it is off */
int base_sock_linger(int fd);
/* SO_RCVTIMEO or SO_SNDTIMEO in nanoseconds; BASE_NEVER without one */
uint64_t base_sock_timeout(int fd, int option);

#endif
