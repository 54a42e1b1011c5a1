/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef KMOD_COMPAT_STDINT_H
#define KMOD_COMPAT_STDINT_H

#include <linux/limits.h>
#include <linux/types.h>

#define UINT32_MAX U32_MAX
#define UINT64_MAX U64_MAX

#endif
