/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * WARPSOCK_RULES as somebody else set it: a table that is taken is walked, written and asked, and
 * one that is refused is empty. The input is a table's octets behind its header, encoded as they
 * are, or, when the first octet is odd, the text itself.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "config/rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct config_rules raw, rules;
static char text[CONFIG_RULES_TEXT_MAX];

static void encode(const uint8_t *data, size_t size)
{
	config_rules_init(&raw);
	raw.count = *data >> 1;
	raw.size = (uint32_t)base_min(size - 1, sizeof(raw.octets));
	memcpy(raw.octets, data + 1, raw.size);
	if (config_rules_encode(&raw, text, sizeof(text)))
		abort();
}

static void walk(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = 0x5000 };
	const struct config_rule *r = NULL;
	char line[CONFIG_RULE_TEXT_MAX];
	uint32_t count = 0;

	while ((r = config_rule_next(&rules, r))) {
		config_rule_format(r, line, sizeof(line));
		if (strlen(line) + 1 >= sizeof(line))
			abort();
		count++;
	}
	if (count != rules.count)
		abort();
	config_rule_match(&rules, CONFIG_CLIENT, "redis-server", (void *)&addr, sizeof(addr));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (*data & 1) {
		size = base_min(size - 1, sizeof(text) - 1);
		memcpy(text, data + 1, size);
		text[size] = 0;
	} else {
		encode(data, size);
	}
	if (config_rules_decode(&rules, text) && rules.count)
		abort();
	walk();
	return 0;
}
