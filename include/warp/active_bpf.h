/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What programs of Active RDMA are written against: the functions that the server gives them.
 *
 *   clang -O2 -g -mcpu=v3 -target bpf -c program.bpf.c -o program.o
 *
 * A function that a client runs is called with the address and the length of its arguments; what
 * it returns is the run's value. See warp_active_bpf(3).
 */
#ifndef WARP_ACTIVE_BPF_H
#define WARP_ACTIVE_BPF_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions by number, for code that is made without a compiler. A number stays the same for
 * ever.
 */
enum warp_active_helper {
	WARP_ACTIVE_HELPER_OUTPUT = 1,
	WARP_ACTIVE_HELPER_ALLOC = 2,
	WARP_ACTIVE_HELPER_FREE = 3,
	WARP_ACTIVE_HELPER_REGION = 4,
	WARP_ACTIVE_HELPER_REGION_SIZE = 5,
	WARP_ACTIVE_HELPER_COPY = 6,
	WARP_ACTIVE_HELPER_FILL = 7,
	WARP_ACTIVE_HELPER_COMPARE = 8,
	WARP_ACTIVE_HELPER_FIND = 9,
	WARP_ACTIVE_HELPER_LOCK = 10,
	WARP_ACTIVE_HELPER_UNLOCK = 11,
	WARP_ACTIVE_HELPER_SYNC = 12,
};

/* Appends to the output: its length now, or a negative number when there is no room */
long warp_output(const void *from, unsigned long len);
/* Memory in region @region of this run, from 0 on, which has a heap; NULL: there is none left */
void *warp_alloc(unsigned long region, unsigned long size);
/* 0, or a negative number: this is no memory that was allocated */
long warp_free(void *memory);
/* Where region @region of this run begins, and its size; NULL and 0: there is none */
void *warp_region(unsigned long region);
unsigned long warp_region_size(unsigned long region);
/* As memmove(), memset(), memcmp(), and much quicker than a loop */
long warp_copy(void *to, const void *from, unsigned long len);
long warp_fill(void *to, int byte, unsigned long len);
long warp_compare(const void *a, const void *b, unsigned long len);
/* How far behind @from the first such byte is, or @len when there is none */
unsigned long warp_find(const void *from, int byte, unsigned long len);
/*
 * The lock of region @region of this run, which needs the right to write there. 0: it is this
 * run's; 1: the same, and the last owner's run ended without warp_unlock(); negative: another run
 * has it, so try again.
 */
long warp_lock(unsigned long region);
/* 0, or a negative number: it is not this run's */
long warp_unlock(unsigned long region);
/* Writes a mapped file back: 0; 1: not now, call it again; or a negative number: it failed */
long warp_sync(unsigned long region);

#ifdef __cplusplus
}
#endif

#endif
