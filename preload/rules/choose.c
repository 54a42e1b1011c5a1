/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which sockets of this process are for DDP.
 *
 * The table comes from the launcher, or without one from the environment and the file; it is read
 * once. The program's name is copied then, because servers write what they do over their
 * arguments, which is where libc has it from.
 */
#include "preload/rules/choose.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/log.h"

static struct config_rules rules;
static char program[CONFIG_PROGRAM_MAX + 1];
static bool may[CONFIG_SERVER + 1]; /* by role */

static void may_note(const struct config_rule *r)
{
	if (r->transport == CONFIG_USE_TCP || !config_rule_is_for(r, program))
		return;
	may[CONFIG_CLIENT] |= r->roles & CONFIG_CLIENT;
	may[CONFIG_SERVER] |= (r->roles & CONFIG_SERVER) != 0;
}

int choose_init(void)
{
	const struct config_rule *r = NULL;
	struct config_error err;
	int bad = config_rules_inherit(&rules, &err);

	if (bad)
		base_err("%s; no rule holds", err.text);
	snprintf(program, sizeof(program), "%s", program_invocation_short_name);
	memset(may, 0, sizeof(may));
	while ((r = config_rule_next(&rules, r)))
		may_note(r);
	return bad;
}

bool choose_may(enum config_role role)
{
	return may[role];
}

/* By the first rule that may be for one of its connections */
static const struct config_rule *rule_of_any(in_port_t port)
{
	const struct config_rule *r = NULL;

	while ((r = config_rule_next(&rules, r)))
		if (r->transport != CONFIG_USE_TCP && r->roles & CONFIG_SERVER &&
		    r->port_first <= port && port <= r->port_last && config_rule_is_for(r, program))
			break;
	return r;
}

bool choose_serves(const struct sockaddr *name, socklen_t len, const char **provider)
{
	const struct config_rule *r;
	struct choice choice;

	if (base_address_is_any(name)) {
		r = rule_of_any(ntohs(base_address_port(name)));
		choice.provider = r ? config_rule_provider(r) : NULL;
		choice.mode = r ? (enum config_transport)r->transport : CONFIG_USE_TCP;
	} else {
		choose_server(name, len, &choice);
	}
	if (provider)
		*provider = choice.provider;
	return choice.mode != CONFIG_USE_TCP;
}

static void choose(enum config_role role, const struct sockaddr *addr, socklen_t len,
		   struct choice *out)
{
	const struct config_rule *r = config_rule_find(&rules, role, program, addr, len);

	*out = (struct choice){ .mode = CONFIG_USE_TCP, .reason = CONFIG_REASON_RULE_NONE };
	if (!r)
		return;
	out->mode = (enum config_transport)r->transport;
	out->reason = r->transport == CONFIG_USE_TCP ? CONFIG_REASON_RULE_TCP : CONFIG_REASON_NONE;
	out->named = config_rule_names_peer(r);
	out->provider = config_rule_provider(r);
}

void choose_client(const struct sockaddr *addr, socklen_t len, struct choice *out)
{
	choose(CONFIG_CLIENT, addr, len, out);
}

void choose_server(const struct sockaddr *addr, socklen_t len, struct choice *out)
{
	choose(CONFIG_SERVER, addr, len, out);
}
