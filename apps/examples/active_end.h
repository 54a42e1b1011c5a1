/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_ACTIVE_END_H
#define APPS_EXAMPLES_ACTIVE_END_H

#include <stdbool.h>
#include <warp/active.h>

enum { ACTIVE_END_PLACES = 4 };

/*
 * What the example programs of Active RDMA have in common: a client with one region and one object,
 * and how long something takes. Calls return 0 or -errno.
 */
struct active_end {
	struct warp_active_client *client;
	struct warp_active_object *object;
	struct warp_active_region_info region;
	unsigned int spin_us;
	bool in_kernel; /* programs run in the server's kernel; those that cannot, in the server */
	struct {
		const char *function; /* NULL: none */
		struct warp_active_place *place;
	} places[ACTIVE_END_PLACES];
};

/* @elf: an object. What was opened is closed also after a failure */
int active_end_open(struct active_end *e, const struct sockaddr_storage *addr, unsigned int spin_us,
		    const char *region, const void *elf, size_t len);
void active_end_close(struct active_end *e);
/* One operation of RDMA; result->value is what an atomic one found */
int active_end_access(struct active_end *e, const struct warp_active_access *access,
		      struct warp_active_result *result);
/* -EPROTO: the program failed, and standard error says why */
int active_end_run(struct active_end *e, const char *function, unsigned int rights,
		   const void *args, size_t args_len, void *output, size_t room,
		   struct warp_active_result *result);
/* Does it once, and then so often more: the median, in microseconds, if it is more than 0 times */
int active_end_time(int (*what)(void *arg), void *arg, unsigned long times, double *median);

#endif
