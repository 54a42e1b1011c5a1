/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules from a file that anybody wrote. A text that is refused leaves the table as it was and
 * an error in printable ASCII with a place inside of the text. One that is taken must be the same
 * table after it was written as rules and read again, and after it was encoded and decoded; and
 * asking it for a socket ends and finds one of its rules or none.
 *
 * The first octet says which source it is, and so whether the keyword may be missing.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "config/rule.h"

enum { ROOM = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct config_rules rules, again;
static char written[ROOM], encoded[CONFIG_RULES_TEXT_MAX];

static void demand(bool good)
{
	if (!good)
		abort();
}

static void refused(const struct config_text *text, const struct config_error *err)
{
	unsigned int line, column, lines = 1;

	demand(rules.count == 1 && sscanf(err->text, "f:%u:%u: expected ", &line, &column) == 2);
	demand(strstr(err->text, ", got ") != NULL);
	for (const char *p = err->text; *p; p++)
		demand(*p >= 0x20 && *p < 0x7f);
	for (size_t i = 0; i < text->len; i++)
		lines += text->octets[i] == '\n';
	demand(line >= 1 && line <= lines && column >= 1 && column <= text->len + 1);
}

static void taken_as_text(void)
{
	struct config_text text = { CONFIG_FROM_FILE, "f", 1, written, 0, NULL };
	const struct config_rule *r = NULL, *s = NULL;
	char rule[CONFIG_RULE_TEXT_MAX];
	struct config_error err;

	while ((r = config_rule_next(&rules, r)))
		text.len += (size_t)snprintf(written + text.len, sizeof(written) - text.len, "%s\n",
					     config_rule_format(r, rule, sizeof(rule)));
	config_rules_init(&again);
	demand(!config_rules_add(&again, &text, &err));
	demand(again.count == rules.count && again.size == rules.size);
	while ((r = config_rule_next(&rules, r))) {
		s = config_rule_next(&again, s);
		demand(r->size == s->size && r->transport == s->transport && r->roles == s->roles);
		demand(r->family == s->family && r->prefix == s->prefix);
		demand(r->port_first == s->port_first && r->port_last == s->port_last);
		demand(!memcmp(r->addr, s->addr, 16) && !strcmp(r->program, s->program));
	}
}

static void taken_as_table(void)
{
	demand(!config_rules_encode(&rules, encoded, sizeof(encoded)));
	demand(!config_rules_decode(&again, encoded));
	demand(again.count == rules.count && again.size == rules.size);
	demand(!memcmp(again.octets, rules.octets, rules.size));
}

static void ask(const uint8_t *data, size_t size)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };
	size_t n = base_min(size, sizeof(six.sin6_addr));
	const struct config_rule *r;
	char program[16] = "";

	memcpy(&six.sin6_addr, data + size - n, n);
	memcpy(&four.sin_addr, &six.sin6_addr, 4);
	memcpy(&six.sin6_port, &six.sin6_addr, 2);
	memcpy(program, data, base_min(size, sizeof(program) - 1));
	r = config_rule_find(&rules, CONFIG_CLIENT, program, (void *)&six, sizeof(six));
	demand(!r || r->roles & CONFIG_CLIENT);
	r = config_rule_find(&rules, CONFIG_SERVER, program, (void *)&four, sizeof(four));
	demand(!r || (r->roles & CONFIG_SERVER && r->family != CONFIG_IPV6));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char first[] = "use tcp client first 127.0.0.1:1";
	struct config_text text = { CONFIG_FROM_FILE, "f", 1, first, sizeof(first) - 1, NULL };
	struct config_error err;

	if (!size)
		return 0;
	config_rules_init(&rules);
	demand(!config_rules_add(&rules, &text, &err));
	text.source = data[0] & 1 ? CONFIG_FROM_ENVIRONMENT : CONFIG_FROM_FILE;
	text.octets = (const char *)data + 1;
	text.len = size - 1;
	if (config_rules_add(&rules, &text, &err)) {
		refused(&text, &err);
		return 0;
	}
	taken_as_text();
	taken_as_table();
	ask(data, size);
	return 0;
}
