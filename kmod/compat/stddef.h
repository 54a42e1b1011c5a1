/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef KMOD_COMPAT_STDDEF_H
#define KMOD_COMPAT_STDDEF_H

#include <linux/stddef.h>
#include <linux/types.h>

#endif
