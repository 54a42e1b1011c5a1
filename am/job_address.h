/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_JOB_ADDRESS_H
#define AM_JOB_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Addresses that the processes of a job use, network order. Both return 0, or -errno when they have
 * said on stderr what is wrong with the variable.
 */

/* Where workers find the console: MASTERIP, else how others reach us; local: the loopback. */
int am_address_of_console(bool local, uint32_t *out);
/* Where a worker's endpoint is: *address, unless WORKERIP, an address or a subnet, differs. */
int am_address_of_worker(uint32_t *address);

#endif
