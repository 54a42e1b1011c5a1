/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef KMOD_COMPAT_STDBOOL_H
#define KMOD_COMPAT_STDBOOL_H

#include <linux/types.h>

#endif
