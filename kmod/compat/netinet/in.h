/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef KMOD_COMPAT_NETINET_IN_H
#define KMOD_COMPAT_NETINET_IN_H

#include <linux/in6.h>

#endif
