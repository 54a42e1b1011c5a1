/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef WARP_PROGRAM_H
#define WARP_PROGRAM_H

/*
 * For programs that are sent to a server of Active RDMA, and compiled by warp-activecc(1). See
 * warp_program(7).
 */

#include <stddef.h>
#include <stdint.h>
#include <warp/active_bpf.h> /* the functions of the server */

/*
 * What is in a region, at the address by which client and server know it. Addresses have 64 bits
 * and may be stored in regions as numbers.
 */
#define WARP_AT(type, addr) ((type *)(uintptr_t)(addr))

#endif
