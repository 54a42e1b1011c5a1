/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_RECORD_H
#define APPS_EXAMPLES_RECORD_H

#include "bpfgen/expr.h"

/* All fields of a record, with their names, on standard output */
void record_print(const struct bpfgen_layout *layout, const uint8_t *record);

#endif
