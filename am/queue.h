/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_QUEUE_H
#define AM_QUEUE_H

#include "am/endpoint.h"

/* Frames on their way into packets. The head is copied; data stay in place until the flush. */
void am_queue_message(struct amudp_ep *ep, struct am_peer *peer, const uint8_t *head,
		      uint32_t head_len, const uint8_t *data, uint32_t length);
/* The same of a fragment, which a driver may send another way than messages. */
void am_queue_fragment(struct amudp_ep *ep, struct am_peer *peer, const uint8_t *head,
		       uint32_t head_len, const uint8_t *data, uint32_t length);
/* A small frame to a peer. */
void am_queue_frame(struct amudp_ep *ep, struct am_peer *peer, const uint8_t *p, uint32_t n);
/* A small frame to an address that is no peer, or not at that address. */
void am_queue_frame_to(struct amudp_ep *ep, const struct sockaddr_in *to, uint32_t incarnation,
		       const uint8_t *p, uint32_t n);
void am_queue_flush(struct amudp_ep *ep);
/* Frees a message's data, once no packet in the queue points at them. */
void am_queue_retire(struct amudp_ep *ep, struct am_message *m);

#endif
