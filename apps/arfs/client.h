/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_CLIENT_H
#define APPS_ARFS_CLIENT_H

/*
 * A client of ARFS: what the FUSE file system and the tools ask of a server. Any thread may call.
 * Calls return 0 or a negative errno.
 *
 * A connection that is over is made again by the next call, for up to wait_ms. What was under way
 * then is done again if that does not matter, or else is -EIO: nobody knows if it was done.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "ask.h"

struct client;

struct client_attr {
	struct sockaddr_storage addr;
	unsigned int spin_us, wait_ms;
	bool one_sided; /* reads by RDMA alone */
};

int client_open(const struct client_attr *attr, struct client **out);
void client_close(struct client *c);

int client_lookup(struct client *c, uint64_t dir, const char *name, struct arfs_attr *out);
int client_getattr(struct client *c, uint64_t node, struct arfs_attr *out);
/*
 * struct arfs_listed, from @offset on, into up to ARFS_LIST_MAX bytes: how many bytes. @flags
 * ARFS_PLUS, which a client that reads one-sided has not, or 0
 */
long client_list(struct client *c, uint64_t dir, uint64_t offset, uint32_t flags, void *to,
		 size_t room);
/* How many bytes; fewer than @len at the end of the file alone */
long client_read(struct client *c, uint64_t node, uint64_t offset, void *to, size_t len);
int client_space(struct client *c, struct arfs_space *out);

/* A change of arfs.bpf.c by its name; the time is filled in, @other may be NULL */
int client_change(struct client *c, const char *what, const struct arfs_ask *ask, const char *name,
		  const char *other, struct arfs_changed *out);
/* How many bytes, or an error if there are none; @flags ARFS_APPEND or 0 */
long client_write(struct client *c, uint64_t node, uint64_t offset, uint32_t flags,
		  const void *from, size_t len);
/*
 * How many changes and writes have come to their end. What was read when there were fewer may be
 * from before one of them. A change is counted before its call returns
 */
uint64_t client_changes(const struct client *c);
/* release, mend, fsync */
int client_simple(struct client *c, const char *what, uint64_t node, uint32_t flags);

/* The server's memory, for those who send programs of their own; it may change with a connection */
struct warp_active_run;
struct warp_active_result;
int client_run(struct client *c, struct warp_active_run *run, unsigned int rights,
	       struct warp_active_result *result);

#endif
