/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Memory from the kernel, zeroed, page by page when it is first touched. Shared memory stays one
 * memory in the children of a fork().
 */
int base_map_create(size_t len, void **out);
int base_map_create_shared(size_t len, void **out);
/* As the one above, and mlockall() does not fill it */
int base_map_create_sparse(size_t len, void **out);
/* The same, the file's own, which is that long; it does not need the descriptor any more */
int base_map_create_file(int fd, size_t len, void **out);
/* May the process have so much more address space? Limits alone count */
bool base_map_allows(size_t len);
/* NULL is fine. */
void base_map_destroy(void *p, size_t len);

#endif
