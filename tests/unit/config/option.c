/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Values of options: what each text becomes, and what is said about those that are none.
 */
#include "config/option.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"

#define MS BASE_NS_PER_MS
#define S BASE_NS_PER_S

static struct config_settings settings, before;
static struct config_error err;

static int set(enum config_option_id id, const char *value)
{
	return config_settings_set(&settings, id, value, CONFIG_ENVIRONMENT, &err);
}

static const struct {
	enum config_option_id id;
	const char *value;
	uint64_t want;
	const char *formatted; /* NULL: as it was written */
} good[] = {
	{ CONFIG_RING, "131072", 131072, "128k" },
	{ CONFIG_RING, "128k", 131072, NULL },
	{ CONFIG_RING, "128K", 131072, "128k" },
	{ CONFIG_RING, "1M", 1 << 20, NULL },
	{ CONFIG_RING, "1024k", 1 << 20, "1M" },
	{ CONFIG_RING, "8192", 8192, "8k" },
	{ CONFIG_RING, "8193", 8193, NULL },
	{ CONFIG_RING, "64M", 64 << 20, NULL },
	{ CONFIG_RING, "000008k", 8192, "8k" },
	{ CONFIG_CREDITS, "32", 32, NULL },
	{ CONFIG_CREDITS, "32767", 32767, NULL },
	{ CONFIG_CRC, "on", 1, NULL },
	{ CONFIG_CRC, "off", 0, NULL },
	{ CONFIG_CRC, "1", 1, "on" },
	{ CONFIG_CRC, "0", 0, "off" },
	{ CONFIG_SPIN, "0", 0, NULL },
	{ CONFIG_SPIN, "50", 50000, "50us" },
	{ CONFIG_SPIN, "50us", 50000, NULL },
	{ CONFIG_SPIN, "1ms", MS, NULL },
	{ CONFIG_SPIN, "1500ns", 1500, NULL },
	{ CONFIG_SPIN, "1s", S, NULL },
	{ CONFIG_GRACE, "5", 5 * MS, "5ms" },
	{ CONFIG_GRACE, "auto", CONFIG_COMPUTED, NULL },
	{ CONFIG_GRACE, "0ms", 0, "0" },
	{ CONFIG_PROBE_TIMEOUT, "1000us", MS, "1ms" },
	{ CONFIG_LINGER, "30", 30 * S, "30s" },
	{ CONFIG_LINGER, "0", 0, NULL },
	{ CONFIG_LINGER, "500ms", 500 * MS, NULL },
	{ CONFIG_LINGER, "86400", 86400 * S, "86400s" },
	{ CONFIG_LOG, "off", 0, NULL },
	{ CONFIG_LOG, "warn", 2, NULL },
	{ CONFIG_LOG, "debug", 4, NULL },
};

Test(option, good)
{
	char out[64];

	config_settings_init(&settings);
	for (size_t i = 0; i < base_array_size(good); i++) {
		const char *want = good[i].formatted ? good[i].formatted : good[i].value;

		cr_expect_eq(set(good[i].id, good[i].value), 0, "%s: %s", good[i].value, err.text);
		cr_expect_eq(config_number(&settings, good[i].id), good[i].want, "%s",
			     good[i].value);
		cr_expect_eq(settings.origin[good[i].id], CONFIG_ENVIRONMENT);
		cr_expect_str_eq(config_settings_format(&settings, good[i].id, out, sizeof(out)),
				 want);
	}
}

