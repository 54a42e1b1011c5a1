/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stream front of a provider: one connection over a connected socket, whose state is a flat
 * block in memory that processes may share, without queues; where a send is either in the
 * transport or has not happened, and what arrives goes to the sink that the caller brings.
 */
#ifndef RNIC_RNIC_STREAM_H
#define RNIC_RNIC_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "rnic/rnic_carrier.h"
#include "rnic/rnic_onesided.h"
#include "rnic/rnic_sink.h"

/*
 * The memory of one stream connection. @state is pointer-free plain data; @rest holds the part of
 * an FPDU that the kernel has not taken yet; @in holds received bytes that are not a whole FPDU,
 * or that the sink still wants there (rnic_sink.wants), which uses() does not count.
 * All three may be shared by processes, which serialise by a tx and an rx lock of their own: the
 * calls below say which one they want.
 */
#define RNIC_STREAM_STATE 704
#define RNIC_STREAM_REST (66 * 1024)
#define RNIC_STREAM_IN (136 * 1024)

struct rnic_stream_mem {
	void *state; /* RNIC_STREAM_STATE bytes, 8-aligned, zeroed at first */
	void *rest;  /* NULL: nothing is in it, and rest_take() finds it */
	void *in;
	struct rnic_regions *regions; /* this process's own; NULL: there are none */
	struct rnic_native *native;   /* the same; NULL: the socket carries the bytes */
	/* tx: what @rest is from now on, for it is needed; may be NULL where @rest never is */
	void *(*rest_take)(const struct rnic_stream_mem *mem);
	/* Memory for bytes of @rest, where to touch what has none may be SIGBUS; NULL: has */
	int (*reserve)(const struct rnic_stream_mem *mem, void *p, size_t len);
};

struct rnic_stream_param {
	bool initiator;
	bool crc, markers; /* ask for */
	uint8_t mpa_rev;   /* 1 or 2 */
	bool p2p;    /* initiator, revision 2: either end may speak first, for there is an RTR */
	uint8_t rtr; /* forms offered or supported, enum mpa_rtr bits; 0: Write and Read */
	uint16_t ird, ord;
	uint16_t messages; /* Sends that the peer may have under way */
};

/* One operation of a batch: what @op says, or a Write when @stag is not 0, else a Send */
struct rnic_stream_wr {
	uint32_t stag;
	uint64_t to;
	const struct iovec *iov;
	unsigned int niov;
	uint32_t len; /* also of a Read */
	const struct rnic_onesided *op;
	/* Of the last one: shutdown() follows at once, and what leaves may wait for it */
	bool final;
};

enum rnic_stream_state {
	RNIC_STREAM_STARTING, /* start-up frames are outstanding */
	RNIC_STREAM_REQUEST,  /* responder: the Request is there, private data can be read */
	RNIC_STREAM_OPEN,
	RNIC_STREAM_ENDED, /* the peer's FIN at an FPDU boundary */
	RNIC_STREAM_REJECTED,
	RNIC_STREAM_BROKEN, /* reset, Terminate in either direction, cut, malformed */
};

struct rnic_stream_info {
	enum rnic_stream_state state;
	uint32_t fault; /* ours or the peer's; 0 none */
	bool fault_by_peer;
	uint8_t mpa_rev;
	bool crc, tx_markers, rx_markers, may_send;
	bool heard; /* of the peer's start-up frame something has been taken in */
	bool more;  /* the last receive() stopped at its bound */
	bool alone; /* nothing, and no end, was behind the peer's start-up frame when that came */
	uint16_t mulpdu;
	uint32_t rx_empty; /* Writes and Reads of no bytes that have come, ever */
	uint64_t tx_fpdus, rx_fpdus;
	uint64_t queued; /* a device's: bytes that it has not said have left, of all kinds */
};

struct rnic_stream_ops {
	/*
	 * Both locks: a new connection over the connected socket @fd, or a fresh view of one that
	 * @mem holds already
	 */
	int (*init)(const struct rnic_stream_mem *mem, int fd,
		    const struct rnic_stream_param *param);
	/* Both: window number @i; gives it an STag, and what is in memory (native) its address */
	int (*window)(const struct rnic_stream_mem *mem, unsigned int i, struct rnic_window *w);

