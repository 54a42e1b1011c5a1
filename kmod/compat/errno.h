/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef KMOD_COMPAT_ERRNO_H
#define KMOD_COMPAT_ERRNO_H

#include <linux/errno.h>

#endif
