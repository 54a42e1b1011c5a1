/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The common core of the software provider's two fronts: one RDMAP stream over one carrier of
 * bytes.
 *
 * struct soft_core is plain data, so that the stream front can keep it in memory that processes
 * share; the pointers are in struct soft_io, which each caller makes for itself. Two directions,
 * each serialised by its caller: members are marked tx or rx. Start-up belongs to both.
 */
#ifndef SOFT_CORE_H
#define SOFT_CORE_H

#include <assert.h>

#include "llp/llp.h"
#include "rdmap/rdmap.h"

struct rnic_sink;
struct rnic_stream_mem;
struct rnic_stream_wr;

enum soft_phase {
	SOFT_IDLE,	/* nothing has been sent or received */
	SOFT_REQUESTED, /* initiator: the Request is sent */
	SOFT_REQUEST,	/* responder: the Request is here and waits for an answer */
	SOFT_OPEN,	/* FPDUs */
	SOFT_REJECTED,
};

struct soft_core {
	struct rdmap_stream rdmap;
	__u32 in_off, in_fill;	  /* rx: bytes in `in`: taken apart up to, filled up to */
	__u32 in_need;		  /* rx: what the frame that is not whole takes, as far as known */
	__u32 rest_off, rest_len; /* tx: bytes in `rest`: sent up to, end */
	__s32 rx_error;		  /* rx: why no more comes; 0 none. Written once. */
	__s32 tx_error;		  /* tx: why no more goes */
	__u16 pd_len;		  /* the peer's private data */
	__u8 phase;
	__u8 record; /* whole FPDUs in each segment, for a peer whose MPA wants the trailer whole */
	__u8 rx_end; /* rx: the peer's orderly end has come */
	__u8 tx_end; /* tx: ours has gone */
	__u8 rx_more;  /* rx: the last soft_rx() stopped at its bound */
	__u8 rx_alone; /* rx: nothing was behind the peer's start-up frame when that came */
	__u32 emss_at; /* tx: low bits of tx_fpdus when the segment size was asked for */
};

/* What a FPDU can take at most: the longest ULPDU, its length, PAD, CRC and markers */
#define SOFT_FPDU_MAX (MPA_ULPDU_MAX + 9 + 4 * MPA_TXV_MARKERS(MPA_ULPDU_MAX))

/* One caller's view */
struct soft_io {
	struct soft_core *core;
	struct llp *llp;
	struct rdmap_slots slots;
	/* Memory for bytes of what follows: 0, -errno; NULL: it is there */
	int (*reserve)(const struct rnic_stream_mem *mem, void *p, size_t len);
	const struct rnic_stream_mem *mem;
	__u8 *rest; /* SOFT_FPDU_MAX; NULL: rest_take(mem) finds it when it is needed */
	void *(*rest_take)(const struct rnic_stream_mem *mem);
	/* Bytes that were handed up may lie in `in`: .wants, .settle; NULL: never */
	const struct rnic_sink *sink;
	__u8 *in; /* in_cap, in memory that is there as far as something was received */
	__u32 in_cap;
	__u32 pd_at; /* of `in`, or behind it: MPA_PD_MAX for the peer's private data */
};

/*
 * Also the limits of one batch: iovec entries of the longest FPDU; frames; bytes worth building
 * ahead. Each marker takes two entries more, so FPDUs with markers have SOFT_TX_MARKED at most
 */
#define SOFT_TX_IOV 132
#define SOFT_TX_SCRATCH 1280
#define SOFT_TX_FRAMES 16
#define SOFT_TX_OCTETS (128 * 1024)
#define SOFT_TX_MARKED (16 * 1024)
/* The first may come at once */
#define SOFT_TX_MARKERS (SOFT_TX_MARKED / MPA_MARKER_EVERY + 1)
static_assert(SOFT_TX_IOV >= DDP_SGE_MAX + 2 + 2 * SOFT_TX_MARKERS, "the longest FPDU has room");

struct soft_tx_frame {
	struct rdmap_tx_mark mark; /* behind the frame */
	__u64 end;		   /* bytes of the batch with it */
	__u32 op, off;		   /* whose it is, and that one's payload bytes with it */
	bool last;
	bool owed; /* the protocol's own, not of a work request */
};

/* Frames that were built and not yet handed over. Lives on a stack. */
struct soft_tx {
	const struct soft_io *io;
	unsigned int count;
	struct rdmap_tx_mark start;
	struct mpa_txv v;
	struct soft_tx_frame frame[SOFT_TX_FRAMES];
	struct iovec iov[SOFT_TX_IOV];
	__u8 scratch[SOFT_TX_SCRATCH];
};

void soft_core_init(struct soft_core *c, enum mpa_role role, const struct mpa_config *config,
		    __u16 in_cap, __u16 out_cap);
/* What a side that ended answers; 0 while it has not */
int soft_core_error(const struct soft_core *c);
/* rx_error or tx_error: 0 or -errno, whatever stands there */
int soft_core_told(const __s32 *error);

/* --- soft_tx.c: all under tx --- */

