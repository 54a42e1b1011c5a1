/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_REQUEST_H
#define AM_REQUEST_H

#include "am/handler.h"

/* request_rx.c: a request's frame from this peer (NULL: from nobody we know). */
void am_request_receive(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f,
			const struct am_packet *packet, const struct sockaddr_in *from);
/* The SACK or REFUSE_ACK that a requester sent about our reply. */
void am_request_receive_sack(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f);
void am_request_receive_refusal(struct amudp_ep *ep, struct am_peer *peer,
				const struct am_frame *f);

/* The requester misses the answer: it is sent again, or the request has never come. */
void am_request_receive_ask(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f);

/* reply_tx.c: sends the saved reply of a slot; again: it is a duplicate's */
void am_reply_send(struct amudp_ep *ep, struct am_peer *peer, struct am_rx_slot *rx, uint16_t slot,
		   uint8_t copy, bool again);
/* The reply of a handler that did not reply. */
void am_reply_auto(struct am_token *token);
/* Builds and sends the reply; AM_OK or AM_ERR_*. */
int am_reply_make(struct am_token *token, struct am_frame *f, const int32_t *args,
		  const void *data);

/* reply_rx.c: frames that answer a request of ours */
void am_reply_receive(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f);
void am_reply_receive_sack(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f);
void am_reply_receive_refusal(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f);
void am_reply_receive_refuse_ack(struct amudp_ep *ep, struct am_peer *peer,
				 const struct am_frame *f);
void am_reply_receive_absent(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f);

#endif
