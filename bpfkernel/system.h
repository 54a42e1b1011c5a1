/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFKERNEL_SYSTEM_H
#define BPFKERNEL_SYSTEM_H

/* What the rewriter's code needs of Linux: an arena, programs for XDP, maps, and an interface. */

#include "bpf/insn.h"

#include <stdbool.h>
#include <stddef.h>

/* Memory of this process that programs in the kernel reach, too */
struct bpfkernel_arena {
	int fd;
	uint8_t *memory;
	size_t size;
};

/*
 * Room for @size bytes, which bpfkernel_arena_fill() makes memory of. -EOPNOTSUPP: the kernel has
 * no arenas; -EPERM: this process may not have one
 */
int bpfkernel_arena_create(size_t size, struct bpfkernel_arena *out);
/*
 * Pages for these bytes, which are zero. A program's store to a page that is not there is lost, so
 * this comes before any program. -ENOMEM
 */
int bpfkernel_arena_fill(const struct bpfkernel_arena *arena, size_t at, size_t size);
void bpfkernel_arena_destroy(struct bpfkernel_arena *arena);

/*
 * Loads a program for XDP and gives its descriptor, or a negative errno; what the kernel's verifier
 * says stands in @text, one line. @name: for whoever lists programs, up to 15 characters
 */
int bpfkernel_program_load(const char *name, const struct ebpf_insn *insns, size_t count,
			   char *text, size_t room);

/*
 * A table from keys to numbers, one from numbers to programs, and plain memory, which is the only
 * value of its map: a descriptor or a negative errno
 */
int bpfkernel_keys_create(size_t key_size, unsigned int entries);
int bpfkernel_programs_create(unsigned int entries);
int bpfkernel_memory_create(size_t size);
/* That memory for this process, too; NULL: there is none */
void *bpfkernel_memory_map(int fd, size_t size);
/* @value: the number, or a program's descriptor */
int bpfkernel_map_set(int fd, const void *key, uint32_t value);
int bpfkernel_map_remove(int fd, const void *key);

/* Until programs that began before this call have ended, whatever ran them. Some milliseconds */
int bpfkernel_wait(void);

/*
 * Runs the program for what arrives at an interface, until the descriptor that it gives is closed,
 * also by the process' end. @native: in the driver, else behind it. -EBUSY: another one is there;
 * -EOPNOTSUPP: the driver cannot
 */
int bpfkernel_attach(int program, unsigned int interface, bool native);

struct bpfkernel_test {
	const void *in;
	void *out;
	size_t in_len, out_len; /* out_len: the room, and then what there was */
	unsigned int repeat;
	uint32_t verdict, ns;
};

/* Runs it with a packet, as if it had come from an interface */
int bpfkernel_program_test(int fd, struct bpfkernel_test *test);

#endif
