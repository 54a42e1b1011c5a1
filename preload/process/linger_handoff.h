/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_LINGER_HANDOFF_H
#define PRELOAD_LINGER_HANDOFF_H

#include <stdbool.h>

/*
 * Before a program is executed: what lingers is finished by another process, which has nothing but
 * that. False: there can be none
 */
bool linger_handoff_make(void);

/* The process's name, and in the program that it executes: these are its descriptors, then NULL */
#define LINGER_HANDOFF_NAME "warpsock-linger"
int linger_handoff_continue(char *const *fds);

#endif
