/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef LLP_MAPPER_H
#define LLP_MAPPER_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * Where a device's listener for this address stands: the port that its host's mapper tells within
 * @limit ns, in the network's order; 0: it tells none, and the listener stands where it says. What
 * was told is believed for some seconds. Where it is asked, @fd, which is to connect, gets a port.
 */
in_port_t llp_mapper_port(int fd, const struct sockaddr *peer, socklen_t len, uint64_t limit);

#endif
