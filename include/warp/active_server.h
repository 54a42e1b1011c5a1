/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Servers of Active RDMA; include <warp/active.h>. See warp_active_server(3) and
 * warp_active_export(3).
 */
#ifndef WARP_ACTIVE_SERVER_H
#define WARP_ACTIVE_SERVER_H

#include <warp/active_base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct warp_active_server;
struct warp_active_region;
struct warp_active_session;

/* A client that wants to connect; valid inside of the callback */
struct warp_active_peer {
	const struct sockaddr_storage *addr;
	const void *token; /* what it said */
	size_t token_len;
	struct warp_active_session *session; /* for warp_active_grant() */
};

/* 0: the default that the comment has */
struct warp_active_server_attr {
	const char *provider; /* as of warp_device_open() */
	/*
	 * Decides who may connect: 0, or a negative errno. It gives rights with
	 * warp_active_grant(). Without it everybody has every region with all of its rights.
	 * A thread of the server's calls it, one client at a time.
	 */
	int (*admit)(void *context, const struct warp_active_peer *peer);
	void *context;
	unsigned int clients; /* at once: 256 */
	unsigned int window;  /* requests of one client without an answer: 16, up to 256 */
	unsigned int at_once; /* programs of one client under way: 4, up to the window */
	unsigned int queue;   /* requests of all clients that wait: 1024 */
	unsigned int workers; /* threads for long programs: one for each processor, up to 8 */
	unsigned int time_ms; /* the longest that a run may take: 10 s */
	uint64_t fuel;	      /* the most instructions of a run: 10,000,000,000 */
	size_t cache;	      /* bytes of objects that nobody uses, and of arriving ones: 64 MiB */
	size_t object_max;    /* bytes of the largest object: 1 MiB, up to 32 MiB */
	size_t heap_max;      /* bytes that programs of one client may have allocated: no limit */
	unsigned int spin_us; /* how long the server looks for input before it sleeps: 0 */
	/* Clients of one host: one IPv4 address, or one network /64 of IPv6: as many as clients */
	unsigned int per_host;
};

int warp_active_server_create(const struct warp_active_server_attr *attr,
			      struct warp_active_server **out);
/* Ends all connections and runs; waits for its threads. Regions of the server's own go, too. */
void warp_active_server_destroy(struct warp_active_server *server);
/* Begins to serve. Once for each server; the port may be 0: any free one */
int warp_active_server_listen(struct warp_active_server *server, const struct sockaddr *addr,
			      socklen_t len);
int warp_active_server_addr(const struct warp_active_server *server, struct sockaddr_storage *addr);

struct warp_active_stats {
	unsigned int clients; /* that are connected */
	unsigned int waiting; /* requests that wait for their turn */
	uint64_t runs, loads; /* that were answered */
	uint64_t refused;     /* clients that were not admitted, and requests that were BUSY */
	uint64_t broken;      /* connections that were ended because of what the client sent */
	uint64_t fuel;	      /* instructions that were executed */
	size_t objects, object_bytes;
	size_t heap_bytes;		   /* that programs have allocated */
	unsigned int kernel_programs;	   /* that are in the kernel */
	uint64_t kernel_runs, kernel_fuel; /* the same of these; not in runs and fuel */
};

void warp_active_server_query(struct warp_active_server *server, struct warp_active_stats *stats);

/* --- regions ------------------------------------------------------------------------------ */

enum warp_active_region_flag {
	WARP_ACTIVE_HEAP = 0x1,	     /* programs may allocate memory in it */
	WARP_ACTIVE_NO_RDMA = 0x2,   /* only programs reach it: it has no STag */
	WARP_ACTIVE_IN_KERNEL = 0x4, /* programs in the kernel reach it, too */
};

struct warp_active_region_attr {
	const char *name; /* up to 255 bytes; copied */
	void *memory;	  /* NULL: new memory of the server's own, with nothing behind it */
	size_t size;
	unsigned int rights; /* enum warp_active_right; the most that a client can have */
	unsigned int flags;  /* enum warp_active_region_flag */
	size_t heap_offset;  /* bytes at its beginning that are not for the allocator */
	/*
	 * In admit(): it is for this client alone, which has it with all of @rights. It goes with
	 * the client; its handle is good until admit() returns.
	 */
	const struct warp_active_peer *peer;
	unsigned int arena; /* IN_KERNEL, for more than one client: the arena's number */
};

/*
 * Clients that connect later can have it. It stays until the server is destroyed, and so must
 * @memory. -EEXIST: the name is taken; -E2BIG: 128 regions are there; -EBUSY: programs are in the
 * kernel that would reach it
 */
int warp_active_export(struct warp_active_server *server,
		       const struct warp_active_region_attr *attr, struct warp_active_region **out);
void *warp_active_region_memory(const struct warp_active_region *region);
/* In admit(): this client has the region with these of its rights */
int warp_active_grant(const struct warp_active_peer *peer, struct warp_active_region *region,
		      unsigned int rights);

/* --- programs in the kernel ---------------------------------------------------------------- */

enum warp_active_kernel_flag {
	WARP_ACTIVE_GENERIC = 0x1, /* behind the interface's driver, also where that could do it */
};

/* 0: the default that the comment has */
struct warp_active_kernel_attr {
	const char *interface;	     /* at which requests arrive */
	const struct sockaddr *addr; /* IPv4, of this host, with a UDP port that is not 0 */
	socklen_t len;
	size_t size;	       /* bytes of regions in one arena: 16 MiB, up to 1 GiB */
	unsigned int programs; /* that are there at once: 64, up to 1024 */
	unsigned int each;     /* of one client: 16 */
	uint64_t fuel;	       /* the most instructions of a run: 100,000 */
	unsigned int flags;    /* enum warp_active_kernel_flag */
	uint64_t rate;	       /* instructions in a second of all runs of one client: any number */
};

/*
 * Clients may have programs put into this host's kernel, which answers datagrams to @addr without
 * waking the server. Once for each server, before it exports a region IN_KERNEL. -EOPNOTSUPP: the
 * kernel has no BPF arena; -EPERM: this process may not; -EBUSY: the interface has another program
 */
int warp_active_kernel_serve(struct warp_active_server *server,
			     const struct warp_active_kernel_attr *attr);

/* --- the protocol of the authors ---------------------------------------------------------- */

/*
 * Answers by UDP whoever sends something to @addr, as the prototype of 2010 did: reads, writes
 * and code for all of @region, without any protection. Once for each server. The port may be 0;
 * theirs is 15712. See warp_active_udp(3) for what that means.
 */
int warp_active_udp_serve(struct warp_active_server *server, struct warp_active_region *region,
			  const struct sockaddr *addr, socklen_t len);
int warp_active_udp_addr(const struct warp_active_server *server, struct sockaddr_storage *addr);

#ifdef __cplusplus
}
#endif

#endif
