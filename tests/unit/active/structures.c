/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data structures of the examples (apps/examples), in this process's own memory: against
 * models, and from several threads.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Swaps go through a place_swap() of this file */
#define place_swap place_swap_plain
#include "apps/examples/place_memory.h"
#undef place_swap

static inline int place_swap(struct place *p, unsigned long addr, unsigned long *old,
			     unsigned long value);

#include "apps/examples/btree_code.h"
#include "apps/examples/btree_fill.h"
#include "apps/examples/hash_code.h"
#include "apps/examples/lock_code.h"
#include "apps/examples/store_code.h"

enum { MEMORY = 64 << 20, KEYS = 3000, OPERATIONS = 30000, THREADS = 4 };

static unsigned long *memory;
static unsigned int seed = 11;

/* What another client does just before the next swap of this thread, or before a value is given */
static __thread void (*meanwhile)(void);

static void meanwhile_do(void)
{
	void (*what)(void) = meanwhile;

	meanwhile = NULL;
	if (what)
		what();
}

static inline int place_swap(struct place *p, unsigned long addr, unsigned long *old,
			     unsigned long value)
{
	meanwhile_do();
	return place_swap_plain(p, addr, old, value);
}

static unsigned long at(void)
{
	return (unsigned long)memory;
}

static void fresh(void)
{
	memory = aligned_alloc(64, MEMORY);
	cr_assert_not_null(memory);
	memset(memory, 0, MEMORY);
}

static void gone(void)
{
	free(memory);
}

static void threads_run(void *(*what)(void *arg))
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		cr_assert_not(pthread_create(&threads[i], NULL, what, (void *)i));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* --- B-tree ------------------------------------------------------------------------------- */

static struct btree_pair given[KEYS + 1];
static unsigned long given_count, given_room = KEYS;

static inline long btree_give(struct place *place, const struct btree_pair *pair)
{
	if (given_count == given_room)
		return -1;
	given[given_count++] = *pair;
	return 0;
}

static int tree_put(unsigned long key, unsigned long value)
{
	const struct btree_args args = { at(), MEMORY, { key, value }, 0 };

	return btree_put(NULL, &args);
}

static int tree_get(unsigned long key, unsigned long *value)
{
	const struct btree_args args = { at(), MEMORY, { key, 0 }, 0 };

	return btree_get(NULL, &args, value);
}

/* All pairs of the range, from as many calls as the room for them makes necessary */
static void tree_range(unsigned long first, unsigned long last)
{
	struct btree_args args = { at(), MEMORY, { first, last }, memory[BTREE_ROOT_AT / 8] };
	unsigned long from;

	given_count = given_room = 0;
	do {
		given_room += 700;
		cr_assert(given_room < KEYS + 700);
	} while (btree_range(NULL, &args, &from) == 1 && (args.pair.key = from));
}

/* @model has a value for each key, 0 for none */
static void tree_check(const unsigned long *model)
{
	unsigned long n = 0, value;

	tree_range(0, ~0ul);
	for (unsigned long key = 0; key < KEYS; key++) {
		cr_assert_eq(tree_get(key, &value), !!model[key]);
		if (!model[key])
			continue;
		cr_assert_eq(value, model[key]);
		cr_assert(n < given_count && given[n].key == key && given[n].value == value);
		n++;
	}
	cr_assert_eq(n, given_count);
}

Test(active_structures, btree_against_a_model, .init = fresh, .fini = gone)
{
	static unsigned long model[KEYS];

	memory[BTREE_FREE_AT / 8] = BTREE_NODES_AT;
	tree_check(model);
	for (int i = 0; i < OPERATIONS; i++) {
		/* most in ascending order, as logs are; these split other nodes than random ones */
		unsigned long key = i % 3 ? (unsigned long)i * KEYS / OPERATIONS
					  : (unsigned long)rand_r(&seed) % KEYS;

		model[key] = (unsigned long)i + 1;
		cr_assert_eq(tree_put(key, model[key]), 0);
		if (i % 10000 == 0)
			tree_check(model);
	}
	tree_check(model);
}

Test(active_structures, btree_as_the_server_fills_it, .init = fresh, .fini = gone)
{
	for (unsigned long keys = 1; keys < 2500; keys += keys < 60 ? 1 : 191) {
		static unsigned long model[KEYS];

		memset(memory, 0, 1 << 20);
		memset(model, 0, sizeof(model));
		btree_fill(memory, keys);
		for (unsigned long key = 1; key <= keys; key++)
			model[key] = key;
		tree_check(model);
		model[keys + 1] = model[keys / 2] = 5;
		cr_assert_eq(tree_put(keys + 1, 5) | tree_put(keys / 2, 5), 0);
		tree_check(model);
	}
}