	/*
	 * Both: takes start-up as far as it goes without waiting. initiator: sends the Request
	 * with @pd, then looks for the Reply; its RTR goes by flush() or the first send().
	 * responder: looks for the Request. The state, or -EAGAIN with *@events (POLLIN, POLLOUT)
	 * to wait for, or an errno. -ENOMSG (responder): what came is no MPA; nothing was consumed.
	 */
	int (*start)(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len,
		     short *events);
	/* rx, before the first receive(): the peer's private data (copied); -ENODATA: not yet */
	int (*private_data)(const struct rnic_stream_mem *mem, void *pd, size_t *len);
	/* Both, responder in state REQUEST */
	int (*accept)(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len);
	int (*reject)(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len);

	/*
	 * tx: the operations in order. Returns how many, from the first on, are wholly in the
	 * kernel or, the last of them, but for a rest that is kept and goes first next time. What
	 * does not count has not happened: its memory may change, and it is offered again or
	 * never. -EAGAIN: none counts now (no room, or the peer must speak first). -errno:
	 * broken.
	 *
	 * An operation of more than one FPDU (a Write of more than segment(0) bytes, a Send of
	 * more than segment(0) - 4) is the exception: when the kernel took some of its FPDUs and
	 * not the others, it does not count either, but must be the first of the next call,
	 * unchanged, and is carried on from there; another one in its place is -EINVAL. So who
	 * must be able to take an operation back keeps it to one FPDU.
	 */
	int (*send)(const struct rnic_stream_mem *mem, int fd, const struct rnic_stream_wr *wr,
		    unsigned int n);
	/*
	 * tx: payload bytes of a Write that leave in one FPDU, and @message not 0: in one TCP
	 * segment with a Send of so many behind it. Good for the next send(); the path may be
	 * another one behind that
	 */
	unsigned int (*segment)(const struct rnic_stream_mem *mem, unsigned int message);
	/*
	 * tx: tries to send the rest and what the protocol owes (RTR, answers, Terminate; after a
	 * Terminate our FIN): 0 none left, -EAGAIN, errno
	 */
	int (*flush)(const struct rnic_stream_mem *mem, int fd);
	/* Any: is there something for flush()? start() and receive() do not send it */
	bool (*owes)(const struct rnic_stream_mem *mem);
	/* rx, of @in, or @tx, of @rest: does it hold bytes? Else it may be other memory later */
	bool (*uses)(const struct rnic_stream_mem *mem, bool tx);
	/*
	 * tx: @on: segments hold whole FPDUs, for a peer that may be siw. So from the start when
	 * CRC is in use
	 */
	void (*align)(const struct rnic_stream_mem *mem, bool on);
	/*
	 * rx: takes in what is there. @budget 0: until the socket is empty; else at least one recv,
	 * and no further one when that many bytes have come or the socket gave less than it was
	 * asked for. It stops behind a MiB or 1,000 FPDUs and one recv more: info() has `more`.
	 * Bytes taken; an end or a fault behind them is told by the next call, so call until no
	 * bytes come. -EAGAIN none; 0 the peer's end; -errno broken: -EPROTO a fault that we found
	 * (flush() sends its Terminate), -ECONNRESET a Terminate of the peer's or a cut, or TCP's
	 * own. Once broken, each call throws away what has come and says so again.
	 */
	ssize_t (*receive)(const struct rnic_stream_mem *mem, int fd, const struct rnic_sink *sink,
			   size_t budget);

	/* Any: no lock needed, may be out of date when it returns */
	void (*info)(const struct rnic_stream_mem *mem, struct rnic_stream_info *info);
	/* tx: our FIN, after the rest is sent (-EAGAIN: not yet) */
	int (*shutdown)(const struct rnic_stream_mem *mem, int fd);
	const struct rnic_onesided_ops *onesided; /* NULL: it has none */
	const struct rnic_carrier_ops *carrier;
	/* NULL: connections are the socket's; else: Sends are of four bytes */
	const struct rnic_native_ops *native;
};

#endif
