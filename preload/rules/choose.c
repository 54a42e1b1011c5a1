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
static bool takes;

static void may_note(const struct config_rule *r)
{
	if (r->transport == CONFIG_USE_TCP || !config_rule_is_for(r, program))
		return;
	may[CONFIG_CLIENT] |= r->roles & CONFIG_CLIENT;
	may[CONFIG_SERVER] |= (r->roles & CONFIG_SERVER) != 0;
}

/* Nothing behind such a rule is for a socket of its roles */
static bool is_last(const struct config_rule *r)
{
	return r->family == CONFIG_ANY_FAMILY && !r->port_first && r->port_last == UINT16_MAX;
}

/* @settled: the roles of which the rules before say all */
static void takes_note(const struct config_rule *r, unsigned int *settled)
{
	if (!config_rule_is_for(r, program))
		return;
	takes |= r->transport != CONFIG_USE_TCP && r->roles & ~*settled;
	if (is_last(r))
		*settled |= r->roles;
}

static void mistake_log(const struct config_error *mistake)
{
	base_err("%s; no rule holds", mistake->text);
}

int choose_init(void)
{
	const struct config_rule *r = NULL;
	unsigned int settled = 0;
	struct config_error err;
	int bad = config_rules_inherit(&rules, mistake_log, &err);

	snprintf(program, sizeof(program), "%s", program_invocation_short_name);
	memset(may, 0, sizeof(may));
	takes = false;
	while ((r = config_rule_next(&rules, r))) {
		may_note(r);
		takes_note(r, &settled);
	}
	return bad;
}

bool choose_may(enum config_role role)
{
	return may[role];
}

bool choose_takes(void)
{
	return takes;
}

bool choose_wants(const char *name)
{
	const struct config_rule *r = NULL;

	while (name && (r = config_rule_next(&rules, r)))
		if (r->transport != CONFIG_USE_TCP && config_rule_is_for(r, name))
			return true;
	return false;
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

/* What @r says, which is NULL where no rule does */
static void choice_take(const struct config_rule *r, struct choice *out)
{
	*out = (struct choice){ .mode = CONFIG_USE_TCP, .reason = CONFIG_REASON_RULE_NONE };
	if (!r)
		return;
	out->mode = (enum config_transport)r->transport;
	out->reason = r->transport == CONFIG_USE_TCP ? CONFIG_REASON_RULE_TCP : CONFIG_REASON_NONE;
	out->named = config_rule_names_peer(r);
	out->provider = config_rule_provider(r);
	out->ask = (enum config_rule_ask)r->ask;
}

static void choose(enum config_role role, const struct sockaddr *addr, socklen_t len,
		   struct choice *out)
{
	choice_take(config_rule_find(&rules, role, program, addr, len), out);
}

void choose_client(const struct sockaddr *addr, socklen_t len, struct choice *out)
{
	choose(CONFIG_CLIENT, addr, len, out);
}

void choose_server(const struct sockaddr *addr, socklen_t len, struct choice *out)
{
	choose(CONFIG_SERVER, addr, len, out);
}

bool choose_serves(const struct sockaddr *name, socklen_t len, struct choice *out)
{
	if (base_address_is_any(name))
		choice_take(rule_of_any(ntohs(base_address_port(name))), out);
	else
		choose_server(name, len, out);
	return out->mode != CONFIG_USE_TCP;
}
