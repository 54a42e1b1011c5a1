/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_PATH_H
#define AM_PATH_H

#include "am/endpoint.h"

/* One more path: by the driver that the environment asks for, or else by UDP. 0 or -errno. */
int am_path_add(struct amudp_ep *ep, uint32_t ip, uint32_t receive_bytes);
/* Opens the paths that AMUDP_PATHS names and this machine has. */
void am_path_open_all(struct amudp_ep *ep);
/* Goes over to another interface when the link of the one in use is down. */
void am_path_check(struct amudp_ep *ep, uint64_t now);
/* All peers know where we are, or have had their time: the place that was left is closed. */
void am_path_left(struct amudp_ep *ep);

#endif
