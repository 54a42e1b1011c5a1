/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lock of a region, which the server takes from a run that ends with it; and what is written
 * back to a file.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

#include "tests/unit/active/one_client.h"

TestSuite(active_locks, .init = open_all, .fini = close_all, .timeout = 60);

static uint64_t seize(uint64_t give_back)
{
	struct warp_active_result r = RUN("seize", { 0, give_back }, 2, WORLD_TABLE + 1);

	CHECK(r, WARP_ACTIVE_OK);
	return r.value;
}

/* 10: free, 11: its last owner ended without giving it back */
Test(active_locks, a_lock)
{
	const struct world_call endless = { "seize_for_ever", { 0 }, 1, WORLD_TABLE + 1 };
	struct warp_active_client *other = world_client(&w);
	struct warp_active_request *r;

	cr_assert_eq(seize(1), 10);
	cr_assert_eq(seize(0), 10);
	cr_assert_eq(seize(1), 11);
	cr_assert_eq(seize(1), 10);
	CHECK(RUN("seize", { 0 }, 1, WORLD_TABLE + 1, WARP_ACTIVE_READ), WARP_ACTIVE_HELPER);
	CHECK(RUN("seize", { 1 }, 1, WORLD_TABLE + 1), WARP_ACTIVE_HELPER);
	r = world_start(&w, other, &endless);
	for (int i = 0; i < 1000 && seize(1) != (uint64_t)(10 - EBUSY); i++)
		usleep(1000);
	cr_assert_eq(seize(1), (uint64_t)(10 - EBUSY));
	warp_active_drop(r);
	cr_assert_not(warp_active_disconnect(other));
	for (int i = 0; i < 1000 && seize(1) != 11; i++)
		usleep(1000);
	cr_assert_eq(seize(1), 10);
}

Test(active_locks, writing_back)
{
	struct warp_active_result r = RUN("sync_all", { 0 }, 1, WORLD_TABLE + 1);

	CHECK(r, WARP_ACTIVE_OK);
	cr_assert_eq(r.value, 1); /* once in the thread that hears clients, once in another */
	CHECK(RUN("sync_all", { 0 }, 1, WORLD_TABLE + 1, WARP_ACTIVE_READ), WARP_ACTIVE_HELPER);
}
