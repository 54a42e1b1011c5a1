/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers that are close-on-exec for a moment, so that a program which is just started does not
 * inherit them, and of which this one need not know.
 */
#ifndef PRELOAD_HIDDEN_H
#define PRELOAD_HIDDEN_H

#include <stdbool.h>

/* False: it is close-on-exec as it is */
bool hidden_hide(int fd);
/* As it was, or as the program has said since; @same: what was hidden stands there still */
void hidden_show(int fd, bool same);
/* Another file is about to have the number */
void hidden_forget(int fd);

/* The program's own calls on its descriptors' flags; -errno */
long hidden_flags(int fd, int cmd, long arg);
long hidden_dup3(int fd, int to, int flags);
long hidden_close_range(unsigned int first, unsigned int last, int flags);

/* Around fork(): a child's are shown again by who hid them */
void hidden_before_fork(void);
void hidden_after_fork(bool child);

#endif
