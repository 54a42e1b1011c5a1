/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A build without PMIx: launchers that speak it start every process as a job of its own.
 */
#include <errno.h>

#include "am/job.h"

bool am_pmix_is(void)
{
	return false;
}

int am_pmix_join(void)
{
	return -ENOSYS;
}
