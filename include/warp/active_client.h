/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Clients of Active RDMA; include <warp/active.h>. See warp_active_connect(3),
 * warp_active_object(3) and warp_active_run(3).
 */
#ifndef WARP_ACTIVE_CLIENT_H
#define WARP_ACTIVE_CLIENT_H

#include <warp/active_base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct warp_pd;
struct warp_active_client;
struct warp_active_object;
struct warp_active_request;

/* --- connections -------------------------------------------------------------------------- */

/* 0 and NULL: the default */
struct warp_active_client_attr {
	const char *provider; /* as of warp_device_open() */
	const void *token;    /* what the server may ask for; copied by the call */
	size_t token_len;     /* up to 508 */
	unsigned int window;  /* requests without an answer, if the server allows as many: 16 */
	int timeout_ms;	      /* of the connection set-up: 10 s */
	unsigned int spin_us; /* how long a waiting call looks itself before it sleeps: 0 */
};

/* Waits until the server has told its regions. -ECONNREFUSED: it does not want us */
int warp_active_connect(const struct sockaddr *addr, socklen_t len,
			const struct warp_active_client_attr *attr,
			struct warp_active_client **out);
/* -EBUSY while there are requests that nobody waited for or dropped */
int warp_active_disconnect(struct warp_active_client *client);
/* For memory of the program's own, to be used by warp_active_access() */
struct warp_pd *warp_active_pd(struct warp_active_client *client);

struct warp_active_region_info {
	char name[256];
	uint64_t addr, size; /* where programs see it; also the tagged offset of RDMA */
	uint32_t stag;	     /* 0: not reachable by RDMA */
	unsigned int rights; /* enum warp_active_right */
	unsigned int number; /* for warp_active_grant and warp_active_access */
};

/* Region number @i of those that the server gives this client; -ENOENT behind the last */
int warp_active_region_get(const struct warp_active_client *client, unsigned int i,
			   struct warp_active_region_info *out);
int warp_active_region_find(const struct warp_active_client *client, const char *name,
			    struct warp_active_region_info *out);

/* --- objects ------------------------------------------------------------------------------ */

/* An ELF file for eBPF, which is copied. -E2BIG: more than 32 MiB */
int warp_active_object_create(const void *elf, size_t len, struct warp_active_object **out);
int warp_active_object_open(const char *path, struct warp_active_object **out);
/* No request may use it any more */
void warp_active_object_destroy(struct warp_active_object *object);
/* Its SHA-256, by which servers know it */
void warp_active_object_hash(const struct warp_active_object *object, uint8_t hash[32]);

/* --- requests ----------------------------------------------------------------------------- */

struct warp_active_grant {
	uint32_t region, rights; /* its number; what this run needs of the client's rights */
};

/* What is pointed to must stay until the request has ended */
struct warp_active_run {
	const struct warp_active_object *object;
	const char *function; /* NULL: the first */
	const void *args;
	size_t args_len; /* up to 16,384 */
	const struct warp_active_grant *grants;
	size_t grant_count;	 /* up to 64 */
	uint64_t fuel;		 /* instructions; 0: as many as the server allows */
	unsigned int timeout_us; /* from arrival at the server; 0: as long as it allows */
	void *output;
	size_t output_room; /* up to 65,536 */
};

struct warp_active_result {
	enum warp_active_code code;
	uint64_t value;	     /* what the function returned; of atomics: the number before */
	size_t output;	     /* bytes of output, or that were read */
	uint64_t fuel;	     /* instructions that were used */
	uint32_t pc;	     /* where it stopped, if it did not end: instruction, */
	uint32_t len;	     /* and length, */
	uint64_t addr;	     /* address */
	unsigned int rights; /* and kind of the access */
	char text[1025];     /* the same for people, with the source line; "" for OK */
};

enum warp_active_op {
	WARP_ACTIVE_OP_READ,
	WARP_ACTIVE_OP_WRITE,
	WARP_ACTIVE_OP_COMPARE_SWAP,
	WARP_ACTIVE_OP_FETCH_ADD,
};

/* One operation of RDMA on a region: no program at the server's end takes part */
struct warp_active_access {
	enum warp_active_op op;
	uint32_t region;
	uint64_t offset;	 /* atomics: a multiple of 8 */
	void *buffer;		 /* READ, WRITE; must stay until the request has ended */
	size_t len;		 /* up to 65,536, or with @stag as much as the region has */
	uint32_t stag;		 /* 0, or of a region of warp_active_pd() that holds the buffer */
	uint64_t compare, value; /* COMPARE_SWAP: new value; FETCH_ADD: addend */
};

/*
 * Begin, and do not wait. The client sends the object if the server does not have it, and what
 * is more than the window by and by. -EINVAL: over a limit; -ECONNRESET: the connection is over.
 */
int warp_active_start(struct warp_active_client *client, const struct warp_active_run *run,
		      struct warp_active_request **out);
int warp_active_access(struct warp_active_client *client, const struct warp_active_access *access,
		       struct warp_active_request **out);
/*
 * Waits for the end: 0, -ECONNRESET the connection ended first, -EACCES the peer refused an
 * access; then the request is gone. After -ETIMEDOUT and -EINTR it is not. @result may be NULL.
 */
int warp_active_wait(struct warp_active_request *request, int timeout_ms,
		     struct warp_active_result *result);
/* Asks the server to give up; the request ends with CANCELLED, or as it would have */
int warp_active_cancel(struct warp_active_request *request);
/* Cancels, and forgets: memory that the request uses is the caller's again */
void warp_active_drop(struct warp_active_request *request);
/* start and wait */
int warp_active_run(struct warp_active_client *client, const struct warp_active_run *run,
		    struct warp_active_result *result);

/* --- programs in the server's kernel -------------------------------------------------------- */

struct warp_active_place;

enum { WARP_ACTIVE_PLACE_MAX = 1024 };

/*
 * Has the server put the program into its kernel, with the object, the function and the grants of
 * @run; *@out is set if @result is OK. REFUSED: it cannot be there, and its text says why
 */
int warp_active_install(struct warp_active_client *client, const struct warp_active_run *run,
			struct warp_active_place **out, struct warp_active_result *result);
/*
 * Runs it there, by datagrams: up to PLACE_MAX bytes of arguments, and of output. One thread at a
 * time. -ETIMEDOUT: no answer came, and whether it ran is not known; -ECONNREFUSED: the server's
 * end is gone. The result's text is that of its code.
 */
int warp_active_place_run(struct warp_active_place *place, const void *args, size_t args_len,
			  void *output, size_t output_room, int timeout_ms,
			  struct warp_active_result *result);
/* For those who spin: look for an answer so long before sleeping */
void warp_active_place_spin(struct warp_active_place *place, unsigned int spin_us);
void warp_active_place_close(struct warp_active_place *place);

/*
 * For event loops: up to @n requests that have ended and were not given yet; each is still to be
 * waited for or dropped. When it gives none, warp_active_fd() becomes readable once one may have.
 */
int warp_active_poll(struct warp_active_client *client, struct warp_active_request **done, int n);
int warp_active_fd(struct warp_active_client *client);
/* What the program gave for it */
void warp_active_context_set(struct warp_active_request *request, void *context);
void *warp_active_context(const struct warp_active_request *request);

#ifdef __cplusplus
}
#endif

#endif
