/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Active RDMA: a server exports memory, and a client sends code that runs beside it.
 *
 * Calls return 0 or a negative errno and write results only on success, as those of
 * <warp/rdma.h> do. All may be made by several threads at once, except that an object must not
 * be destroyed while another thread is in a call on it. See warp_active(7).
 */
#ifndef WARP_ACTIVE_H
#define WARP_ACTIVE_H

#include <warp/active_client.h>
#include <warp/active_server.h>

#endif
