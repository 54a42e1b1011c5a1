/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_RESET_H
#define PRELOAD_RESET_H

/*
 * A socket of the kernel's that has no connection becomes one that was reset: POLLERR, POLLHUP and
 * ECONNRESET once. Where no listener can be had, it stays unconnected
 */
void reset_make(int fd);

#endif
