/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_DECLINE_H
#define PRELOAD_DECLINE_H

#include <stdbool.h>

struct sock;

/*
 * Another process is to have it: what a device gave, and nobody has answered yet, is refused. The
 * program has a connection of the kernel's then, which its peer has reset.
 */
bool sock_decline(struct sock *s);
/* Has this process ever done so? */
bool sock_has_declined(void);

#endif
