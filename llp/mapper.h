/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef LLP_MAPPER_H
#define LLP_MAPPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * Who serves may be a device, whose listener stands elsewhere: gives the address @peer the port
 * that its host's mapper tells within @limit ns. True: it is another one. What was told is believed
 * for some seconds. Where the mapper is asked, @fd, which is to connect, gets a port.
 */
bool llp_mapper_move(int fd, void *peer, socklen_t len, uint64_t limit);

#endif
