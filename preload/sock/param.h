/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_PARAM_H
#define PRELOAD_PARAM_H

#include "stream/param.h"

struct sock;

/* Of a stream that is made, and of one that is taken over: where its state is, and whom it asks */
void sock_param_init(struct stream_param *param, struct sock *s);
/* Of one that is made. Whose it is (initiator) and whether it holds writes is there already */
void sock_param_made(struct stream_param *param, const struct sock *s);

/* How long a server that speaks first waits for a Request */
uint64_t sock_grace(const struct sock *s);

#endif
