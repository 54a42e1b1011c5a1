/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CONFIG_REASON_H
#define CONFIG_REASON_H

#include "config/reason_list.h"

/*
 * Reason codes: CONFIG_REASON_PEER_UNKNOWN and so on. Reports use the names without the prefix,
 * DDP_INFO the numbers.
 */
enum config_reason {
#define X(name, number, group, text, advice) CONFIG_REASON_##name = (number),
	CONFIG_REASON_LIST(X)
#undef X
};

enum config_reason_group {
	CONFIG_REASON_CHOICE, /* this end did not want DDP */
	CONFIG_REASON_PEER,   /* the other end does not speak it */
	CONFIG_REASON_HOST,   /* this end could not */
	CONFIG_REASON_END,    /* it was on DDP and ended */
};

struct config_reason_row {
	enum config_reason number;
	enum config_reason_group group;
	const char *name;
	const char *text;   /* a sentence */
	const char *advice; /* what to do about it; may be empty */
};

/* NULL behind the last one; in the order of the numbers */
const struct config_reason_row *config_reason_at(unsigned int i);

/* Never NULL: a number that does not exist is "UNKNOWN". */
const char *config_reason_name(unsigned int number);
const char *config_reason_text(unsigned int number);
const char *config_reason_advice(unsigned int number);

/*
 * What start-up that failed with @error (errno, positive) is told as; an errno that says nothing
 * in particular is PEER_NOT_MPA. And by place in that table, for who shows it: 0 behind the end.
 */
enum config_reason config_reason_of_error(int error);
int config_reason_error_at(unsigned int i, enum config_reason *out);

#endif
