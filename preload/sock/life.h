/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_LIFE_H
#define PRELOAD_LIFE_H

#include <stdbool.h>

#include "config/reason.h"

struct sock;

/* @connecting: TCP has not answered yet. @hold: connect() will not wait for the Reply */
int sock_connect(struct sock *s, bool connecting, bool hold);
/* The same for a server's, too, which is there: @initiator is false */
int sock_begin(struct sock *s, bool initiator, bool connecting, bool hold);
/* After a connect() that failed: it may be tried again */
void sock_forget_stream(struct sock *s);
/* As the socket goes */
void sock_drop_stream(struct sock *s);
/* From now on this is the kernel's socket */
void sock_give_back(struct sock *s, enum config_reason reason);

#endif
