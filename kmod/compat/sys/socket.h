/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stream protocol passes addresses on and does not look into them. */
#ifndef KMOD_COMPAT_SYS_SOCKET_H
#define KMOD_COMPAT_SYS_SOCKET_H

#include <linux/socket.h>

typedef unsigned int socklen_t;

#endif
