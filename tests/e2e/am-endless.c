/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ranks that send to each other until they are killed.
 */
#include "include/warp/amudp_spmd.h"

enum { HELLO = 1 };

static void on_hello(void *token)
{
}

int main(int argc, char **argv)
{
	uint64_t pid;
	eb_t eb;
	ep_t ep;
	int i = 0;

	if (AMX_SPMDStartup(&argc, &argv, 0, &pid, &eb, &ep) != AM_OK)
		return 1;
	AM_SetHandler(ep, HELLO, on_hello);
	AMUDP_SPMDBarrier();
	for (;;)
		AM_Request0(ep, i++ % AMUDP_SPMDNumProcs(), HELLO);
}
