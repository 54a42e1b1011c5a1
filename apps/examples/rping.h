/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_RPING_H
#define APPS_EXAMPLES_RPING_H

#include <stdbool.h>
#include <stdint.h>

#include "endpoint.h"

#define RPING_PORT 7174
#define RPING_SIZE 64
#define RPING_SIZE_MIN 26 /* a number of ten digits and its words */
#define RPING_SIZE_MAX 65535
#define RPING_DEPTH 16

struct rping_options {
	bool server, client, persistent;
	unsigned int verbose, validate, debug;
	uint32_t count; /* 0: without end */
	uint32_t size;	/* 0: not given */
	uint16_t port;
	const char *host, *source_host;
	struct sockaddr_storage addr, source;
	const char *provider;
	unsigned int conn_flags; /* enum warp_conn_flag */
	int timeout_ms;
};

/* On the wire: where a buffer of the client is. In the other direction only its size counts. */
#define RPING_INFO_LEN 16

struct rping_info {
	uint64_t to;
	uint32_t stag;
	uint32_t size;
};

/* One connection, either side */
struct rping_side {
	const struct rping_options *opt;
	struct endpoint ep;
	uint32_t size;	/* octets of data, and of ping */
	char *data;	/* server: what it has read; client: what came back */
	char *ping;	/* client only: what it sends */
	uint8_t *notes; /* two of RPING_INFO_LEN: out, in */
	struct warp_mr *data_mr, *ping_mr, *notes_mr;
};

/* 0, or the status to exit with plus one */
int rping_options_parse(struct rping_options *opt, int argc, char **argv);

int rping_side_open(struct rping_side *s, const struct rping_options *opt, struct warp_device *dev,
		    uint32_t size);
void rping_side_close(struct rping_side *s);
struct warp_conn_param rping_side_param(const struct rping_side *s);
/* Tells the peer of @size octets at @p; all 0: only go ahead */
int rping_side_tell(struct rping_side *s, const void *p, const struct warp_mr *mr, uint32_t size);
/* Waits for the peer's turn and posts the receive for its next one */
int rping_side_hear(struct rping_side *s, struct rping_info *info);
/* A Read into, or a Write out of the data, complete when it returns */
int rping_side_move(struct rping_side *s, enum warp_wr_opcode opcode, const struct rping_info *info,
		    uint32_t len);

int rping_client_run(const struct rping_options *opt, struct warp_device *dev);
int rping_server_run(const struct rping_options *opt, struct warp_device *dev);

#endif
