/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_PLAIN_H
#define PRELOAD_PLAIN_H

#include "config/reason.h"

/*
 * Why sockets of this process are plain TCP, for those who ask although the socket is the kernel's.
 * No lock, no memory; with very many of them it may forget.
 */
void plain_note(int fd, enum config_reason reason);
/* CONFIG_REASON_RULE_NONE where nothing was noted */
enum config_reason plain_reason(int fd);

#endif
