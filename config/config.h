/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What can be set: one table of options, read from the environment; the launcher writes the
 * same names there.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum config_mode { CONFIG_OFF, CONFIG_AUTO, CONFIG_ON };

struct config {
	bool all; /* every stream socket, not only those that a rule or the program names */
	enum config_mode mode; /* for those */
	char provider[16];     /* empty: the default one */
	char report[PATH_MAX]; /* file for the summary at exit; empty: none */
	uint64_t linger;       /* nanoseconds, as the others: what exit waits for the peer */
	uint64_t grace;	       /* a server that speaks first waits so long for a Request */
	uint64_t start;	       /* connect() waits so long for the Reply */
};

struct config_option {
	const char *env;
	const char *initial; /* as it would be written */
	const char *meaning;
	int (*parse)(struct config *c, const struct config_option *o, const char *text);
	size_t at;
	size_t size;
};

/* The table ends with a row without a name */
extern const struct config_option config_options[];

/*
 * Initial values, then the environment. -EINVAL: a value was wrong and its option keeps the
 * initial one; it was logged.
 */
int config_load(struct config *c);
/* 0, -EINVAL or -ENAMETOOLONG; the launcher checks what it is given with it */
int config_set(struct config *c, const char *env, const char *text);

#endif
