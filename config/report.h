/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CONFIG_REPORT_H
#define CONFIG_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/reason.h"

/*
 * The report of a command: one line of JSON, which each of its processes reads, adds to and writes
 * when it ends. The launcher makes the first, of zeros, and reads the last. warpsock(1) has it for
 * users. No function here allocates.
 */
enum config_report_number {
	CONFIG_REPORT_SOFTWARE,
	CONFIG_REPORT_KERNEL,
	CONFIG_REPORT_VERBS,
	CONFIG_REPORT_TCP,
	CONFIG_REPORT_BYTES_TX,
	CONFIG_REPORT_BYTES_RX,
	CONFIG_REPORT_FPDUS_TX,
	CONFIG_REPORT_FPDUS_RX,
	CONFIG_REPORT_NOT_INTERPOSED, /* programs that were executed */
	CONFIG_REPORT_ERRORS,
	CONFIG_REPORT_WAITS, /* what became of waits: in the order of preload/guard/spin.h */
	CONFIG_REPORT_NUMBERS = CONFIG_REPORT_WAITS + 11,
};

#define X(name, number, group, text, advice) +1
enum { CONFIG_REPORT_REASONS = CONFIG_REASON_LIST(X) };
#undef X

#define CONFIG_REPORT_MAX 4096
#define CONFIG_REPORT_PEER 64

struct config_report {
	unsigned long long n[CONFIG_REPORT_NUMBERS];
	unsigned long long reason[CONFIG_REPORT_REASONS]; /* by place in the list */
	/* The first connection that stayed on TCP unasked: address and port, and why; or empty */
	char peer[CONFIG_REPORT_PEER];
	unsigned int why;
};

/* Atomic */
void config_report_reason(struct config_report *r, enum config_reason reason, unsigned int n);
/* @newer comes behind @to */
void config_report_add(struct config_report *to, const struct config_report *newer);
/* With its newline; the length */
size_t config_report_format(const struct config_report *r, char out[CONFIG_REPORT_MAX]);
/* -EINVAL: @text is something else. An empty one is a report of zeros */
int config_report_parse(struct config_report *r, const char *text);

/* --- what the processes of a command share ------------------------------------------------- */

enum config_line {
	CONFIG_LINE_UP,
	CONFIG_LINE_PLAIN,
	CONFIG_LINE_FAILED,
	CONFIG_LINE_UNLOADABLE,
	CONFIG_LINES,
};

/* Each number in it is atomic: any process of the command changes it at any time */
struct config_tally {
	struct config_report sums; /* what no process has added to the report yet */
	uint32_t peer;		   /* of its peer: enum config_tally_peer */
	uint32_t over;		   /* the command's own process has ended */
	struct {
		uint64_t told; /* when; 0: never */
		uint32_t left_out;
	} lines[CONFIG_LINES];
};

enum config_tally_peer { CONFIG_TALLY_NO_PEER, CONFIG_TALLY_WRITES_PEER, CONFIG_TALLY_PEER };

/* It stands in the launcher's file of counts, behind the text, and is the end of that file */
#define CONFIG_TALLY_AT 4096
#define CONFIG_TALLY_SIZE (CONFIG_TALLY_AT + sizeof(struct config_tally))
_Static_assert(CONFIG_REPORT_MAX <= CONFIG_TALLY_AT, "the text has room");

/*
 * Each process of a command adds to the report's file under a lock on it. 0 or -errno. Another
 * user who may read the file can lock it as well, so it is tried for two seconds: -EWOULDBLOCK.
 */
int config_report_lock(int fd);

/* The sums as they are; @take: they are nought then, for they are added to the report now */
void config_tally_read(struct config_tally *t, bool take, struct config_report *out);

#endif
