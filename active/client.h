/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_CLIENT_H
#define ACTIVE_CLIENT_H

/*
 * The inside of a client. A request waits in a queue, is sent in one of as many slots as the
 * window has, and is done when its answer is there. active/exchange.c does that; active/client.c
 * has the calls of programs.
 */

#include <pthread.h>
#include <stdbool.h>
#include <warp/rdma.h>

#pragma GCC visibility push(default) /* what the library exports */
#include <warp/active_client.h>
#pragma GCC visibility pop

#include "active/wire.h"
#include "base/list.h"
#include "base/process.h"

enum {
	ACTIVE_SLOT_ROOM = (ACTIVE_WIRE_REQUEST_MAX + 63) & ~63,
	ACTIVE_PART = 16384,	    /* octets of an object in one message */
	ACTIVE_ACCESS_ROOM = 65536, /* of one access that is copied */
	ACTIVE_CLIENT_INLINE = 512, /* a message up to that size needs no memory once it is sent */
	ACTIVE_TRIES = 4,	    /* of a run whose object the server forgets again and again */
	ACTIVE_SPARE_REQUESTS = 16, /* that are kept for the next calls */
};

/* wr_id: a kind, and the number of a slot or receive */
enum active_wr {
	ACTIVE_WR_RECV = 0x10000,
	ACTIVE_WR_SLOT = 0x20000,
	ACTIVE_WR_CANCEL = 0x30000,
	ACTIVE_WR_ACCESS = 0x40000,
	ACTIVE_WR_KINDS = 0xf0000,
};

struct warp_active_object {
	unsigned int users; /* atomic: the program and requests */
	uint8_t hash[ACTIVE_WIRE_HASH];
	size_t len;
	uint8_t bytes[];
};

enum active_request_state {
	ACTIVE_REQUEST_QUEUED,
	ACTIVE_REQUEST_SENT,
	ACTIVE_REQUEST_LOADING, /* it waits for its object to be there */
	ACTIVE_REQUEST_DONE,
};

struct warp_active_request {
	struct base_list link; /* in the queue, in a load's list, or in the list of those done */
	struct warp_active_client *client;
	enum active_request_state state;
	bool access, orphan, given; /* given: by warp_active_poll() */
	bool install;
	unsigned int slot; /* while it is SENT */
	unsigned int tries;
	int error;
	union {
		struct warp_active_run run;
		struct warp_active_access op;
	};
	struct warp_active_object *object; /* a reference; or NULL */
	void *context;
	struct base_list cancel; /* in the list of those that are to be cancelled */
	struct warp_active_result result;
};

/* One object on its way to the server */
struct active_load {
	struct base_list link;
	struct warp_active_object *object;
	struct base_list waiting; /* requests */
	uint64_t id;
	size_t offset;	    /* of the next part */
	unsigned int parts; /* without an answer */
	bool over;
};

/* A slot is free when its Send is complete and its answer is there */
struct active_slot {
	uint64_t id;
	bool sending, unanswered;
	struct warp_active_request *request; /* or: */
	struct active_load *load;
};

struct warp_active_client {
	struct warp_device *dev;
	struct warp_pd *pd;
	struct warp_cq *cq;
	struct warp_qp *qp;
	struct warp_conn *conn;
	struct warp_mr *mr;
	uint8_t *memory; /* of the slots, then of accesses, then of receives */
	size_t memory_size;
	unsigned int window, spin_us, inline_max;
	struct base_process owner; /* that connected */
	struct warp_active_region_info *regions;
	unsigned int region_count;
	bool welcome;

	pthread_mutex_t lock; /* of all below */
	pthread_cond_t changed;
	bool driving;			/* a thread takes completions, and no other must */
	int error;			/* why the connection is over, or 0 */
	unsigned int requests, orphans; /* all; and those that nobody waits for any more */
	uint64_t last_id;
	struct active_slot *slots;
	struct warp_active_request **accesses; /* that are under way */
	unsigned int accesses_most;
	struct base_list queue, access_queue, done, loads, cancels;
	bool cancelling;
	int owed; /* the receive that was used last and is not posted again yet, or -1 */
	struct base_list spare; /* requests that are free */
	unsigned int spares;
};

/* --- active/object.c ---------------------------------------------------------------------- */

struct warp_active_object *active_object_get(const struct warp_active_object *object);
void active_object_put(struct warp_active_object *object);

/* --- active/client.c ---------------------------------------------------------------------- */

/* As warp_active_run(), but the program is put into the kernel: the output tells where */
int active_install(struct warp_active_client *client, const struct warp_active_run *run,
		   struct warp_active_result *result);

/* --- active/link.c: connection and memory ------------------------------------------------- */

/* Until the connection stands and all receives are posted */
int active_link_open(struct warp_active_client *c, const struct sockaddr *addr, socklen_t len,
		     const struct warp_active_client_attr *attr);
void active_link_close(struct warp_active_client *c);
int active_link_receive(struct warp_active_client *c, unsigned int i);
/* Posts the one that is owed */
int active_link_repay(struct warp_active_client *c);
uint8_t *active_link_slot(const struct warp_active_client *c, unsigned int i);
uint8_t *active_link_access(const struct warp_active_client *c, unsigned int i);
const uint8_t *active_link_answer(const struct warp_active_client *c, unsigned int i);
/* Sends @len octets of slot @i; its memory is in use until then if c->slots[i].sending says so */
int active_link_send(struct warp_active_client *c, unsigned int i, size_t len);

/* --- active/exchange.c: under client.lock ------------------------------------------------- */

/* Sends what there is room for */
void active_exchange_pump(struct warp_active_client *c);
void active_exchange_take(struct warp_active_client *c, const struct warp_wc *wc);
/* All requests end with @error */
void active_exchange_fail(struct warp_active_client *c, int error);
/* It is in the list of those done, or, of an orphan, gone */
void active_request_done(struct warp_active_request *r, int error);
/* The request is in no list; its memory goes */
void active_request_free(struct warp_active_request *r);

#endif
