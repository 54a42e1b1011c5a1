/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The intrusive list: order, removal from anywhere, and the node that is on no list.
 */
#include "base/list.h"

#include <criterion/criterion.h>

struct item {
	int id;
	struct base_list link;
};

static struct item items[4];
static struct base_list head = BASE_LIST_INIT(head);

static void items_init(void)
{
	for (int i = 0; i < 4; i++) {
		items[i].id = i;
		base_list_init(&items[i].link);
	}
}

/* The ids in order as one decimal number, read forward and, as a check, backward. */
static int order(void)
{
	struct base_list *node, *next;
	int forward = 0, backward = 0, place = 1;

	base_list_foreach(node, next, &head)
		forward = forward * 10 + base_list_entry(node, struct item, link)->id;
	for (node = head.prev; node != &head; node = node->prev, place *= 10)
		backward += base_list_entry(node, struct item, link)->id * place;
	cr_assert_eq(forward, backward);
	return forward;
}

TestSuite(list, .init = items_init);

Test(list, pushes_at_both_ends)
{
	cr_assert(base_list_empty(&head));
	base_list_push_back(&head, &items[2].link);
	base_list_push_back(&head, &items[3].link);
	base_list_push_front(&head, &items[1].link);
	cr_assert_eq(order(), 123);
	cr_assert_not(base_list_empty(&head));
}

Test(list, add_after_a_node)
{
	base_list_push_back(&head, &items[1].link);
	base_list_push_back(&head, &items[3].link);
	base_list_add_after(&items[2].link, &items[1].link);
	cr_assert_eq(order(), 123);
}

Test(list, remove_leaves_a_node_on_no_list)
{
	for (int i = 1; i < 4; i++)
		base_list_push_back(&head, &items[i].link);
	base_list_remove(&items[2].link);
	cr_assert_eq(order(), 13);
	cr_assert(base_list_empty(&items[2].link));
	base_list_remove(&items[2].link);
	cr_assert_eq(order(), 13);
}

Test(list, foreach_may_remove)
{
	struct base_list *node, *next;
	int seen = 0;

	for (int i = 1; i < 4; i++)
		base_list_push_back(&head, &items[i].link);
	base_list_foreach(node, next, &head) {
		base_list_remove(node);
		seen++;
	}
	cr_assert_eq(seen, 3);
	cr_assert(base_list_empty(&head));
}

Test(list, pop_takes_the_oldest)
{
	base_list_push_back(&head, &items[1].link);
	base_list_push_back(&head, &items[2].link);
	cr_assert_eq(base_list_first(&head), &items[1].link);
	cr_assert_eq(base_list_pop_front(&head), &items[1].link);
	cr_assert_eq(base_list_pop_front(&head), &items[2].link);
	cr_assert_null(base_list_pop_front(&head));
	cr_assert_null(base_list_first(&head));
}