static void *tree_putter(void *arg)
{
	for (unsigned long i = 0; i < 500; i++)
		cr_assert_eq(tree_put(i * THREADS + (unsigned long)arg, i + 1), 0);
	return NULL;
}

Test(active_structures, btree_from_several_threads, .init = fresh, .fini = gone)
{
	static unsigned long model[KEYS];

	memory[BTREE_FREE_AT / 8] = BTREE_NODES_AT;
	threads_run(tree_putter);
	for (unsigned long i = 0; i < 500ul * THREADS; i++)
		model[i] = i / THREADS + 1;
	tree_check(model);
}

static void tree_put_another(void)
{
	cr_assert_eq(tree_put(7, 8), 0);
}

/* A root that another client enters in between is not lost */
Test(active_structures, btree_whose_root_changes, .init = fresh, .fini = gone)
{
	unsigned long value;

	memory[BTREE_FREE_AT / 8] = BTREE_NODES_AT;
	cr_assert_eq(tree_put(1, 2), 0);
	meanwhile = tree_put_another;
	cr_assert_eq(tree_put(3, 4), 0);
	cr_assert_eq(tree_get(7, &value), 1);
	cr_assert_eq(tree_get(3, &value), 1);
}

/* What cannot be is an error, and ends */
Test(active_structures, btree_that_is_damaged, .init = fresh, .fini = gone)
{
	struct btree_node *root;
	unsigned long value;

	btree_fill(memory, 2000);
	root = (struct btree_node *)memory[BTREE_ROOT_AT / 8];
	root->values[0] = (unsigned long)root;
	cr_assert_eq(tree_get(1, &value), PLACE_DAMAGED);
	cr_assert_eq(tree_put(1, 1), PLACE_DAMAGED);
	root->count = BTREE_KEYS + 1;
	cr_assert_eq(tree_get(2000, &value), PLACE_DAMAGED);
}

/* --- hash table --------------------------------------------------------------------------- */

/* A bin that leads in a circle ends, too */
Test(active_structures, hash_that_is_damaged, .init = fresh, .fini = gone, .timeout = 20)
{
	struct hash_args args = { { 0, 5, "one" }, at(), HASH_ENTRIES_AT + 640 };
	unsigned long value = 0;

	memory[0] = HASH_ENTRIES_AT;
	cr_assert_eq(hash_put(NULL, &args), 0);
	cr_assert_eq(hash_get(NULL, &args, &value), 1);
	cr_assert_eq(value, 5);
	((struct hash_entry *)(at() + HASH_ENTRIES_AT))->next = at() + HASH_ENTRIES_AT;
	((struct hash_entry *)(at() + HASH_ENTRIES_AT))->key[0] = 'x';
	cr_assert_eq(hash_get(NULL, &args, &value), PLACE_DAMAGED);
	cr_assert_eq(hash_put(NULL, &args), PLACE_DAMAGED);
}

/* --- lock --------------------------------------------------------------------------------- */

static struct lock_args lock_args(unsigned long node)
{
	return (struct lock_args){ at(), LOCK_NODES_AT + 16 * sizeof(struct lock_node), node, 10 };
}

/* Every fifth does not wait for long */
static void *lock_user(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		struct lock_args args = lock_args(0);
		int ret = lock_enter(NULL, &args, &args.node);

		for (int looks = 0; !ret && (i % 5 || looks < 3); looks++) {
			ret = lock_look(NULL, &args);
			sched_yield();
		}
		if (!ret)
			ret = lock_give_up(NULL, &args);
		cr_assert(ret >= 0);
		if (!ret)
			continue;
		memory[LOCK_NUMBER_AT / 8]++;
		__atomic_add_fetch(&memory[LOCK_TICKET_AT / 8 + 1], 1, __ATOMIC_RELAXED);
		do
			ret = lock_leave(NULL, &args);
		while (ret == PLACE_LATE && !sched_yield());
		cr_assert_eq(ret, 0);
	}
	return NULL;
}

Test(active_structures, lock_from_several_threads, .init = fresh, .fini = gone, .timeout = 60)
{
	threads_run(lock_user);
	cr_assert_eq(memory[LOCK_NUMBER_AT / 8], memory[LOCK_TICKET_AT / 8 + 1]);
	cr_assert_gt(memory[LOCK_NUMBER_AT / 8], 2000ul);
	cr_assert_eq(memory[LOCK_TAIL_AT / 8], 0);
	for (int i = 0; i < 16; i++)
		cr_assert_eq(((struct lock_node *)(at() + LOCK_NODES_AT))[i].state, LOCK_UNUSED);
}

static struct lock_args late;

/* Its node stands behind the one that gives up: it enters while that is taken out of the queue */
static void enter_late(void)
{
	late = lock_args(0);
	cr_assert_eq(lock_enter(NULL, &late, &late.node), 0);
}

