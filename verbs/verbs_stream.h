/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One stream connection of a device.
 *
 *	verbs_stream_cm.c  how connections come and go
 *	verbs_stream_listen.c  those that peers ask for
 *	verbs_stream.c     the stream front, and what a connection is made of
 *	verbs_stream_tx.c  bytes out
 *	verbs_stream_rx.c  bytes in, and what became of those that went out
 *	verbs_stream_write_retry.c, _keep.c  a peer that overlooks us; one that may be gone
 *	verbs_stream_region.c  memory of the program's for the peer
 *
 * Members marked tx or rx are written under that lock of the stream's, those with an asterisk are
 * read without it; the others are written before the stream is open, under both.
 */
#ifndef VERBS_VERBS_STREAM_H
#define VERBS_VERBS_STREAM_H

#include <errno.h>

#include "rnic/rnic_stream.h"
#include "rnic/write_retry.h"
#include "verbs/verbs_lib.h"

#define VERBS_STREAM_PD 255 /* the most that librdmacm can say */
#define VERBS_STREAM_SENDS 256u
/* Work requests beside them: write_retries, and a keepalive, whose completion has that number */
#define VERBS_STREAM_OWN (RNIC_WRITE_RETRIES + 1)
#define VERBS_STREAM_KEEP UINT64_MAX
#define VERBS_STREAM_OUT (512 * 1024u)
/* Bytes of one Write; what is larger is none of ours */
#define VERBS_STREAM_SEGMENT (32 * 1024u)
/* A message has four bytes; whoever sends more is no peer of ours */
#define VERBS_STREAM_SLOT 16u

enum verbs_phase {
	VERBS_RESOLVING, /* where the peer is */
	VERBS_RESOLVED,
	VERBS_CONNECTING,
	VERBS_REQUEST,	/* of a peer, which waits for an answer */
	VERBS_ACCEPTED, /* answered; the device says when bytes may go */
	VERBS_OPEN,
	VERBS_REJECTED,
	VERBS_ENDED,
	VERBS_FAILED, /* error says why */
};

/* Memory that the device knows */
struct verbs_memory {
	void *p;
	size_t len;
	struct ibv_mr *mr;
};

/* Does the peer look at what comes first? See verbs_stream_write_retry.c */
enum verbs_write_retry {
	VERBS_WRITE_RETRY_OVER,
	VERBS_WRITE_RETRY_LATER, /* nothing has been sent yet */
	VERBS_WRITE_RETRY_DUE,	 /* by the timer */
	VERBS_WRITE_RETRY_GATED, /* the peer is to speak first, until the timer */
};

struct verbs_stream {
	struct rnic_native native; /* an epoll set of both channels, and of timers */
	uint32_t owner;		   /* the process that made it */
	uint32_t phase;		   /* * rx: enum verbs_phase */
	int error;		   /* rx: -errno */
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	bool armed, heard;	    /* rx: the queue is; the peer has sent a message */
	uint32_t write_retry;	    /* * rx: enum verbs_write_retry */
	unsigned int write_retries; /* rx */
	int timer;		    /* rx; -1 */
	int spare; /* of one that a peer asks for: kept until it has a completion channel; -1 */
	int resolve_ms; /* how long the address was waited for */
	uint8_t data[VERBS_STREAM_PD];
	uint8_t data_len;
	struct verbs_memory window[RNIC_WINDOWS], slots, out;
	uint32_t small;	    /* up to so many bytes go with the work request itself */
	uint64_t out_at;    /* * tx: bytes of out that were taken, ever */
	uint64_t out_done;  /* * rx: those that are free again */
	uint32_t posted;    /* * tx */
	uint32_t done;	    /* * atomic: rx, and the end without a lock */
	uint64_t keep_wish; /* atomic: ns, 0: none */
	uint64_t keep_ns;   /* rx: the one that the timer knows; when something came or left */
	uint64_t moved;
	int keep_timer;	     /* rx; -1 */
	bool keep_out, more; /* rx: it has not completed; receive() stopped at its bound */
	/* Where the first Write went, written once: * tx; 0: none has */
	uint32_t window_key;
	uint64_t window_to;
};

#define verbs_load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define verbs_store(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

static inline struct verbs_stream *verbs_stream_of(const struct rnic_stream_mem *mem)
{
	return base_container_of(mem->native, struct verbs_stream, native);
}

