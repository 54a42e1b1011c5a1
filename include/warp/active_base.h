/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What clients and servers of Active RDMA have in common; include <warp/active.h>.
 */
#ifndef WARP_ACTIVE_BASE_H
#define WARP_ACTIVE_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum warp_active_right {
	WARP_ACTIVE_READ = 1,
	WARP_ACTIVE_WRITE = 2,
	WARP_ACTIVE_ATOMIC = 4,
	WARP_ACTIVE_RUN = 8, /* programs may use the region, with the other rights */
};

/* How a request ended; the numbers are those of the messages */
enum warp_active_code {
	WARP_ACTIVE_OK,
	WARP_ACTIVE_FUEL,    /* the fuel or the time is used up */
	WARP_ACTIVE_ADDRESS, /* an access outside of all regions */
	WARP_ACTIVE_RIGHTS,  /* one that the region does not allow */
	WARP_ACTIVE_ALIGN,   /* a misaligned atomic */
	WARP_ACTIVE_DEPTH,   /* too many functions deep */
	WARP_ACTIVE_HELPER,  /* a helper refused */
	WARP_ACTIVE_UNKNOWN, /* no such object */
	WARP_ACTIVE_REFUSED, /* by the loader or the verifier */
	WARP_ACTIVE_BUSY,    /* too much is queued already */
	WARP_ACTIVE_CANCELLED,
	WARP_ACTIVE_MALFORMED,	 /* the request makes no sense */
	WARP_ACTIVE_NO_FUNCTION, /* the object has none of this name */
};

#ifdef __cplusplus
extern "C" {
#endif

/* "the fuel or the time is used up", a text for any value; never NULL */
const char *warp_active_code_text(enum warp_active_code code);

#ifdef __cplusplus
}
#endif

#endif
