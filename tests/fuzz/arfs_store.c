/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A store of ARFS with anything in it. The server's own code reads nothing outside of it, comes to
 * an end, and says the same when it is asked again. The input is words: where, and what, over an
 * empty file system.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/arfs/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIZE = ARFS_BLOCKS_MIN * ARFS_BLOCK };

/* Most places are those of the superblock, the log, and the first inodes and blocks */
static size_t place(uint16_t where)
{
	static const size_t parts[] = { 0, ARFS_BLOCK, 17 * ARFS_BLOCK, 18 * ARFS_BLOCK,
					19 * ARFS_BLOCK };

	if (where >> 15)
		return (size_t)(where & 0x7fff) * 8 % SIZE;
	return parts[(where >> 9) % 5] + (size_t)(where & 511) * 8;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *memory = calloc(1, SIZE);
	struct store_fault fault;
	uint32_t undone;

	if (!memory || store_format(memory, SIZE, 1, 0, 0, 1))
		abort();
	for (; size >= 10; data += 10, size -= 10) {
		uint16_t where;

		memcpy(&where, data, 2);
		memcpy(memory + place(where), data + 2, 8);
	}
	if (!store_super_check(memory, SIZE, &fault) &&
	    !store_recover(memory, SIZE, &undone, &fault)) {
		int first = store_check(memory, SIZE, &fault);

		if (store_check(memory, SIZE, &fault) != first)
			abort();
		/* What was undone stays undone */
		if (store_recover(memory, SIZE, &undone, &fault) || undone)
			abort();
	}
	free(memory);
	return 0;
}