/* Of a call that says -1 and leaves errno */
static inline int verbs_error_of(int r)
{
	return r ? -(errno ? errno : EIO) : 0;
}

/* --- verbs_stream_cm.c */

extern const struct rnic_native_ops verbs_native_ops;

/*
 * The libraries, which keep descriptors of each device: in a child they are its parent's. 0,
 * -ENODEV, -EXDEV
 */
int verbs_stream_library_get(void);
/* A channel that waits for nobody, by a descriptor that the program does not see */
int verbs_events_create(struct rdma_event_channel **out);
void verbs_events_destroy(struct rdma_event_channel *events);
/* Without an id */
int verbs_stream_create(enum verbs_phase phase, struct verbs_stream **out);
/* In a child nothing may be touched: the device's objects are the parent's, by the same handles */
void verbs_stream_destroy(struct rnic_native *n);
void verbs_stream_spare_drop(struct verbs_stream *s);
/* The peer's private data */
void verbs_stream_data_keep(struct verbs_stream *s, const struct rdma_conn_param *conn);
/* rx: takes in what the connection manager has; has there been anything? */
bool verbs_stream_look(struct verbs_stream *s);
/* rx: it is over by @err */
void verbs_stream_fail(struct verbs_stream *s, int err);

/* --- verbs_stream_listen.c: of verbs_native_ops */

int verbs_stream_listens(const struct sockaddr *addr, socklen_t len);
int verbs_stream_listen(const struct rnic_native_address *at, struct rnic_native_listener **out);
int verbs_stream_get(struct rnic_native_listener *n, struct rnic_native **out);
void verbs_stream_unlisten(struct rnic_native_listener *n);

/* --- verbs_stream.c, verbs_stream_region.c */

extern const struct rnic_stream_ops verbs_stream_ops;
extern const struct rnic_onesided_ops verbs_stream_regions;

/* What init() and window() have made */
void verbs_stream_uninit(struct verbs_stream *s);

/* --- verbs_stream_tx.c */

int verbs_stream_send(const struct rnic_stream_mem *mem, int fd, const struct rnic_stream_wr *wr,
		      unsigned int n);
bool verbs_stream_room(const struct rnic_stream_mem *mem, int fd);
/* Has all that was sent left? */
bool verbs_stream_idle(const struct verbs_stream *s);

/* --- verbs_stream_rx.c */

/* Gives slot @i to the device: 0, -errno */
int verbs_stream_slot_post(struct verbs_stream *s, unsigned int i);
ssize_t verbs_stream_receive(const struct rnic_stream_mem *mem, int fd,
			     const struct rnic_sink *sink, size_t budget);

/* --- verbs_stream_write_retry.c: rx */

/* The connection is open; is ours the first word? */
void verbs_stream_write_retry_init(struct verbs_stream *s, bool initiator);
/* Nothing has come yet: should it be waited for? */
void verbs_stream_write_retry_look(struct verbs_stream *s);
/* The time is over. True: what may be sent now could not be sent before */
bool verbs_stream_write_retry_go(struct verbs_stream *s);
/* Makes @wr one of no bytes that any device sends */
void verbs_stream_nothing(const struct verbs_stream *s, struct ibv_send_wr *wr);
/* The peer has been heard */
void verbs_stream_write_retry_heard(struct verbs_stream *s);
/* Or the connection ends */
void verbs_stream_write_retry_end(struct verbs_stream *s);

/* --- verbs_stream_keep.c: rx, but for the first, which is verbs_native_ops' */

void verbs_stream_keepalive(struct rnic_native *n, uint64_t ns);
/* The program's wish may be another one; the timer has gone off; the connection ends */
void verbs_stream_keep_look(struct verbs_stream *s);
void verbs_stream_keep_go(struct verbs_stream *s);
void verbs_stream_keep_end(struct verbs_stream *s);

/* One that was posted is over, whoever has found it */
static inline void verbs_stream_done(struct verbs_stream *s)
{
	__atomic_add_fetch(&s->done, 1, __ATOMIC_RELEASE); /* pairs with verbs_load() */
}

/* What a completion is of */
static inline uint64_t verbs_stream_id(bool received, uint64_t number)
{
	return number << 1 | received;
}

#endif
