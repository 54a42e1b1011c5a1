/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The thread of RDMA devices' connections, where there can be none: an error, and the next one who
 * needs it tries again.
 */
#include <criterion/criterion.h>

#include "tests/unit/threadless.h"
#include "verbs/verbs_conn.h"

Test(verbs_threadless, who_connects_is_told, .timeout = 60)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct verbs_device device = { .iwarp = true };
		struct verbs_conn c = { .dev = &device };

		verbs_progress_init(&device.progress);
		base_list_init(&c.progress_link);
		threadless = threadless_errors[i];
		cr_expect_eq(verbs_progress_begin(&device.progress), -threadless);
		cr_expect_eq(verbs_progress_add(&c), -threadless);
		cr_expect(base_list_empty(&device.progress.conns));
		threadless = 0;
		cr_expect_eq(verbs_progress_begin(&device.progress), 0);
		threadless = EAGAIN;
		cr_expect_eq(verbs_progress_begin(&device.progress), 0, "one is enough");
		threadless = 0;
		verbs_progress_uninit(&device.progress);
	}
}
