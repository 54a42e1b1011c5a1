/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_BPF_KERNEL_GENERATED_H
#define TESTS_BPF_KERNEL_GENERATED_H

/* The memory and the helpers that generated and hostile programs expect, in the kernel */

#include "engines.h"
#include "kernel_engine.h"

/* Behind kernel_engine_open() */
void kernel_generated(struct kernel_engine *k);
void kernel_generated_memory(struct kernel_engine *k, const struct engines_end *from);
/*
 * Whether it is now as @want has it. What lies between the regions must be as it was, and the
 * program's stack and data zero.
 */
bool kernel_generated_same(const struct kernel_engine *k, const struct engines_end *want);

#endif