static const struct {
	enum config_option_id id;
	const char *value;
	const char *want;
} bad[] = {
	{ CONFIG_RING, "", "WARPSOCK_RING: expected bytes from 8k to 64M, got \"\"" },
	{ CONFIG_RING, "8191", "WARPSOCK_RING: expected bytes from 8k to 64M, got \"8191\"" },
	{ CONFIG_RING, "65M", "WARPSOCK_RING: expected bytes from 8k to 64M, got \"65M\"" },
	{ CONFIG_RING, "1G", "WARPSOCK_RING: expected bytes from 8k to 64M, got \"1G\"" },
	{ CONFIG_RING, "128kb", "WARPSOCK_RING: expected bytes from 8k to 64M, got \"128kb\"" },
	{ CONFIG_RING, "128 k", "WARPSOCK_RING: expected bytes from 8k to 64M, got \"128 k\"" },
	{ CONFIG_RING, "k", "WARPSOCK_RING: expected bytes from 8k to 64M, got \"k\"" },
	{ CONFIG_RING, " 128k", "WARPSOCK_RING: expected bytes from 8k to 64M, got \" 128k\"" },
	{ CONFIG_RING, "+128k", "WARPSOCK_RING: expected bytes from 8k to 64M, got \"+128k\"" },
	{ CONFIG_RING, "-1", "WARPSOCK_RING: expected bytes from 8k to 64M, got \"-1\"" },
	{ CONFIG_RING, "0x8000", "WARPSOCK_RING: expected bytes from 8k to 64M, got \"0x8000\"" },
	{ CONFIG_RING, "1.5M", "WARPSOCK_RING: expected bytes from 8k to 64M, got \"1.5M\"" },
	{ CONFIG_RING, "auto", "WARPSOCK_RING: expected bytes from 8k to 64M, got \"auto\"" },
	{ CONFIG_RING, "5ms", "WARPSOCK_RING: expected bytes from 8k to 64M, got \"5ms\"" },
	/* those that would fit if they were cut to 64 bits */
	{ CONFIG_RING, "18446744073709560832",
	  "WARPSOCK_RING: expected bytes from 8k to 64M, got \"18446744073709560832\"" },
	{ CONFIG_RING, "18014398509481992k",
	  "WARPSOCK_RING: expected bytes from 8k to 64M, got \"18014398509481992k\"" },
	{ CONFIG_CREDITS, "31",
	  "WARPSOCK_CREDITS: expected a number from 32 to 32767, got \"31\"" },
	{ CONFIG_CREDITS, "32768",
	  "WARPSOCK_CREDITS: expected a number from 32 to 32767, got \"32768\"" },
	{ CONFIG_CREDITS, "1k",
	  "WARPSOCK_CREDITS: expected a number from 32 to 32767, got \"1k\"" },
	{ CONFIG_CRC, "", "WARPSOCK_CRC: expected on or off, got \"\"" },
	{ CONFIG_CRC, "yes", "WARPSOCK_CRC: expected on or off, got \"yes\"" },
	{ CONFIG_CRC, "ON", "WARPSOCK_CRC: expected on or off, got \"ON\"" },
	{ CONFIG_CRC, "o", "WARPSOCK_CRC: expected on or off, got \"o\"" },
	{ CONFIG_CRC, "off on", "WARPSOCK_CRC: expected on or off, got \"off on\"" },
	{ CONFIG_CRC, "2", "WARPSOCK_CRC: expected on or off, got \"2\"" },
	{ CONFIG_SPIN, "2s", "WARPSOCK_SPIN: expected a time from 0 to 1s, got \"2s\"" },
	{ CONFIG_SPIN, "auto", "WARPSOCK_SPIN: expected a time from 0 to 1s, got \"auto\"" },
	{ CONFIG_SPIN, "5m", "WARPSOCK_SPIN: expected a time from 0 to 1s, got \"5m\"" },
	{ CONFIG_SPIN, "5msx", "WARPSOCK_SPIN: expected a time from 0 to 1s, got \"5msx\"" },
	{ CONFIG_GRACE, "11s",
	  "WARPSOCK_GRACE: expected auto or a time from 0 to 10s, got \"11s\"" },
	{ CONFIG_GRACE, "Auto",
	  "WARPSOCK_GRACE: expected auto or a time from 0 to 10s, got \"Auto\"" },
	{ CONFIG_PROBE_TIMEOUT, "0",
	  "WARPSOCK_PROBE_TIMEOUT: expected auto or a time from 1ms to 60s, got \"0\"" },
	{ CONFIG_LOG, "loud",
	  "WARPSOCK_LOG: expected off, err, warn, info or debug, got \"loud\"" },
	{ CONFIG_LOG, "2", "WARPSOCK_LOG: expected off, err, warn, info or debug, got \"2\"" },
	{ CONFIG_LOG, "war\n",
	  "WARPSOCK_LOG: expected off, err, warn, info or debug, got \"war\\x0a\"" },
	{ CONFIG_PROVIDER, "", "WARPSOCK_PROVIDER: expected text of 1 to 15 bytes, got \"\"" },
	{ CONFIG_PROVIDER, "0123456789abcdef",
	  "WARPSOCK_PROVIDER: expected text of 1 to 15 bytes, got \"0123456789abcdef\"" },
};

Test(option, bad_changes_nothing)
{
	config_settings_init(&settings);
	before = settings;
	for (size_t i = 0; i < base_array_size(bad); i++) {
		cr_expect_eq(set(bad[i].id, bad[i].value), -EINVAL, "%s", bad[i].value);
		cr_expect_str_eq(err.text, bad[i].want);
	}
	cr_expect_eq(memcmp(&settings, &before, sizeof(settings)), 0);
}

Test(option, texts)
{
	char text[CONFIG_TEXT_MAX + 2], out[CONFIG_TEXT_MAX + 1];

	memset(text, 'x', sizeof(text));
	text[CONFIG_TEXT_MAX + 1] = 0;
	config_settings_init(&settings);
	cr_expect_eq(set(CONFIG_REPORT, text), -EINVAL);
	cr_expect_str_eq(config_text(&settings, CONFIG_REPORT), "");
	text[CONFIG_TEXT_MAX] = 0;
	cr_expect_eq(set(CONFIG_REPORT, text), 0);
	cr_expect_str_eq(config_text(&settings, CONFIG_REPORT), text);
	cr_expect_str_eq(config_settings_format(&settings, CONFIG_REPORT, out, sizeof(out)), text);
	/* a copy: the program may overwrite its environment */
	text[0] = 'y';
	cr_expect_eq(config_text(&settings, CONFIG_REPORT)[0], 'x');
	cr_expect_eq(set(CONFIG_REPORT, ""), 0);
	cr_expect_eq(set(CONFIG_PROVIDER, "verbs"), 0);
	cr_expect_str_eq(config_text(&settings, CONFIG_PROVIDER), "verbs");
}

