/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers that are close-on-exec for a moment, so that a program which is just started does not
 * inherit them, and of which this one need not know.
 */
#ifndef PRELOAD_TMP_CLOEXEC_H
#define PRELOAD_TMP_CLOEXEC_H

#include <stdbool.h>

/* False: it is close-on-exec as it is */
bool tmp_cloexec_set(int fd);
/* As it was, or as the program has said since; @same: what was hidden stands there still */
void tmp_cloexec_restore(int fd, bool same);
/* Another file is about to have the number */
void tmp_cloexec_forget(int fd);

/* The program's own calls on its descriptors' flags; -errno */
long tmp_cloexec_flags(int fd, int cmd, long arg);
long tmp_cloexec_dup3(int fd, int to, int flags);
long tmp_cloexec_close_range(unsigned int first, unsigned int last, int flags);

/* Around fork(): a child's are shown again by who hid them */
void tmp_cloexec_before_fork(void);
void tmp_cloexec_after_fork(bool child);

#endif
