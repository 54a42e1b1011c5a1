/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_BTREE_FILL_H
#define APPS_EXAMPLES_BTREE_FILL_H

/* The tree's first content, made by its server: the keys 1 to @keys, each with itself as value */
void btree_fill(void *memory, unsigned long keys);
/* How much memory such a tree takes */
unsigned long btree_fill_size(unsigned long keys);

#endif
