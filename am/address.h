/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_ADDRESS_H
#define AM_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Addresses are in network order. */

/* Of a new endpoint: that of AMUDP_SetUDPInterface(), else one that other machines may reach. */
uint32_t am_address_choose(void);
/* An address that this machine takes, though no interface need have it: all of 127.0.0.0/8 */
bool am_address_is_ours(uint32_t address);

#endif
