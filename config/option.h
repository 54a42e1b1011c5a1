/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CONFIG_OPTION_H
#define CONFIG_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/conn_opts.h"
#include "config/error.h"

/*
 * The one table of options. Each is an environment variable; the pages that list them are made
 * from this table (ninja docs), and a test compares.
 *
 *	static struct config_settings settings;
 *
 *	config_settings_init(&settings);
 *	config_settings_read(&settings, environ, report, NULL);
 *	linger = config_number(&settings, CONFIG_LINGER);
 *
 * Settings are plain data that point nowhere, neither into the environment, which programs
 * overwrite, nor elsewhere. Nothing here allocates or depends on the locale.
 */
enum config_option_id {
	CONFIG_FILE,
	CONFIG_USE,
	CONFIG_PROVIDER,
	CONFIG_RING,
	CONFIG_CREDITS,
	CONFIG_CRC,
	CONFIG_MARKERS,
	CONFIG_SPIN,
	CONFIG_TCP_SPIN,
	CONFIG_GRACE,
	CONFIG_PROBE_TIMEOUT,
	CONFIG_FORGET_PLAIN,
	CONFIG_FORGET_DDP,
	CONFIG_ASK,
	CONFIG_PORT_MAPPER,
	CONFIG_START,
	CONFIG_CONNECT,
	CONFIG_LINGER,
	CONFIG_RUNTIME_DIR,
	CONFIG_URING,
	CONFIG_CARRIER,
	CONFIG_LOG,
	CONFIG_LOG_FILE,
	CONFIG_REPORT,
	CONFIG_RULES,
	CONFIG_LONG,
	CONFIG_SPIN_ALWAYS,
	CONFIG_COMMAND,
	CONFIG_OPTIONS,
};

enum config_option_type {
	CONFIG_TYPE_COUNT,
	CONFIG_TYPE_SIZE,   /* bytes */
	CONFIG_TYPE_TIME,   /* nanoseconds */
	CONFIG_TYPE_SWITCH, /* 0 or 1 */
	CONFIG_TYPE_CHOICE, /* which of the words */
	CONFIG_TYPE_TEXT,
	CONFIG_TYPE_RULES, /* not kept in the settings: config/rule.h reads it */
};

/* The value of a number that is computed where it is needed */
#define CONFIG_COMPUTED UINT64_MAX
/* The longest texts */
#define CONFIG_TEXT_MAX 1023

struct config_option {
	const char *name;
	enum config_option_type type;
	bool internal;	      /* nobody is to set it, and no page has it */
	bool planned;	      /* known and checked, and without effect yet */
	const char *unit;     /* of a number without one */
	const char *fallback; /* the default, as a user would write it */
	uint64_t min, max;    /* of a text: its length */
	const char *words;    /* of a choice, with blanks between them */
	const char *text;     /* what it is, in whole sentences */
};

enum config_origin {
	CONFIG_DEFAULT,
	CONFIG_PROFILE,
	CONFIG_ENVIRONMENT,
};

struct config_settings {
	union {
		uint64_t number;
		char text[CONFIG_TEXT_MAX + 1];
	} value[CONFIG_OPTIONS];
	uint8_t origin[CONFIG_OPTIONS];
};

const struct config_option *config_option_get(enum config_option_id id);
/* By the variable's name, which ends at a NUL or '='; CONFIG_OPTIONS when there is none. */
enum config_option_id config_option_find(const char *name);

/* All defaults */
void config_settings_init(struct config_settings *s);

/* -EINVAL: nothing changed, and @err says "NAME: expected ..., got ...". */
int config_settings_set(struct config_settings *s, enum config_option_id id, const char *value,
			enum config_origin origin, struct config_error *err);

/*
 * Takes every WARPSOCK_ variable of @env, which may be NULL. Each wrong value (bad) and each
 * unknown variable (not bad, only strange) is reported. -EINVAL when a value was bad; it then
 * keeps what it was before.
 */
typedef void (*config_report_fn)(void *ctx, bool bad, const struct config_error *what);
int config_settings_read(struct config_settings *s, char *const *env, config_report_fn report,
			 void *ctx);

/* The value as a user would write it; returns @out, cut when @size is short. */
const char *config_settings_format(const struct config_settings *s, enum config_option_id id,
				   char *out, size_t size);
/* What values there may be, as "a time from 0 to 1s"; returns @out, cut when @size is short. */
const char *config_option_range(enum config_option_id id, char *out, size_t size);

/* A number, a time in nanoseconds, a switch, the index of a choice */
static inline uint64_t config_number(const struct config_settings *s, enum config_option_id id)
{
	return s->value[id].number;
}

static inline const char *config_text(const struct config_settings *s, enum config_option_id id)
{
	return s->value[id].text;
}

/* --- profiles: named sets of options ------------------------------------------------------ */

struct config_profile_value {
	enum config_option_id id; /* CONFIG_OPTIONS ends the list */
	const char *value;
};

struct config_profile {
	const char *name;
	const char *text;
	const struct config_profile_value *values;
};

/* NULL behind the last one */
const struct config_profile *config_profile_at(unsigned int i);
/* NULL when there is none of this name */
const struct config_profile *config_profile_find(const char *name);
/* Before config_settings_read(): a variable that the user set goes before a profile. */
void config_profile_apply(struct config_settings *s, const struct config_profile *profile);

#endif
