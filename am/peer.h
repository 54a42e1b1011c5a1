/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_PEER_H
#define AM_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "am/message.h"
#include "am/rtt.h"
#include "base/list.h"
#include "include/warp/amudp.h"

struct amudp_ep;
struct am_peer;

/* Fragments on their way out, of a request or of a reply. Owned by the slot. */
struct am_bulk {
	struct base_list node; /* on ep->bulks */
	struct am_peer *peer;
	struct am_message *message;
	bool is_reply;
	uint16_t slot;
	uint16_t seq;
	uint32_t count;	     /* fragments */
	uint32_t next;	     /* first never sent */
	uint32_t cumulative; /* all before it are there */
	uint32_t arrived;
	uint32_t order;	       /* of the next send; each send of a fragment has its own */
	uint32_t newest;       /* the greatest order known to have arrived, plus one */
	uint32_t probe;	       /* order of the time-out's last send, plus one; 0: none */
	uint32_t probe_sacked; /* the probe's order, if it or its original came last */
	uint32_t outstanding;  /* window bytes in flight */
	uint32_t backoff;
	uint64_t started;
	uint64_t deadline;
	uint64_t over;	       /* the deadline that was found to be over ... */
	uint32_t over_epoch;   /* ... in this poll */
	uint32_t *orders;      /* of each fragment's last send */
	uint32_t lost;	       /* fragments to send again */
	uint32_t sample_order; /* the send being timed */
	uint64_t sample_at;    /* 0: none */
	uint8_t *state;	       /* BULK_* */
};

enum { BULK_UNSENT, BULK_SENT, BULK_LOST, BULK_ARRIVED };

/* Fragments that have come in so far. Owned by the slot. */
struct am_gather {
	struct base_list node; /* on ep->gathers while a SACK is due */
	struct am_peer *peer;
	bool is_reply;
	uint16_t slot;
	uint16_t seq;
	uint32_t fragment_size;
	uint32_t count;
	uint32_t arrived;
	uint32_t cumulative;
	uint32_t highest; /* the highest fragment that came, plus one */
	uint32_t nbytes;
	uint64_t offset;
	uint64_t *map;
	uint8_t *buffer; /* of a medium message; a long one goes to the segment */
};

enum am_tx_state {
	AM_TX_FREE,
	AM_TX_WAITING,	/* for the answer */
	AM_TX_REFUSING, /* the answer could not be taken; waiting for the peer to know */
};

/* One request of ours to this peer: the requester's half of a slot. */
struct am_tx_slot {
	struct base_list node; /* on peer->waiting, oldest send first; or on peer->free */
	uint16_t index;
	uint16_t seq;
	uint8_t state;
	uint8_t copy;	/* number of the last copy sent */
	uint8_t reason; /* REFUSING */
	uint8_t asked;	/* so often for the answer */
	uint8_t drawn;	/* copies that ABSENT drew, which cost nothing */
	uint16_t spent; /* of the budget, and not given back yet */
	bool received;	/* the peer has it all and works on it */
	uint32_t cost;	/* window bytes */
	amudp_node_t dest;
	uint64_t first_sent;
	uint64_t before_sent; /* the copy before the last */
	uint64_t last_sent;
	uint64_t ask_at; /* BASE_NEVER: not for this copy */
	struct am_message message;
	struct am_bulk *bulk;
	struct am_gather *gather; /* of the reply */
};

enum am_rx_state {
	AM_RX_FRESH, /* nothing came yet: any sequence number is new */
	AM_RX_GATHERING,
	AM_RX_RUNNING,
	AM_RX_REPLIED,
	AM_RX_REFUSED,
};

/* One request of the peer's to us: the replier's half of a slot. */
struct am_rx_slot {
	uint16_t seq;
	uint8_t state;
	uint8_t copy;	    /* the copy that ran */
	uint8_t reason;	    /* REFUSED */
	bool reply_refused; /* by the requester */
	bool orphan;	    /* its requester is gone while the handler runs */
	uint32_t epoch;	    /* of polls, when a duplicate was last answered */
	struct am_message reply;
	struct am_bulk *bulk; /* of the reply */
	struct am_gather *gather;
};

/* Another endpoint. Translations of one name share it. */
struct am_peer {
	struct base_list node; /* on ep->peers */
	struct am_peer *hash_next;
	struct amudp_ep *ep;
	struct sockaddr_in name;		       /* its identity */
	struct sockaddr_in path;		       /* where its packets come from and ours go */
	struct sockaddr_in places[AM_WIRE_MAX_PLACES]; /* where it may be found when it moves */
	int num_places;
	int translations;     /* that lead here */
	int index;	      /* the lowest of them */
	uint32_t incarnation; /* 0: not known yet */
	uint32_t frame_max;   /* bytes of a frame that one packet takes */
	uint32_t window;      /* bytes we may have unanswered there */
	uint32_t inflight;
	uint32_t move_serial; /* of its last move */
	uint32_t move_acked;  /* of ours, that it knows */
	uint32_t resends;     /* since its last packet */
	bool local;	      /* ourselves */
	bool near;	      /* the path is an address of this host */
	bool sleeps;
	bool takes_unsealed; /* our packets without a checksum, by its last packet */
	int queued;	     /* index of the packet still open for it, or -1 */
	struct am_rtt rtt;
	struct base_list waiting;
	struct base_list active; /* on ep->active while anything waits */
	struct base_list free;
	uint64_t probe_at;	  /* no time-out resends before; one probe at a time */
	uint64_t bulk_probe_at;	  /* the same of the first time-outs of fragments */
	uint64_t answer_at;	  /* no question before for the answer to what it has */
	uint64_t newest_answered; /* when the newest request that has an answer was sent */
	struct am_tx_slot *tx;	  /* depth of them, or NULL until first used */
	struct am_rx_slot *rx;
};

int am_peer_create(struct am_peer **out, struct amudp_ep *ep, const struct sockaddr_in *name);
void am_peer_destroy(struct am_peer *peer);
struct am_peer *am_peer_find(struct amudp_ep *ep, uint32_t addr, uint16_t port);
/* Slots come with the first use: a job of many ranks rarely talks all to all. 0 or -ENOMEM. */
int am_peer_tx_ready(struct am_peer *peer);
int am_peer_rx_ready(struct am_peer *peer);
void am_peer_window_set(struct am_peer *peer, uint16_t kib);

/* peer_path.c: bytes of a frame that one packet to this address takes */
uint32_t am_peer_frame_max(const struct amudp_ep *ep, const struct sockaddr_in *to);
/* It is reached there from now on; what it said of the way to the old place is forgotten. */
void am_peer_path_set(struct am_peer *peer, const struct sockaddr_in *path);

/* peer_renew.c: it was replaced or restarted. What it sent is forgotten, open requests go again. */
void am_peer_renew(struct am_peer *peer, uint32_t incarnation);

#endif
