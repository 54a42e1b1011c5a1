/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-list's programs, which run beside the list.
 */
#include <warp/active_bpf.h>

#include "list_node.h"

/* The value of the node that is so many hops behind the first */
unsigned long walk(const struct list_walk *args, unsigned long len)
{
	const struct list_node *node = (const struct list_node *)args->first;

	for (unsigned long i = 0; i < args->hops; i++)
		node = (const struct list_node *)node->next;
	return node->value;
}

/* A new node at the end, whoever else is at it at the same time: how many hops it is away */
unsigned long append(const struct list_walk *args, unsigned long len)
{
	struct list_node *node = warp_alloc(0, sizeof(*node));
	struct list_node *at = (struct list_node *)args->first;
	unsigned long hops = 1;

	if (!node)
		return 0;
	node->value = args->value;
	node->next = 0;
	for (;; hops++) {
		unsigned long next = at->next;

		if (!next)
			next = __sync_val_compare_and_swap(&at->next, 0, (unsigned long)node);
		if (!next)
			return hops;
		at = (struct list_node *)next;
	}
}
