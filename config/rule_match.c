/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asking the table. This is called from the program's own socket calls, so it calls nothing
 * but memory and string functions: no allocation, no lock, no locale, errno untouched (a test
 * looks at the symbols that the object file needs).
 *
 * An IPv4-mapped IPv6 address is an IPv4 address: a program with one IPv6 listener for both
 * families sees its IPv4 peers so, and one rule is to serve it and all others.
 */
#include "config/rule.h"

#include <netinet/in.h>
#include <string.h>

#include "base/bits.h"
#include "config/glob.h"

struct endpoint {
	enum config_family family;
	uint16_t port;
	uint8_t addr[16];
};

static bool endpoint_from_ipv4(struct endpoint *e, const void *addr, socklen_t len)
{
	struct sockaddr_in sin;

	if (len < sizeof(sin))
		return false;
	memcpy(&sin, addr, sizeof(sin));
	e->family = CONFIG_IPV4;
	e->port = be16toh(sin.sin_port);
	memcpy(e->addr, &sin.sin_addr, 4);
	return true;
}

static bool endpoint_from_ipv6(struct endpoint *e, const void *addr, socklen_t len)
{
	struct sockaddr_in6 sin6;

	/* the scope id behind the address is missing where old programs give the length */
	if (len < offsetof(struct sockaddr_in6, sin6_scope_id))
		return false;
	memcpy(&sin6, addr, offsetof(struct sockaddr_in6, sin6_scope_id));
	e->port = be16toh(sin6.sin6_port);
	e->family = IN6_IS_ADDR_V4MAPPED(&sin6.sin6_addr) ? CONFIG_IPV4 : CONFIG_IPV6;
	if (e->family == CONFIG_IPV4)
		memcpy(e->addr, sin6.sin6_addr.s6_addr + 12, 4);
	else
		memcpy(e->addr, sin6.sin6_addr.s6_addr, 16);
	return true;
}

static bool endpoint_from(struct endpoint *e, const struct sockaddr *addr, socklen_t len)
{
	sa_family_t family;

	if (len < sizeof(family))
		return false;
	memcpy(&family, addr, sizeof(family));
	if (family == AF_INET)
		return endpoint_from_ipv4(e, addr, len);
	return family == AF_INET6 && endpoint_from_ipv6(e, addr, len);
}

static bool prefix_matches(const uint8_t *a, const uint8_t *b, unsigned int bits)
{
	unsigned int octets = bits / 8, rest = bits % 8;

	if (memcmp(a, b, octets))
		return false;
	return !rest || !((a[octets] ^ b[octets]) >> (8 - rest));
}

static bool rule_fits(const struct config_rule *r, enum config_role role, const char *program,
		      const struct endpoint *e)
{
	if (!(r->roles & role) || e->port < r->port_first || e->port > r->port_last)
		return false;
	if (r->family != CONFIG_ANY_FAMILY &&
	    (r->family != e->family || !prefix_matches(r->addr, e->addr, r->prefix)))
		return false;
	return config_rule_is_for(r, program);
}

bool config_rule_is_for(const struct config_rule *rule, const char *program)
{
	return config_glob_match(rule->program, program);
}

const char *config_rule_provider(const struct config_rule *rule)
{
	static const char *const words[] = {
		[CONFIG_BY_SETTING] = NULL,
		[CONFIG_BY_ROUTE] = "auto",
		[CONFIG_BY_SOFT] = "soft",
		[CONFIG_BY_VERBS] = "verbs",
	};

	return words[rule->by];
}

const struct config_rule *config_rule_next(const struct config_rules *rules,
					   const struct config_rule *rule)
{
	const uint8_t *at = rule ? (const uint8_t *)rule + rule->size : rules->octets;

	return at < rules->octets + rules->size ? (const struct config_rule *)(const void *)at
						: NULL;
}

const struct config_rule *config_rule_find(const struct config_rules *rules, enum config_role role,
					   const char *program, const struct sockaddr *addr,
					   socklen_t len)
{
	const struct config_rule *r = NULL;
	struct endpoint e;

	if (!endpoint_from(&e, addr, len))
		return NULL;
	while ((r = config_rule_next(rules, r)))
		if (rule_fits(r, role, program, &e))
			return r;
	return NULL;
}

enum config_transport config_rule_match(const struct config_rules *rules, enum config_role role,
					const char *program, const struct sockaddr *addr,
					socklen_t len)
{
	const struct config_rule *r = config_rule_find(rules, role, program, addr, len);

	return r ? (enum config_transport)r->transport : CONFIG_USE_TCP;
}
