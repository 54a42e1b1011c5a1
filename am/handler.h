/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_HANDLER_H
#define AM_HANDLER_H

#include "am/endpoint.h"

/* What a handler holds while it runs: where its message came from. On the stack of the call. */
struct am_token {
	struct am_token *next; /* of the handler this one's call is nested in */
	struct amudp_ep *ep;
	struct am_peer *peer;  /* NULL: ourselves */
	struct am_rx_slot *rx; /* of a request */
	bool is_request;
	bool may_reply;
	bool replied;
	uint8_t copy;
	uint8_t handler;
	uint8_t category;
	uint16_t slot;
	uint16_t seq;
	tag_t tag;
	struct sockaddr_in source;
	int source_index; /* -1: none */
};

/* The arguments of a handler as host integers; the missing ones are 0. */
struct am_args {
	int32_t v[AMUDP_MAX_SHORT];
};

void am_args_get(struct am_args *args, const struct am_frame *f);

/* Runs handler f->handler of the token's endpoint, with the bundle's lock dropped. */
void am_handler_run(struct am_token *token, const struct am_frame *f, const struct am_args *args,
		    uint8_t *buffer);
/* Runs handler 0 with the reason; it may look at the token, not reply. */
void am_handler_return(struct am_token *token, int reason, int opcode);
/* NULL unless this is the token of a handler that runs now in this thread. */
struct am_token *am_token_check(void *token);

/* Why f must not run here (its tag, its handler, its place in the segment), or 0. */
int am_frame_refusal(const struct amudp_ep *ep, const struct am_frame *f);

#endif
