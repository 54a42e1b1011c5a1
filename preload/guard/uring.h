/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_URING_H
#define PRELOAD_URING_H

#include <stdbool.h>

/*
 * Has the program an io_uring? What it asks of the kernel by that passes by us, so its connections
 * cannot be on DDP.
 */
bool uring_used(void);

/* One was made by a name that we take */
void uring_note(void);

#endif
