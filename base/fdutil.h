/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_FDUTIL_H
#define BASE_FDUTIL_H

#include <stdbool.h>

/*
 * Descriptors, by raw system calls: in a process with the interposer loaded, libc's names are
 * its own. All return 0 or -errno.
 */
int base_fd_set_nonblock(int fd, bool on);
int base_fd_set_cloexec(int fd, bool on);

/* A nonblocking close-on-exec eventfd with the count 0. */
int base_eventfd_create(int *out);
/* Makes it readable; harmless when it already is. */
int base_eventfd_notify(int fd);
/* Makes it unreadable; harmless when it already is. */
int base_eventfd_drain(int fd);

/* A close-on-exec duplicate with a number far above those that programs are given; -errno */
int base_fd_dup_high(int fd);

/*
 * Descriptors that other libraries' objects of ours live by. A process in which a program may close
 * every number there is says once how they are kept from that: @keep gives the number that one has
 * from then on, @drop comes before its owner closes it. Else both do nothing.
 */
void base_fd_keeper(int (*keep)(int fd), void (*drop)(int fd));
int base_fd_keep(int fd);
void base_fd_drop(int fd);

bool base_fd_is_open(int fd);

/* A negative fd is ignored, and errno stays as it was. */
void base_fd_close(int fd);

#endif
