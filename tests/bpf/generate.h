/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_BPF_GENERATE_H
#define TESTS_BPF_GENERATE_H

/* Programs made at random from a seed: the verifier takes them, and they do all kinds of things. */

#include <stddef.h>

#include "bpf/insn.h"

enum { GENERATED_MAX = 2048 };

/* Where generated programs expect regions, and how large they are */
#define GENERATED_REGION 0x10000u
#define GENERATED_READONLY 0x20003u
#define GENERATED_FAR 0x7f0000000010u
enum { GENERATED_SIZE = 96, GENERATED_READONLY_SIZE = 37, GENERATED_FAR_SIZE = 64 };
enum { GENERATED_HELPER = 7, GENERATED_HELPER_FAILS = 8 };

enum generate_for {
	GENERATE_FOR_ENGINES, /* everything: memory, loops, calls, helpers, errors */
	GENERATE_FOR_KERNEL,  /* what Linux's verifier takes, too */
};

/* Returns how many instructions there are */
size_t generate(uint64_t seed, enum generate_for what, struct ebpf_insn insns[GENERATED_MAX]);
/* A sequence of numbers; the same for the same *state */
uint64_t generate_random(uint64_t *state);

#endif