static void give_up_then_enter(void)
{
	meanwhile = enter_late;
}

Test(active_structures, lock_entered_behind_one_that_gave_up, .init = fresh, .fini = gone)
{
	struct lock_args owner = lock_args(0), gone_one = lock_args(0);

	cr_assert_eq(lock_enter(NULL, &owner, &owner.node), 1);
	cr_assert_eq(lock_enter(NULL, &gone_one, &gone_one.node), 0);
	cr_assert_eq(lock_give_up(NULL, &gone_one), 0);
	/* the first swap is that of the state, the second that of the queue's end */
	meanwhile = give_up_then_enter;
	cr_assert_eq(lock_leave(NULL, &owner), 0);
	cr_assert_eq(lock_look(NULL, &late), 1);
	cr_assert_eq(lock_leave(NULL, &late), 0);
	cr_assert_eq(memory[LOCK_TAIL_AT / 8], 0);
}

Test(active_structures, lock_that_is_damaged, .init = fresh, .fini = gone)
{
	struct lock_args args = lock_args(0);

	memory[LOCK_TAIL_AT / 8] = 12345;
	cr_assert_eq(lock_enter(NULL, &args, &args.node), PLACE_DAMAGED);
	memory[LOCK_TAIL_AT / 8] = 0;
	cr_assert_eq(lock_enter(NULL, &args, &args.node), 1);
	*(unsigned long *)args.node = 12345;
	cr_assert_eq(lock_leave(NULL, &args), PLACE_DAMAGED);
	*(unsigned long *)args.node = args.node; /* a circle: it is not what waits behind itself */
	memory[LOCK_TAIL_AT / 8] = 1;
	((struct lock_node *)args.node)->state = LOCK_OWNS;
	cr_assert_eq(lock_leave(NULL, &args), PLACE_DAMAGED);
}

/* --- store -------------------------------------------------------------------------------- */

enum { STORE = 4 << 20, NAMES = 400 };

static __thread uint64_t value_given[POOL_BLOCK_MAX / 8];
static __thread unsigned long length_given;

static inline long store_give(struct place *place, const void *from, unsigned long len)
{
	memcpy(value_given, from, len);
	length_given = len;
	meanwhile_do();
	return 0;
}

struct request {
	struct store_args args;
	uint64_t value[POOL_BLOCK_MAX / 8];
};

static void store_fresh(void)
{
	fresh();
	memory[POOL_FREE_AT / 8] = STORE_BUCKETS_AT + store_buckets(STORE) * STORE_SLOTS * 8;
}

static void request_make(struct request *r, unsigned int name, unsigned char byte, size_t length)
{
	memset(&r->args, 0, sizeof(r->args));
	r->args.store = at();
	r->args.size = STORE;
	snprintf(r->args.record.key, STORE_KEY, "key %u", name);
	r->args.record.length = length;
	memset(r->value, byte, length);
}

static void value_check(unsigned char byte, size_t length)
{
	cr_assert_eq(length_given, length);
	for (size_t i = 0; i < length; i++)
		cr_assert_eq(((unsigned char *)value_given)[i], byte);
}

Test(active_structures, store_against_a_model, .init = store_fresh, .fini = gone)
{
	static size_t model[NAMES]; /* the length plus one, or 0 */
	static unsigned char bytes[NAMES];
	static struct request r;

	for (int i = 0; i < OPERATIONS; i++) {
		unsigned int name = (unsigned int)rand_r(&seed) % NAMES;
		size_t length = (size_t)rand_r(&seed) % (i % 4 ? 200 : STORE_VALUE_MAX + 1);

		request_make(&r, name, (unsigned char)i, length);
		switch (rand_r(&seed) % 4) {
		case 0:
			cr_assert_eq(store_delete(NULL, &r.args, NULL), !!model[name]);
			model[name] = 0;
			break;
		case 1:
			cr_assert_eq(store_put(NULL, &r.args, NULL), 0);
			model[name] = length + 1;
			bytes[name] = (unsigned char)i;
			break;
		default:
			length_given = 0;
			cr_assert_eq(store_get(NULL, &r.args, NULL), !!model[name]);
			if (model[name])
				value_check(bytes[name], model[name] - 1);
		}
	}
}

static void put_another(void)
{
	static struct request r;

	request_make(&r, 1, 'b', 500);
	cr_assert_eq(store_put(NULL, &r.args, NULL), 0);
}

