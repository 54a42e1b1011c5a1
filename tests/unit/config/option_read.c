/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options from an environment, and what is said about variables that look like ours.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "config/option.h"

static struct config_settings settings;
static char said[2048];

static void listen_to(void *ctx, bool bad, const struct config_error *what)
{
	size_t at = strlen(said);

	cr_assert_eq(ctx, said);
	snprintf(said + at, sizeof(said) - at, "%s %s\n", bad ? "bad" : "odd", what->text);
}

static int read_env(char *const *env)
{
	said[0] = 0;
	config_settings_init(&settings);
	return config_settings_read(&settings, env, listen_to, said);
}

#define ENV(...) ((char *const[]){ __VA_ARGS__, NULL })

Test(option_read, takes_ours_and_no_others)
{
	cr_expect_eq(read_env(ENV("PATH=/bin", "WARPSOCK_LINGER=5", "XWARPSOCK_RING=9",
				  "WARPSOCK_RING=1M", "WARPSOCK", "WARPSOCK_CRC", "")),
		     0);
	cr_expect_str_eq(said, "");
	cr_expect_eq(config_number(&settings, CONFIG_LINGER), 5 * BASE_NS_PER_S);
	cr_expect_eq(config_number(&settings, CONFIG_RING), 1 << 20);
	cr_expect_eq(settings.origin[CONFIG_RING], CONFIG_ENVIRONMENT);
	cr_expect_eq(settings.origin[CONFIG_CRC], CONFIG_DEFAULT);
}

Test(option_read, nothing_at_all)
{
	cr_expect_eq(read_env((char *const[]){ NULL }), 0);
	cr_expect_str_eq(said, "");
}

/* One bad value: the others still count, and it keeps what it was. */
Test(option_read, bad_values)
{
	cr_expect_eq(read_env(ENV("WARPSOCK_RING=1", "WARPSOCK_LINGER=5", "WARPSOCK_CRC=maybe")),
		     -EINVAL);
	cr_expect_str_eq(said, "bad WARPSOCK_RING: expected bytes from 8k to 64M, got \"1\"\n"
			       "bad WARPSOCK_CRC: expected on or off, got \"maybe\"\n");
	cr_expect_eq(config_number(&settings, CONFIG_RING), 512 * 1024);
	cr_expect_eq(config_number(&settings, CONFIG_LINGER), 5 * BASE_NS_PER_S);
}

Test(option_read, a_variable_goes_before_a_profile)
{
	said[0] = 0;
	config_settings_init(&settings);
	config_profile_apply(&settings, config_profile_find("throughput"));
	cr_expect_eq(config_settings_read(&settings, ENV("WARPSOCK_RING=1M"), listen_to, said), 0);
	cr_expect_eq(config_number(&settings, CONFIG_RING), 1 << 20);
	cr_expect_eq(config_number(&settings, CONFIG_CREDITS), 1024);
	cr_expect_eq(settings.origin[CONFIG_CREDITS], CONFIG_PROFILE);
}

/* Rules are checked where rules are read. */
Test(option_read, rules_are_left_alone)
{
	cr_expect_eq(read_env(ENV("WARPSOCK_USE=nonsense", "WARPSOCK_RULES=nonsense")), 0);
	cr_expect_str_eq(said, "");
	cr_expect_eq(settings.origin[CONFIG_USE], CONFIG_ENVIRONMENT);
}

static const struct {
	char *variable;
	const char *want;
} unknown[] = {
	{ "WARPSOCK_RNG=1", "no option is called \"WARPSOCK_RNG\"; did you mean WARPSOCK_RING?" },
	{ "WARPSOCK_RINGS=1", "no option is called \"WARPSOCK_RINGS\"; did you mean "
			      "WARPSOCK_RING?" },
	{ "WARPSOCK_RIGN=1", "no option is called \"WARPSOCK_RIGN\"; did you mean WARPSOCK_RING?" },
	{ "WARPSOCK_ring=1", "no option is called \"WARPSOCK_ring\"; did you mean WARPSOCK_RING?" },
	{ "WARPSOCK_LOGFILE=x", "no option is called \"WARPSOCK_LOGFILE\"; did you mean "
				"WARPSOCK_LOG_FILE?" },
	{ "WARPSOCK_CREDIT=1", "no option is called \"WARPSOCK_CREDIT\"; did you mean "
			       "WARPSOCK_CREDITS?" },
	{ "WARPSOCK_TIMEOUT=1", "no option is called \"WARPSOCK_TIMEOUT\"" },
	{ "WARPSOCK_=", "no option is called \"WARPSOCK_\"; did you mean WARPSOCK_USE?" },
	/* never a name that nobody is to set */
	{ "WARPSOCK_RULE=", "no option is called \"WARPSOCK_RULE\"; did you mean WARPSOCK_USE?" },
	{ "WARPSOCK_XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX=",
	  "no option is called \"WARPSOCK_XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX...\"" },
	{ "WARPSOCK_\x1b[31m=", "no option is called \"WARPSOCK_\\x1b[31m\"" },
};

Test(option_read, unknown_variables)
{
	for (size_t i = 0; i < base_array_size(unknown); i++) {
		cr_expect_eq(read_env(ENV(unknown[i].variable)), 0);
		cr_expect_eq(strncmp(said, "odd ", 4), 0);
		said[strlen(said) - 1] = 0;
		cr_expect_str_eq(said + 4, unknown[i].want);
	}
}
