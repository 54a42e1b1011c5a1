/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_BEQUEST_H
#define PRELOAD_BEQUEST_H

#include <stdbool.h>

/*
 * Before a program is executed: what lingers is finished by another process, which has nothing but
 * that. False: there can be none
 */
bool bequest_make(void);

#endif
