/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_UNIT_CONFIG_RULES_TEXT_H
#define TESTS_UNIT_CONFIG_RULES_TEXT_H

#include <stdio.h>
#include <string.h>

#include "config/rule.h"

static inline int octets_add(struct config_rules *rules, enum config_source source,
			     const char *name, const char *octets, size_t len,
			     struct config_error *err)
{
	struct config_text text = { source, name, 1, octets, len, NULL };

	return config_rules_add(rules, &text, err);
}

static inline int text_add(struct config_rules *rules, enum config_source source, const char *name,
			   const char *octets, struct config_error *err)
{
	return octets_add(rules, source, name, octets, strlen(octets), err);
}

/* The whole table as rules, with newlines between them */
static inline const char *rules_write(const struct config_rules *rules, char *out, size_t size)
{
	const struct config_rule *r = NULL;
	char rule[CONFIG_RULE_TEXT_MAX];
	size_t at = 0;

	*out = 0;
	while ((r = config_rule_next(rules, r)) && at < size)
		at += (size_t)snprintf(out + at, size - at, "%s%s", at ? "\n" : "",
				       config_rule_format(r, rule, sizeof(rule)));
	return out;
}

#endif
