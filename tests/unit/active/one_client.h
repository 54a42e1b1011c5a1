/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_ACTIVE_ONE_CLIENT_H
#define TESTS_ACTIVE_ONE_CLIENT_H

#include <criterion/criterion.h>

#include "tests/active/world.h"

/* A server and one client of it for each test of a suite: .init = open_all, .fini = close_all */
static struct world w;
static struct warp_active_client *c;

static void open_all(void)
{
	world_open(&w, NULL);
	c = world_client(&w);
}

static void close_all(void)
{
	cr_assert_not(warp_active_disconnect(c));
	world_close(&w);
}

#define RUN(...) world_run(&w, c, &(const struct world_call){ __VA_ARGS__ })
#define CHECK(result, wanted) \
	cr_assert_eq((result).code, wanted, "%d: %s", (result).code, (result).text)

#endif
