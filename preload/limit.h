/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_LIMIT_H
#define PRELOAD_LIMIT_H

#include <stdbool.h>

/* Before the process confines itself: 0, or why it must not */
long limit_seccomp(bool strict);

#endif
