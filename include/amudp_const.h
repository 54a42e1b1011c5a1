/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The name that programs for AMUDP include. */
#include "warp/amudp_const.h"
