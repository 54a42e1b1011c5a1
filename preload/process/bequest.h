/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_BEQUEST_H
#define PRELOAD_BEQUEST_H

#include <stdbool.h>

/*
 * Before a program is executed: what lingers is finished by another process, which has nothing but
 * that. False: there can be none
 */
bool bequest_make(void);

/* The process's name, and in the program that it executes: these are its descriptors, then NULL */
#define BEQUEST_NAME "warpsock-linger"
int bequest_go_on(char *const *fds);

#endif
