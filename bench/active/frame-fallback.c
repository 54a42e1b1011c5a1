/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A build without libxdp: there is no server by AF_XDP.
 */
#include <stdlib.h>
#include <unistd.h>

#include "speed.h"

void frame_serve(int tell)
{
	const struct told told = { .first = 0 };

	exit(write(tell, &told, sizeof(told)) != sizeof(told));
}
