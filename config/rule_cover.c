/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules that can never decide, because one before them matches all that they match. Patterns of
 * programs are compared as text, but for "*": of other patterns nobody says that one includes
 * another. So what is found is certain, and not all of it is found.
 */
#include <stdbool.h>
#include <string.h>

#include "base/bits.h"
#include "config/rule.h"

static bool prefix_covers(const struct config_rule *a, const struct config_rule *b)
{
	unsigned int bytes = a->prefix / 8, rest = a->prefix % 8;

	if (a->prefix > b->prefix || memcmp(a->addr, b->addr, bytes))
		return false;
	return !rest || !((a->addr[bytes] ^ b->addr[bytes]) >> (8 - rest));
}

static bool covers(const struct config_rule *a, const struct config_rule *b, uint8_t role)
{
	if (!(a->roles & role) || (strcmp(a->program, "*") && strcmp(a->program, b->program)))
		return false;
	if (a->family != CONFIG_ANY_FAMILY && (a->family != b->family || !prefix_covers(a, b)))
		return false;
	return a->port_first <= b->port_first && a->port_last >= b->port_last;
}

/* The first rule before @rule that has all that @rule could have in this role */
static const struct config_rule *cover_of(const struct config_rules *rules,
					  const struct config_rule *rule, uint8_t role)
{
	const struct config_rule *r = NULL;

	while ((r = config_rule_next(rules, r)) != rule)
		if (covers(r, rule, role))
			return r;
	return NULL;
}

const struct config_rule *config_rule_shadow(const struct config_rules *rules,
					     const struct config_rule *rule)
{
	static const uint8_t roles[] = { CONFIG_CLIENT, CONFIG_SERVER };
	const struct config_rule *found = NULL;

	for (size_t i = 0; i < base_array_size(roles); i++) {
		if (!(rule->roles & roles[i]))
			continue;
		found = cover_of(rules, rule, roles[i]);
		if (!found)
			break;
	}
	return found;
}
