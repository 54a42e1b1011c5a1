/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_BARRED_H
#define PRELOAD_BARRED_H

#include "config/reason.h"

/* Why no connection that begins in this process can be on DDP; CONFIG_REASON_NONE */
enum config_reason barred_reason(void);

#endif