/* Each row is whole: it has a name, sentences, and a default that it would accept. */
Test(option, table)
{
	config_settings_init(&settings);
	for (enum config_option_id id = 0; id < CONFIG_OPTIONS; id++) {
		const struct config_option *o = config_option_get(id);
		size_t len = strlen(o->text);

		cr_expect_eq(strncmp(o->name, "WARPSOCK_", 9), 0, "%d", id);
		/* more the search for the nearest name has no room for */
		cr_expect_leq(strlen(o->name), 32, "%s", o->name);
		cr_expect_eq(o->text[len - 1], '.', "%s", o->name);
		for (const char *p = o->text; *p; p++)
			cr_expect(*p >= 0x20 && *p < 0x7f, "%s", o->name);
		cr_expect_leq(o->min, o->max, "%s", o->name);
		cr_expect_eq(set(id, o->fallback), 0, "%s", err.text);
		cr_expect_eq(config_option_find(o->name), id);
		cr_expect_eq(o->unit != NULL, o->type == CONFIG_TYPE_TIME, "%s", o->name);
		cr_expect_eq(o->words != NULL, o->type == CONFIG_TYPE_CHOICE, "%s", o->name);
		if (o->type == CONFIG_TYPE_TEXT)
			cr_expect_leq(o->max, CONFIG_TEXT_MAX, "%s", o->name);
	}
}

/* Defaults that other parts of the project rely on */
Test(option, defaults)
{
	config_settings_init(&settings);
	cr_expect_eq(config_number(&settings, CONFIG_LINGER), 30 * S);
	cr_expect_eq(config_number(&settings, CONFIG_RING), 512 * 1024);
	cr_expect_eq(config_number(&settings, CONFIG_CREDITS), 384);
	cr_expect_eq(config_number(&settings, CONFIG_CRC), 1);
	cr_expect_eq(config_number(&settings, CONFIG_MARKERS), 0);
	cr_expect_eq(config_number(&settings, CONFIG_GRACE), CONFIG_COMPUTED);
	cr_expect_str_eq(config_text(&settings, CONFIG_FILE), "/etc/warpsock.conf");
	for (enum config_option_id id = 0; id < CONFIG_OPTIONS; id++)
		cr_expect_eq(settings.origin[id], CONFIG_DEFAULT);
}

Test(option, find)
{
	cr_expect_eq(config_option_find("WARPSOCK_RING"), CONFIG_RING);
	cr_expect_eq(config_option_find("WARPSOCK_RING=5"), CONFIG_RING);
	cr_expect_eq(config_option_find("WARPSOCK_LOG=x"), CONFIG_LOG);
	cr_expect_eq(config_option_find("WARPSOCK_LOG_FILE=x"), CONFIG_LOG_FILE);
	cr_expect_eq(config_option_find("WARPSOCK_RIN"), CONFIG_OPTIONS);
	cr_expect_eq(config_option_find("WARPSOCK_RINGS"), CONFIG_OPTIONS);
	cr_expect_eq(config_option_find(""), CONFIG_OPTIONS);
}

/* What is shown of a range never runs over, however little room there is. */
Test(option, ranges_keep_to_their_room)
{
	for (enum config_option_id id = 0; id < CONFIG_OPTIONS; id++) {
		for (size_t size = 1; size < 64; size++) {
			char *out = malloc(size);

			config_option_range(id, out, size);
			cr_expect_lt(strnlen(out, size), size);
			free(out);
		}
	}
}

Test(option, profiles)
{
	unsigned int n = 0;

	for (const struct config_profile *p; (p = config_profile_at(n)); n++) {
		config_settings_init(&settings);
		cr_expect_eq(config_profile_find(p->name), p);
		cr_expect_eq(p->text[strlen(p->text) - 1], '.');
		for (const struct config_profile_value *v = p->values; v->value; v++)
			cr_expect_eq(set(v->id, v->value), 0, "%s: %s", p->name, err.text);
		before = settings;
		config_settings_init(&settings);
		config_profile_apply(&settings, p);
		for (enum config_option_id id = 0; id < CONFIG_OPTIONS; id++) {
			cr_expect_eq(memcmp(&settings.value[id], &before.value[id],
					    sizeof(settings.value[id])),
				     0);
			cr_expect_eq(settings.origin[id] == CONFIG_PROFILE,
				     before.origin[id] == CONFIG_ENVIRONMENT);
		}
	}
	cr_expect_eq(n, 4);
	cr_expect_null(config_profile_find("fast"));
	cr_expect_null(config_profile_find(""));
}
