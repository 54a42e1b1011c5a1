/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef KMOD_COMPAT_STRING_H
#define KMOD_COMPAT_STRING_H

#include <linux/string.h>

#endif
