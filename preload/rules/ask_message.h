/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_ASK_MESSAGE_H
#define PRELOAD_ASK_MESSAGE_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include <wire/ask.h>

/* A question or an answer, without I/O */
struct ask {
	enum ask_kind kind;
	in_port_t port; /* as socket addresses have it */
	uint64_t nonce;
};

void ask_message_put(struct ask_message *m, const struct ask *ask);
/*
 * The one place where a datagram is judged: 0, or -EPROTO, and *@out is as it was. What it says is
 * not believed for that: who sent it, and whether the nonce is ours, is the caller's to see.
 */
int ask_message_get(const void *p, size_t len, struct ask *out);

#endif
