/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_INSIDE_H
#define ACTIVE_INSIDE_H

/*
 * The inside of a server: sessions of clients, their tasks, the lane that hears them, and the pool
 * of threads for what takes long. active/server.c has the drawing.
 */

#include <pthread.h>
#include <stdbool.h>
#include <warp/rdma.h>

#pragma GCC visibility push(default) /* what the library exports */
#include <warp/active_server.h>
#pragma GCC visibility pop

#include "active/cache.h"
#include "active/region.h"
#include "active/wire.h"
#include "base/list.h"
#include "bpf/run.h"

enum {
	ACTIVE_FRONT_MAX = 16 + 48 + ACTIVE_WIRE_TEXT_MAX,
	ACTIVE_REQUEST_ROOM = (ACTIVE_WIRE_REQUEST_MAX + 63) & ~63,
	ACTIVE_INLINE = 512, /* octets of an answer that need no memory of their own */
	ACTIVE_WORKERS_MAX = 64,
	ACTIVE_SPARE_RUNS = 64, /* that are kept for the next program */
};

/* What helpers know of a run; the cookie of the engine's run. active/helper.c */
struct active_call {
	const struct active_view *views[ACTIVE_WIRE_REGIONS_MAX];
	unsigned int rights[ACTIVE_WIRE_REGIONS_MAX];
	size_t count;
	uint64_t *heap_used, heap_max; /* of the client; atomic: programs run at once */
	bool brief;		       /* in this turn others wait for the thread */
};

/*
 * A task is one message of a client and the memory that it came in. The client's queue pair has
 * a receive for each that is IDLE.
 */
enum active_task_state {
	ACTIVE_TASK_IDLE,
	ACTIVE_TASK_WAITING, /* for its turn to begin */
	ACTIVE_TASK_READY,   /* begun; for its next turn */
	ACTIVE_TASK_RUNNING,
};

struct active_task {
	struct base_list link;	  /* in the session's list of WAITING or READY */
	struct base_list waiting; /* in the pool's, of WAITING */
	struct active_session *session;
	enum active_task_state state; /* under pool.lock, as all that is not the message's */
	unsigned int number;
	uint8_t *request;
	struct active_message m; /* points into the request */
	bool cancelled;		 /* atomic */
	bool fresh;		 /* it has not begun */
	uint64_t due;
	/* From its beginning on */
	int answer; /* number of the memory for its answer, or -1 */
	struct active_object *object;
	struct ebpf_run *run;
	uint64_t fuel, fuel_given;
	uint32_t entry; /* of INSTALL */
	struct active_call call;
	uint8_t *upload; /* LOAD: the whole object */
	size_t upload_len;
};

/* An object that is arriving; the lane's alone */
struct active_upload {
	uint8_t hash[ACTIVE_WIRE_HASH];
	uint64_t id;
	uint8_t *bytes;
	size_t size, got, room;
	uint64_t since; /* when its first part came */
};

struct active_session {
	struct base_list link;	/* in the lane's list; under server.lock */
	struct base_list ready; /* in the pool's, if a task of it could have a turn */
	struct warp_active_server *server;
	struct warp_pd *pd;
	struct warp_qp *qp;
	struct warp_conn *conn;
	struct sockaddr_storage peer;
	struct warp_mr *mr; /* of all memory below */
	uint8_t *memory;
	size_t memory_size;
	struct active_task *tasks;
	unsigned int task_count;
	uint8_t *answers;
	uint8_t *answer_free; /* numbers of those that are free: a stack */
	unsigned int answers_free;
	struct active_view views[ACTIVE_REGIONS_MAX];
	unsigned int view_count;
	struct base_list own; /* regions that are for this client alone; under server.lock */
	bool greeted, over;   /* the lane's alone; over: its connection has ended */
	bool may_run;
	struct active_upload upload;
	/* Under pool.lock */
	struct base_list waiting, begun;
	unsigned int busy, turns; /* tasks that are not idle; those that run at this moment */
	uint64_t debt, debt_at;	  /* time that its programs took lately, and when that was */
	uint64_t heap_used;	  /* atomic */
};

struct active_pool {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct base_list ready;	      /* sessions, the next one first */
	struct base_list all_waiting; /* tasks */
	unsigned int idle;	      /* workers that wait */
	unsigned int waiting;	      /* tasks that wait to begin */
	uint64_t next_due;	      /* of those; or earlier */
	bool stop;
	pthread_t threads[ACTIVE_WORKERS_MAX];
	unsigned int count;
	struct ebpf_run *spare[ACTIVE_SPARE_RUNS];
	unsigned int spares;
};

struct active_udp;
struct active_kernel;

struct warp_active_server {
	struct warp_active_server_attr attr; /* with the defaults filled in */
	struct warp_device *dev;
	struct warp_cq *cq;
	struct warp_listener *listener;
	struct active_cache *cache;
	struct active_pool pool;
	unsigned int inline_max;
	pthread_mutex_t lock; /* regions and sessions; before pool.lock */
	struct base_list regions, sessions;
	unsigned int region_count;
	pthread_t door_thread, lane_thread;
	bool door_runs, lane_runs, stop; /* stop: atomic */
	uint64_t uploading;		 /* bytes of objects that are arriving; atomic */
	struct active_session *last;	 /* that the lane heard; the lane's alone, not to be used */
	uint64_t other_at;		 /* when it heard another one than before */
	uint64_t sweep_at;		 /* when it looks at all sessions; the lane's alone */
	unsigned int ending;		 /* sessions that are over; the lane's alone */
	struct warp_active_stats stats;	 /* each member is atomic */
	struct active_udp *udp;
	struct active_kernel *kernel;
};

#define active_count(server, member, n) \
	__atomic_add_fetch(&(server)->stats.member, (n), __ATOMIC_RELAXED)

/* Where programs see their arguments: below the engine's own addresses, and where no process has
 * memory */
#define ACTIVE_ARGS_ADDR 0x7fff000000000000u

/* active/helper.c */
extern const struct ebpf_helpers active_helpers;
/* The run has ended: the locks that it still has are free, and their next owners are told */
void active_locks_break(struct active_call *call);

/* active/request.c: a message of a client. False: it makes no sense, and the connection ends */
bool active_request_take(struct active_task *task, size_t len, bool alone, uint64_t now);
void active_upload_drop(struct active_session *s);

/* active/lane.c, active/door.c: the server's threads */
int active_lane_start(struct warp_active_server *server);
int active_door_start(struct warp_active_server *server);

/* active/udp.c */
void active_udp_destroy(struct active_udp *udp);

#endif
