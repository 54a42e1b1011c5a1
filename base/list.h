/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>

#include "base/bits.h"

/*
 * Intrusive doubly linked list: a ring of nodes with the list's head in it. A node that is on no
 * list points at itself, so removing it twice is harmless.
 */
struct base_list {
	struct base_list *next;
	struct base_list *prev;
};

#define BASE_LIST_INIT(name)                     \
	{                                        \
		.next = &(name), .prev = &(name) \
	}

#define base_list_entry(node, type, member) base_container_of(node, type, member)

/* The node may be removed in the body. */
#define base_list_foreach(node, next_node, head)                                  \
	for ((node) = (head)->next, (next_node) = (node)->next; (node) != (head); \
	     (node) = (next_node), (next_node) = (node)->next)

static inline void base_list_init(struct base_list *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool base_list_empty(const struct base_list *list)
{
	return list->next == list;
}

static inline void base_list_add_after(struct base_list *node, struct base_list *at)
{
	node->next = at->next;
	node->prev = at;
	at->next->prev = node;
	at->next = node;
}

static inline void base_list_push_back(struct base_list *head, struct base_list *node)
{
	base_list_add_after(node, head->prev);
}

static inline void base_list_push_front(struct base_list *head, struct base_list *node)
{
	base_list_add_after(node, head);
}

static inline void base_list_remove(struct base_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	base_list_init(node);
}

/* NULL from an empty list. */
static inline struct base_list *base_list_first(const struct base_list *head)
{
	return base_list_empty(head) ? NULL : head->next;
}

static inline struct base_list *base_list_pop_front(struct base_list *head)
{
	struct base_list *node = base_list_first(head);

	if (node)
		base_list_remove(node);
	return node;
}

#endif