/*
 * The path's segment size, asked for now and then. Frames are as long as it was when this was last
 * called: who promised a length must keep it
 */
void soft_tx_emss(const struct soft_io *io);
/* The same at once, when start-up has settled whether there are markers */
void soft_tx_emss_set(const struct soft_io *io, unsigned int emss);
void soft_tx_begin(struct soft_tx *t, const struct soft_io *io);
bool soft_tx_full(const struct soft_tx *t);
/* Not full for a message of which @len bytes of payload are to go */
bool soft_tx_takes(const struct soft_tx *t, __u64 len);
/* Takes note of the frame that was appended to t->v last */
void soft_tx_note(struct soft_tx *t, __u32 op, __u32 off, bool last);
/*
 * Hands the frames over. How many were accepted, the last of them perhaps but for a rest;
 * -EAGAIN, or -errno for good. The others have not happened. The batch is empty afterwards.
 */
int soft_tx_push(struct soft_tx *t);
/* The same, and more is handed over at once: what is not a record may wait for that */
int soft_tx_push_more(struct soft_tx *t);
/* Bytes @from..@to of the entries become the rest; without memory the frame stays cut: -errno */
int soft_tx_keep(const struct soft_io *io, const struct iovec *iov, __u64 from, __u64 to);
/* It sends no more, by @err, which is the first one's */
int soft_tx_fail(struct soft_core *c, int err);
/* For llp's send() */
unsigned int soft_tx_flags(const struct soft_core *c);
/* The rest of a cut frame: 0 none left, -EAGAIN, -errno */
int soft_tx_rest(const struct soft_io *io);
/* Bytes that are to go before all others; what is not taken becomes the rest */
int soft_tx_raw(const struct soft_io *io, const __u8 *p, size_t n);
/*
 * One frame of what the protocol owes: 1 appended, 0 none or no room. @between: not inside a
 * message
 */
int soft_tx_owed(struct soft_tx *t, const struct rdmap_source *src, bool between);
/* Sends the rest and all that the protocol owes: 0 none left, -EAGAIN, -errno */
int soft_tx_flush(const struct soft_io *io, const struct rdmap_source *src, bool between);
/* The same, and more is handed over at once: it may go in one segment with that */
int soft_tx_flush_more(const struct soft_io *io, const struct rdmap_source *src, bool between);
bool soft_tx_pending(const struct soft_core *c);
/* Our end, behind all that was sent */
int soft_tx_shutdown(const struct soft_io *io);

/* --- soft_tx_single.c: all under tx --- */

/* Of each Send of a run */
#define SOFT_RUN_LEN 2048u

/*
 * A Send of the @len bytes of @sg, in one frame and with no batch, when nothing else is to go
 * first. 1: accepted, perhaps but for a rest; 0: it is not to be sent so, and a batch says why;
 * -EAGAIN, or -errno for good
 */
int soft_tx_single(const struct soft_io *io, const struct iovec *sg, unsigned int nsg, __u32 len);
/* The same of @n Sends of SOFT_RUN_LEN bytes at most: how many were accepted */
int soft_tx_run(const struct soft_io *io, const struct rnic_stream_wr *wr, unsigned int n);

/* --- soft_rx.c: all under rx --- */

/*
 * Receives until no more is there, or at least @budget bytes came (0: the carrier's end alone
 * counts), or as much as one call takes in at most: then core->rx_more is set. Bytes taken;
 * -EAGAIN none; 0 the orderly end; -errno broken. A found fault is in core->rdmap; its Terminate
 * is tx's.
 */
ssize_t soft_rx(const struct soft_io *io, const struct rdmap_sink *sink, size_t budget);
/* Where soft_rx() puts what it receives first; false: it receives nothing that it keeps */
bool soft_rx_place(const struct soft_io *io, struct iovec *out);
/* Bytes to @at of io->in, as llp's recv() has it */
ssize_t soft_rx_recv(const struct soft_io *io, __u32 at, size_t len);
/* Takes apart what is in `in` already: 0 or -errno */
int soft_rx_parse(const struct soft_io *io, const struct rdmap_sink *sink);

/* --- soft_start.c: tx and rx --- */

/*
 * Each goes as far as it can: 0 done, -EAGAIN with *@events to wait for, -ECONNREFUSED rejected,
 * -errno failed. @there: so many bytes are the peer's frame for certain, or less
 */
int soft_start_initiator(const struct soft_io *io, const void *pd, size_t len, short *events);
/*
 * Are the bytes that wait on a socket, as far as they go, the key of a Request? 0, -EAGAIN,
 * -ENOMSG, -errno; nothing is consumed. *@there: bytes of the frame, if they tell
 */
int soft_start_recognise(int fd, size_t *there, short *events);
int soft_start_responder(const struct soft_io *io, size_t there, short *events);
/* 0 also when the frame is not wholly sent: then it is the rest */
int soft_start_accept(const struct soft_io *io, const void *pd, size_t len);
int soft_start_reject(const struct soft_io *io, const void *pd, size_t len);

#endif
