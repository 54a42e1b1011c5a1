/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_INTERNAL_H
#define PRELOAD_INTERNAL_H

#include <stdbool.h>

/*
 * Descriptors of our own in the program's process: close-on-exec, far above the numbers that
 * programs are given, and known in the table, so that a program that closes all there are does
 * not close them.
 */

/* A duplicate; -errno */
int internal_dup(int fd);
/* The descriptor itself, by a high number if there is one */
int internal_move(int fd);
bool internal_is(int fd);
/* It stays open: its owner closes it */
void internal_forget(int fd);
/* A negative @fd is ignored */
void internal_close(int fd);

#endif
