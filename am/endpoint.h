/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_ENDPOINT_H
#define AM_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "am/env.h"
#include "am/error.h"
#include "am/fault.h"
#include "am/nic.h"
#include "am/peer.h"
#include "base/list.h"
#include "include/warp/amudp.h"

#define AM_ENDPOINT_MAGIC 0xA2E9D01Du
#define AM_PEER_HASH 1024
#define AM_MAX_PATHS AM_WIRE_MAX_PLACES
#define AM_QUEUE_BUFFER 2048

struct am_live;
struct am_lock;

struct am_translation {
	struct am_peer *peer; /* NULL: not in use */
	tag_t tag;
	struct sockaddr_in name;
};

/* A packet being put together. */
struct am_queued {
	struct am_peer *peer; /* NULL: for an address only */
	uint32_t used;	      /* of buffer */
	bool closed;	      /* takes no further frame */
	bool sealed;	      /* with a checksum */
	struct am_datagram datagram;
	uint8_t buffer[AM_QUEUE_BUFFER];
};

struct am_queue {
	int count;
	uint32_t bytes; /* of data that stand in their own place */
	struct am_queued packets[AM_NIC_BATCH];
};

/* What the environment says; read once per endpoint. */
struct am_options {
	uint64_t timeout_initial; /* ns */
	uint64_t timeout_max;	  /* BASE_NEVER: none */
	uint32_t backoff;
	int send_depth; /* requests outstanding to all peers; 0: unlimited */
	uint64_t spin;	/* ns */
	enum am_choice checksum;
	int batch;
};

struct amudp_ep {
	uint32_t magic;
	struct base_list node; /* on bundle->endpoints */
	struct amudp_eb *bundle;
	struct am_lock *lock;			  /* the bundle's */
	void (*freed)(const struct amudp_ep *ep); /* called before it is; may be NULL */
	struct sockaddr_in name;
	uint32_t incarnation;
	uint64_t nonce;
	tag_t tag;
	uint8_t *segment;
	uintptr_t segment_len;
	amudp_handler_fn_t handlers[AMUDP_MAX_NUMHANDLERS];
	int num_handlers;
	struct am_translation *translations;
	int num_translations;
	int depth; /* 0: AM_SetExpectedResources is still to come */
	AMUDP_preHandlerCallback_t pre;
	AMUDP_postHandlerCallback_t post;
	struct am_options options;

	struct am_nic *nics[AM_MAX_PATHS];
	int num_nics;
	int nic;	       /* the one in use */
	uint64_t paths_missed; /* addresses of PATHS that are not this machine's: path.h */
	uint32_t move_serial;
	uint64_t move_began; /* the telling of our last move, */
	uint32_t move_copy;  /* so often done again, */
	uint64_t move_due;   /* and next; BASE_NEVER: all peers know our path, or are given up */
	uint64_t path_due;   /* of the next look at the interface; BASE_NEVER: there is one only */
	struct am_nic *leaving; /* taken from until move_due is never */
	uint16_t window_kib;	/* what each peer may have unanswered here */
	struct base_list peers;
	struct base_list active;
	struct base_list bulks;
	struct base_list gathers;
	uint64_t gather_due; /* of a SACK for them; BASE_NEVER: nothing has come */
	uint32_t gathered;   /* window bytes of fragments since the last SACK */
	struct am_peer *hash[AM_PEER_HASH];
	struct am_queue queue;
	struct am_fault fault;
	struct am_retransmit retransmit;
	int outstanding;      /* requests to all peers */
	int held;	      /* requests in the queue for the sake of batching */
	bool sleeps;	      /* we block while we wait */
	uint32_t slept;	      /* epoch of the last sleep */
	struct am_live *live; /* what others may look at; NULL: nothing */
	int live_fd;	      /* holds the lock on it while it is there */
	uint64_t live_due;
	int receive_max;  /* datagrams to ask for next */
	int receive_full; /* receives in a row that got them all */
	uint32_t epoch;	  /* of polls */
	uint64_t drained; /* nothing had come that was older than this and was not read */
	uint64_t last_poll;
	uint64_t next_deadline;
	uint64_t messages; /* taken in so far, of any use */
	int expected;	   /* peers; 0: not told yet */

	amudp_stats_t stats;
	amudp_xstats_t xstats;
};

/* Where an offset of a long message leads; of the whole address space, offsets are addresses. */
static inline uint8_t *am_segment_at(const struct amudp_ep *ep, uint64_t offset)
{
	return (uint8_t *)((uintptr_t)ep->segment + offset);
}

/* With one path at least and the first handler, in no bundle yet. 0 or -errno. */
int am_endpoint_create(struct amudp_ep **out);
void am_endpoint_destroy(struct amudp_ep *ep);

static inline bool am_endpoint_valid(const struct amudp_ep *ep)
{
	return ep && ep->magic == AM_ENDPOINT_MAGIC;
}

/* Packets of this peer's may come without a checksum; those of a stranger (NULL) never. */
static inline bool am_endpoint_takes_unsealed(const struct amudp_ep *ep, const struct am_peer *peer)
{
	if (!peer || ep->options.checksum != AM_CHOICE_AUTO)
		return peer && ep->options.checksum == AM_CHOICE_NO;
	/* what is altered here on purpose has to be found */
	return peer->near && !ep->fault.corrupt;
}

#endif
