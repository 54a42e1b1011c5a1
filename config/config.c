/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The option table. A row is everything there is to say about an option: its name, its initial
 * value, its meaning and how its text is read.
 */
#include "config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"

static void *member(struct config *c, const struct config_option *o)
{
	return (char *)c + o->at;
}

static int parse_bool(struct config *c, const struct config_option *o, const char *text)
{
	bool *value = member(c, o);

	if (strcmp(text, "0") && strcmp(text, "1"))
		return -EINVAL;
	*value = text[0] == '1';
	return 0;
}

static int parse_mode(struct config *c, const struct config_option *o, const char *text)
{
	static const char *const names[] = {
		[CONFIG_OFF] = "off", [CONFIG_AUTO] = "auto", [CONFIG_ON] = "on"
	};
	enum config_mode *value = member(c, o);

	for (unsigned int i = 0; i < base_array_size(names); i++) {
		if (strcmp(text, names[i]))
			continue;
		*value = (enum config_mode)i;
		return 0;
	}
	return -EINVAL;
}

static int parse_text(struct config *c, const struct config_option *o, const char *text)
{
	if (strlen(text) >= o->size)
		return -ENAMETOOLONG;
	strcpy(member(c, o), text);
	return 0;
}

static int parse_ms(struct config *c, const struct config_option *o, const char *text)
{
	uint64_t *value = member(c, o);
	char *end;
	unsigned long ms;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	ms = strtoul(text, &end, 10);
	if (*end || errno || ms > 24 * 3600 * 1000ul)
		return -EINVAL;
	*value = ms * BASE_NS_PER_MS;
	return 0;
}

#define AT(field) offsetof(struct config, field), sizeof(((struct config *)0)->field)

const struct config_option config_options[] = {
	{ "WARPSOCK_ALL", "0", "take every TCP socket", parse_bool, AT(all) },
	{ "WARPSOCK_MODE", "auto", "on: only DDP; auto: DDP where the peer speaks it; off",
	  parse_mode, AT(mode) },
	{ "WARPSOCK_PROVIDER", "", "who does RDMA", parse_text, AT(provider) },
	{ "WARPSOCK_REPORT", "", "file for a summary at exit", parse_text, AT(report) },
	{ "WARPSOCK_LINGER", "30000", "ms that exit waits until the peer has what was sent",
	  parse_ms, AT(linger) },
	{ "WARPSOCK_GRACE", "5", "ms that the first write of a server waits for a Request (auto)",
	  parse_ms, AT(grace) },
	{ "WARPSOCK_START", "10000", "ms that connect() waits for the Reply", parse_ms, AT(start) },
	{ .env = NULL },
};

static const struct config_option *option_find(const char *env)
{
	for (const struct config_option *o = config_options; o->env; o++)
		if (!strcmp(o->env, env))
			return o;
	return NULL;
}

int config_set(struct config *c, const char *env, const char *text)
{
	const struct config_option *o = option_find(env);

	return o ? o->parse(c, o, text) : -EINVAL;
}

int config_load(struct config *c)
{
	int err = 0;

	for (const struct config_option *o = config_options; o->env; o++) {
		const char *text = getenv(o->env);

		o->parse(c, o, o->initial);
		if (!text || !o->parse(c, o, text))
			continue;
		base_warn("%s=%s is no value for it, %s it is", o->env, text,
			  o->initial[0] ? o->initial : "none");
		err = -EINVAL;
	}
	return err;
}
