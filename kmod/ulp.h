/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef KMOD_ULP_H
#define KMOD_ULP_H

#include "kmod/conn.h"

/* Before any socket comes, and when none is left */
int kmod_ulp_init(void);
void kmod_ulp_exit(void);

/*
 * The connection is the module's from now on, in CONN_START or CONN_DDP; with the socket's lock.
 * EBUSY: operations unknown
 */
int kmod_ulp_take(struct conn *c, enum conn_state state);

/* The sockets that it accepts begin with start-up, as c->wanted has it; EBUSY as above */
int kmod_ulp_listen(struct conn *c);

#endif
