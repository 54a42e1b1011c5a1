/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The pieces that the protocol layers see are the kernel's own memory. */
#ifndef KMOD_COMPAT_SYS_UIO_H
#define KMOD_COMPAT_SYS_UIO_H

#include <linux/socket.h>
#include <linux/uio.h>

#define iovec kvec

#endif
