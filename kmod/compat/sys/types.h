/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef KMOD_COMPAT_SYS_TYPES_H
#define KMOD_COMPAT_SYS_TYPES_H

#include <linux/types.h>

#endif
