/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Values of options and names of variables, as an environment may hold them. What is taken is
 * within its limits and the same after it was written and read again; what is not changes nothing.
 *
 * The first octet chooses an option for the rest as its value; the whole is an environment of
 * one variable, too.
 */
#include <stdlib.h>
#include <string.h>

#include "config/option.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct config_settings settings, before;

static void demand(bool good)
{
	if (!good)
		abort();
}

static void error_check(void *ctx, bool bad, const struct config_error *what)
{
	demand(*what->text);
	for (const char *p = what->text; *p; p++)
		demand(*p >= 0x20 && *p < 0x7f);
}

static void taken(enum config_option_id id)
{
	const struct config_option *o = config_option_get(id);
	char out[CONFIG_TEXT_MAX + 1];
	struct config_error err;

	before = settings;
	if (o->type <= CONFIG_TYPE_TIME)
		demand(config_number(&settings, id) == CONFIG_COMPUTED ||
		       (config_number(&settings, id) >= o->min &&
			config_number(&settings, id) <= o->max));
	config_settings_format(&settings, id, out, sizeof(out));
	demand(!config_settings_set(&settings, id, out, CONFIG_ENVIRONMENT, &err));
	demand(!memcmp(&settings, &before, sizeof(settings)));
}

static void value_try(enum config_option_id id, const char *value)
{
	struct config_error err;

	config_settings_init(&settings);
	before = settings;
	if (!config_settings_set(&settings, id, value, CONFIG_ENVIRONMENT, &err)) {
		taken(id);
		return;
	}
	error_check(NULL, true, &err);
	demand(!memcmp(&settings, &before, sizeof(settings)));
}

static void variable_try(const char *text)
{
	size_t len = strlen(text);
	char *variable = malloc(len + sizeof("WARPSOCK_"));
	char *env[] = { variable, NULL };

	memcpy(variable, "WARPSOCK_", 9);
	memcpy(variable + 9, text, len + 1);
	config_settings_init(&settings);
	config_settings_read(&settings, env, error_check, NULL);
	free(variable);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	value_try((enum config_option_id)(data[0] % CONFIG_OPTIONS), text);
	variable_try(text);
	free(text);
	return 0;
}
