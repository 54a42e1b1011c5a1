/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Profiles: sets of options under a name. A profile is no mode; it sets what a user could set by
 * hand, and what the user has set stays. Its values are shown one by one wherever it is named.
 */
#include <string.h>

#include "base/bits.h"
#include "config/option.h"

static const struct config_profile_value latency[] = {
	{ CONFIG_SPIN, "200us" },
	{ CONFIG_RING, "128k" },
	{ CONFIG_CRC, "on" },
	{ CONFIG_OPTIONS, NULL },
};

static const struct config_profile_value cpu[] = {
	{ CONFIG_SPIN, "0" },
	{ CONFIG_OPTIONS, NULL },
};

static const struct config_profile_value throughput[] = {
	{ CONFIG_SPIN, "0" }, { CONFIG_RING, "4M" },	{ CONFIG_CREDITS, "1024" },
	{ CONFIG_CRC, "on" }, { CONFIG_OPTIONS, NULL },
};

static const struct config_profile_value safe[] = {
	{ CONFIG_PROVIDER, "soft" }, { CONFIG_SPIN, "0" },	     { CONFIG_RING, "128k" },
	{ CONFIG_CREDITS, "384" },   { CONFIG_CRC, "on" },	     { CONFIG_MARKERS, "off" },
	{ CONFIG_GRACE, "100ms" },   { CONFIG_PROBE_TIMEOUT, "1s" }, { CONFIG_LINGER, "300s" },
	{ CONFIG_OPTIONS, NULL },
};

static const struct config_profile profiles[] = {
	{ "latency", "Short messages and few connections: a call that waits may spin for longer.",
	  latency },
	{ "cpu", "Processors that others need: a call that waits never spins.", cpu },
	{ "throughput", "Long transfers: more bytes and messages may be on their way.",
	  throughput },
	{ "safe", "Nothing but the best tested ways, and patience with slow networks.", safe },
};

const struct config_profile *config_profile_at(unsigned int i)
{
	return i < base_array_size(profiles) ? &profiles[i] : NULL;
}

const struct config_profile *config_profile_find(const char *name)
{
	for (size_t i = 0; i < base_array_size(profiles); i++)
		if (!strcmp(name, profiles[i].name))
			return &profiles[i];
	return NULL;
}

void config_profile_apply(struct config_settings *s, const struct config_profile *profile)
{
	struct config_error err;

	/* cannot fail: a test sets every value of every profile */
	for (const struct config_profile_value *v = profile->values; v->value; v++)
		config_settings_set(s, v->id, v->value, CONFIG_PROFILE, &err);
}
