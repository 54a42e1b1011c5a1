/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Jobs under a launcher that speaks PMIx; this build has no PMIx library.
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
