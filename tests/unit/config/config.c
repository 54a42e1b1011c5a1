/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the interposer goes by, from the environment it starts with.
 */
#include "config/config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

static struct config config;

static void environment_begin(void)
{
	clearenv();
}

TestSuite(config, .init = environment_begin);

Test(config, defaults)
{
	cr_assert_eq(config_load(&config), 0);
	cr_expect_str_eq(config.conn.provider, "");
	cr_expect_str_eq(config.report, "");
	cr_expect_eq(config.linger, 30 * BASE_NS_PER_S);
	cr_expect_eq(config.grace, CONFIG_COMPUTED);
	cr_expect_eq(config.probe, CONFIG_COMPUTED);
	cr_expect_eq(config.start, 10 * BASE_NS_PER_S);
	cr_expect_eq(config.mapper, 0);
	cr_expect_eq(config.ask, 5041);
	cr_expect_eq(config.forget_plain, 60 * BASE_NS_PER_S);
	cr_expect_eq(config.forget_ddp, 3600 * BASE_NS_PER_S);
}

Test(config, environment)
{
	setenv("WARPSOCK_PROVIDER", "fifteen-octets-", 1);
	setenv("WARPSOCK_REPORT", "/tmp/report", 1);
	setenv("WARPSOCK_LINGER", "1500ms", 1);
	setenv("WARPSOCK_GRACE", "7", 1);
	setenv("WARPSOCK_PROBE_TIMEOUT", "80", 1);
	setenv("WARPSOCK_START", "2s", 1);
	setenv("WARPSOCK_PORT_MAPPER", "300", 1);
	setenv("WARPSOCK_ASK", "4711", 1);
	setenv("WARPSOCK_FORGET_PLAIN", "5", 1);
	setenv("WARPSOCK_FORGET_DDP", "6s", 1);
	cr_assert_eq(config_load(&config), 0);
	cr_expect_str_eq(config.conn.provider, "fifteen-octets-");
	cr_expect_str_eq(config.report, "/tmp/report");
	cr_expect_eq(config.linger, 1500 * BASE_NS_PER_MS);
	cr_expect_eq(config.grace, 7 * BASE_NS_PER_MS);
	cr_expect_eq(config.probe, 80 * BASE_NS_PER_MS);
	cr_expect_eq(config.start, 2 * BASE_NS_PER_S);
	cr_expect_eq(config.mapper, 300 * BASE_NS_PER_MS);
	cr_expect_eq(config.ask, 4711);
	cr_expect_eq(config.forget_plain, 5 * BASE_NS_PER_S);
	cr_expect_eq(config.forget_ddp, 6 * BASE_NS_PER_S);
}

/* A wrong value costs only its own option. */
Test(config, wrong)
{
	base_log_level = BASE_LOG_OFF;
	setenv("WARPSOCK_LINGER", "long", 1);
	setenv("WARPSOCK_GRACE", "9", 1);
	cr_expect_eq(config_load(&config), -EINVAL);
	cr_expect_eq(config.linger, 30 * BASE_NS_PER_S);
	cr_expect_eq(config.grace, 9 * BASE_NS_PER_MS);
}
