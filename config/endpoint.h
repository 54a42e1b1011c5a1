/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CONFIG_ENDPOINT_H
#define CONFIG_ENDPOINT_H

#include <stddef.h>

#include "config/rule.h"

/* A part of a text, not ended by NUL */
struct config_word {
	const char *at;
	size_t len;
};

/*
 * The last field of a rule, <address[/length]|*>:<port[-port]|*>, into family, addr, prefix and
 * ports of @r. NULL, or what was expected instead of that part of the word that @w is then; it
 * is empty where something is missing.
 */
const char *config_endpoint_parse(struct config_word *w, struct config_rule *r);

#endif
