/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SOFT_STREAM_H
#define SOFT_STREAM_H

#include "rnic/rnic_stream.h"

extern const struct rnic_stream_ops soft_stream_ops;

#endif