/* A value that is replaced while it is read, and a put that another one overtakes */
Test(active_structures, store_while_others_change_it, .init = store_fresh, .fini = gone)
{
	static struct request r;

	request_make(&r, 1, 'a', 500);
	cr_assert_eq(store_put(NULL, &r.args, NULL), 0);
	meanwhile = put_another;
	cr_assert_eq(store_get(NULL, &r.args, NULL), PLACE_AGAIN);
	cr_assert_eq(store_get(NULL, &r.args, NULL), 1);
	value_check('b', 500);
	meanwhile = put_another;
	cr_assert_eq(store_put(NULL, &r.args, NULL), 0);
	cr_assert_eq(store_get(NULL, &r.args, NULL), 1);
	value_check('a', 500);
	cr_assert_eq(store_delete(NULL, &r.args, NULL), 1);
	cr_assert_eq(store_delete(NULL, &r.args, NULL), 0);
}

/* Values of one byte each: a value of two kinds would be parts of two values */
static void *store_user(void *arg)
{
	struct request *r = malloc(sizeof(*r));
	unsigned int own = (unsigned int)(long)arg;

	cr_assert_not_null(r);
	for (unsigned int i = 0; i < 4000; i++) {
		size_t length = rand_r(&own) % 700 + 1;
		int ret;

		request_make(r, rand_r(&own) % 3, (unsigned char)i, length);
		if (i % 4 == 0) {
			ret = store_put(NULL, &r->args, NULL);
		} else if (i % 16 == 1) {
			ret = store_delete(NULL, &r->args, NULL);
		} else {
			length_given = 0;
			ret = store_get(NULL, &r->args, NULL);
			if (ret == 1)
				value_check((unsigned char)*value_given, length_given);
		}
		cr_assert(ret >= 0 || ret == PLACE_AGAIN);
	}
	free(r);
	return NULL;
}

Test(active_structures, store_from_several_threads, .init = store_fresh, .fini = gone)
{
	static struct request r;

	threads_run(store_user);
	for (unsigned int name = 0; name < 3; name++) {
		request_make(&r, name, 1, 1);
		cr_assert(store_delete(NULL, &r.args, NULL) >= 0);
		cr_assert_eq(store_get(NULL, &r.args, NULL), 0);
	}
}

/* --- allocator ---------------------------------------------------------------------------- */

static unsigned char taken[STORE / 64];

static void *pool_user(void *arg)
{
	unsigned int own = (unsigned int)(long)arg;

	for (int i = 0; i < 20000; i++) {
		unsigned int class = rand_r(&own) % 3;
		unsigned long block[2];

		for (int j = 0; j < 2; j++) {
			cr_assert_eq(pool_take(NULL, at(), STORE, class, &block[j]), 0);
			cr_assert_eq(__atomic_exchange_n(&taken[block[j]], 1, __ATOMIC_RELAXED), 0);
		}
		for (int j = 0; j < 2; j++) {
			__atomic_store_n(&taken[block[j]], 0, __ATOMIC_RELAXED);
			cr_assert_eq(pool_give(NULL, at(), class, block[j]), 0);
		}
	}
	return NULL;
}

static unsigned long other[2];

static void take_both_and_give_one(void)
{
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pool_take(NULL, at(), STORE, 0, &other[i]), 0);
	cr_assert_eq(pool_give(NULL, at(), 0, other[0]), 0);
}

/* The first block of a list is the same again, but another one stands behind it */
Test(active_structures, allocator_whose_list_changed_and_looks_the_same, .init = store_fresh,
     .fini = gone)
{
	unsigned long block[2];

	for (int i = 0; i < 2; i++)
		cr_assert_eq(pool_take(NULL, at(), STORE, 0, &block[i]), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pool_give(NULL, at(), 0, block[i]), 0);
	meanwhile = take_both_and_give_one;
	cr_assert_eq(pool_take(NULL, at(), STORE, 0, &block[0]), 0);
	cr_assert_eq(pool_take(NULL, at(), STORE, 0, &block[1]), 0);
	cr_assert_neq(block[0], other[1]);
	cr_assert_neq(block[1], other[1]);
}

/* No block has two owners, and all come back */
Test(active_structures, allocator_from_several_threads, .init = store_fresh, .fini = gone)
{
	unsigned long before = memory[POOL_FREE_AT / 8];

	threads_run(pool_user);
	cr_assert_leq(memory[POOL_FREE_AT / 8] - before, THREADS * 2ul * (128 + 256 + 512));
}

Test(active_structures, allocator_that_is_damaged, .init = store_fresh, .fini = gone)
{
	unsigned long block;

	memory[POOL_LISTS_AT / 8] = STORE / 64 - 1;
	cr_assert_eq(pool_take(NULL, at(), STORE, 0, &block), PLACE_DAMAGED);
	memory[POOL_FREE_AT / 8] = ~0ul - 200;
	cr_assert_eq(pool_take(NULL, at(), STORE, 1, &block), PLACE_FULL);
}
