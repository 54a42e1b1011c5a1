/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_STORE_FAULT_H
#define APPS_ARFS_STORE_FAULT_H

#include "store.h"

/* Writes what is wrong: -EBADMSG */
int store_bad(struct store_fault *fault, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
