/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libibverbs and librdmacm without a device: as much of them as a stream needs, and what they are
 * to say. Stands in the place of verbs_lib.c.
 */
#ifndef TESTS_UNIT_VERBS_FAKE_H
#define TESTS_UNIT_VERBS_FAKE_H

#include <stdbool.h>

#include "verbs/verbs_lib.h"

/*
 * Of an id that is bound to an address without one, and of peers who ask: none that the kernel
 * gives out
 */
#define FAKE_PORT 4000

struct fake {
	int load; /* what verbs_lib_load() says */
	enum ibv_transport_type transport;
	bool elsewhere;			  /* the address is no device's */
	int channel_errno;		  /* why there is no event channel */
	int event_errno;		  /* atomic: why no event is given to who asks for it */
	unsigned int late;		  /* so many rdma_resolve_addr() get no answer in time */
	enum rdma_cm_event_type resolved; /* what the others come to */
	enum rdma_cm_event_type connected;
	bool brief;	   /* the peer says message 1 and ends at once */
	const void *reply; /* private data */
	uint8_t reply_len;
	unsigned int regions; /* how many can be registered */
	uint32_t inlined;     /* octets that a work request may hold */
	struct ibv_send_wr sent[16];
	unsigned int num_sent;
	unsigned int made, destroyed; /* objects of all kinds */
	enum ibv_wc_status sent_status;
	bool paired; /* two threads that poll get a completion each, at the same time */
};

extern struct fake fake;

/* All as a good device has it */
void fake_reset(void);
/* A peer asks at that port; false: nobody listens */
bool fake_ask(uint16_t port, const void *data, uint8_t len);
/* To who listens at that port, an event that is nobody's Request; false: nobody listens */
bool fake_stir(uint16_t port);
/* A message of four octets into the receive that was posted first; wakes the completion channel */
void fake_hear(uint32_t message);

#endif
