/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_BPF_KERNEL_ENGINE_H
#define TESTS_BPF_KERNEL_ENGINE_H

/* Programs by the kernel: rewritten, loaded, run by BPF_PROG_TEST_RUN on memory in an arena. */

#include "bpfkernel/kernel.h"
#include "bpfkernel/library.h"
#include "bpfkernel/system.h"

enum { KERNEL_OUTPUT = 64, KERNEL_ARENA = 1 << 20, KERNEL_PLACE_BLOCK = 0x40000 };

struct kernel_engine {
	struct bpfkernel_arena arena;
	struct bpfkernel_library *library;
	struct bpfkernel_helper extra[BPFKERNEL_HELPERS_MAX]; /* beside the library's */
	size_t extra_count;
	struct bpfkernel_window windows[BPFKERNEL_WINDOWS_MAX];
	size_t window_count;
	struct bpfkernel_block *block;
	uint64_t own[4]; /* what the block has of these in the next run */
	char text[400];	 /* why a program cannot be run */
};

/* Without windows, and with output as helper 1. What bpfkernel_arena_create() says */
int kernel_engine_open(struct kernel_engine *k);
void kernel_engine_close(struct kernel_engine *k);
void kernel_engine_window(struct kernel_engine *k, uint64_t addr, uint32_t place, uint32_t size,
			  unsigned int rights);
/* The program's descriptor, or a negative errno with @text filled in */
int kernel_engine_load(struct kernel_engine *k, const struct ebpf_object *object, uint32_t entry);
/* Runs it @repeat times with the block's arguments; *ns: of one time, if that is wanted */
int kernel_engine_run(struct kernel_engine *k, int fd, const uint64_t arg[5], uint64_t fuel,
		      unsigned int repeat, uint32_t *ns);
/* How it ended, as other engines tell it */
struct ebpf_result kernel_engine_result(const struct kernel_engine *k);

#endif
