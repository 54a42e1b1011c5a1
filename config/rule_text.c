/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules and the table as text: for a user, and for the environment of the programs that a
 * launcher starts. The latter is base64 (RFC 4648 section 5) of the header and the bytes in
 * use. It comes from the environment, so decoding checks all that matching relies on.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "config/rule.h"

#define HEADER offsetof(struct config_rules, octets)

/* --- one rule ----------------------------------------------------------------------------- */

static const char *const transport_names[] = {
	[CONFIG_USE_TCP] = "tcp",
	[CONFIG_USE_AUTO] = "auto",
	[CONFIG_USE_DDP] = "ddp",
};

static const char *const role_names[] = {
	[CONFIG_CLIENT] = "client",
	[CONFIG_SERVER] = "server",
	[CONFIG_CLIENT | CONFIG_SERVER] = "*",
};

static const char *const ask_texts[] = {
	[CONFIG_ASK_NEAR] = "",
	[CONFIG_ASK_ALWAYS] = " ask always",
	[CONFIG_ASK_NEVER] = " ask never",
};

static void address_format(const struct config_rule *r, char *out, size_t size)
{
	bool six = r->family == CONFIG_IPV6;
	char addr[INET6_ADDRSTRLEN], length[8] = "";

	if (r->family == CONFIG_ANY_FAMILY) {
		snprintf(out, size, "*");
		return;
	}
	inet_ntop(six ? AF_INET6 : AF_INET, r->addr, addr, sizeof(addr));
	if (r->prefix < (six ? 128 : 32))
		snprintf(length, sizeof(length), "/%u", r->prefix);
	snprintf(out, size, six ? "[%s]%s" : "%s%s", addr, length);
}

static void ports_format(const struct config_rule *r, char *out, size_t size)
{
	if (!r->port_first)
		snprintf(out, size, "*");
	else if (r->port_first == r->port_last)
		snprintf(out, size, "%u", r->port_first);
	else
		snprintf(out, size, "%u-%u", r->port_first, r->port_last);
}

const char *config_rule_format(const struct config_rule *r, char *out, size_t size)
{
	const char *by = config_rule_provider(r);
	char addr[INET6_ADDRSTRLEN + 8], ports[16];

	address_format(r, addr, sizeof(addr));
	ports_format(r, ports, sizeof(ports));
	snprintf(out, size, "use %s %s %s %s:%s%s%s%s", transport_names[r->transport],
		 role_names[r->roles], r->program, addr, ports, by ? " provider " : "",
		 by ? by : "", ask_texts[r->ask]);
	return out;
}

/* --- base64 ------------------------------------------------------------------------------- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int digit_value(char c)
{
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* A group of up to three bytes becomes one digit more than it has bytes */
static size_t group_encode(const uint8_t *in, size_t n, char *out)
{
	uint32_t v = 0;

	for (size_t i = 0; i < 3; i++)
		v = v << 8 | (i < n ? in[i] : 0);
	for (size_t i = 0; i <= n; i++)
		out[i] = digits[v >> (18 - 6 * i) & 63];
	return n + 1;
}

int config_rules_encode(const struct config_rules *rules, char *out, size_t size)
{
	const uint8_t *in = (const uint8_t *)rules;
	size_t left = HEADER + rules->size, at = 0;

	if (size < (left + 2) / 3 * 4 + 1)
		return -ENOSPC;
	while (left) {
		size_t n = base_min(left, (size_t)3);

		at += group_encode(in, n, out + at);
		in += n;
		left -= n;
	}
	out[at] = 0;
	return 0;
}

/* Bytes given, or -1 where @in is no group; bits that no byte takes must be 0 */
static int group_decode(const char *in, size_t n, uint8_t *out)
{
	uint32_t v = 0;

	for (size_t i = 0; i < 4; i++) {
		int digit = i < n ? digit_value(in[i]) : 0;

		if (digit < 0)
			return -1;
		v = v << 6 | (uint32_t)digit;
	}
	if (n < 2 || v << 8 << 8 * (n - 1))
		return -1;
	for (size_t i = 0; i + 1 < n; i++)
		out[i] = (uint8_t)(v >> (16 - 8 * i));
	return (int)n - 1;
}

/* Bytes given, or 0 */
static size_t text_decode(const char *text, uint8_t *out, size_t size)
{
	size_t len = strlen(text), at = 0;
	uint8_t group[3];

	for (size_t i = 0; i < len; i += 4) {
		int n = group_decode(text + i, base_min(len - i, (size_t)4), group);

		if (n < 0 || (size_t)n > size - at)
			return 0;
		memcpy(out + at, group, (size_t)n);
		at += (size_t)n;
	}
	return at;
}

/* --- what a table must be ----------------------------------------------------------------- */

static bool rule_is_sound(const struct config_rule *r, size_t room)
{
	size_t text;

	if (room < sizeof(*r) + 4 || r->size < sizeof(*r) + 4 || r->size > room || r->size % 4)
		return false;
	text = r->size - sizeof(*r);
	if (r->program[text - 1] || strnlen(r->program, text) > CONFIG_PROGRAM_MAX)
		return false;
	return r->transport <= CONFIG_USE_DDP && r->roles && r->roles <= 3 &&
	       r->family <= CONFIG_IPV6 && r->source <= CONFIG_FROM_FILE &&
	       r->by <= CONFIG_BY_VERBS && r->ask <= CONFIG_ASK_NEVER &&
	       r->prefix <= (r->family == CONFIG_IPV4 ? 32 : 128);
}

static bool table_is_sound(const struct config_rules *rules, size_t len)
{
	uint32_t at = 0, count = 0;

	if (len < HEADER || rules->magic != CONFIG_RULES_MAGIC || rules->size != len - HEADER)
		return false;
	while (at < rules->size) {
		const void *rule = rules->octets + at;

		if (!rule_is_sound(rule, rules->size - at))
			return false;
		at += ((const struct config_rule *)rule)->size;
		count++;
	}
	return count == rules->count;
}

int config_rules_decode(struct config_rules *rules, const char *text)
{
	size_t len = text_decode(text, (uint8_t *)rules, sizeof(*rules));

	if (table_is_sound(rules, len))
		return 0;
	config_rules_init(rules);
	return -EINVAL;
}
