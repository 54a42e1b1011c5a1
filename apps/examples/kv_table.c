/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-kv's hash table: flat memory that clients read without asking. A key stands in one of
 * KV_PROBE neighbouring slots, which one RDMA Read fetches.
 *
 * A Read sees the memory in any order and at any time. What protects it is not a lock but the
 * sum: a slot that was caught in the middle of a change has an odd version or does not add up,
 * and is read again.
 */
#include "kv.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one change at a time */

/* FNV-1a */
#define HASH_START 0xCBF29CE484222325ull
#define HASH_PRIME 0x100000001B3ull

static uint64_t hash(uint64_t h, const void *p, size_t len)
{
	const uint8_t *octet = p;

	while (len--)
		h = (h ^ *octet++) * HASH_PRIME;
	return h;
}

uint32_t kv_home(const char *key, size_t len, uint32_t slots)
{
	return (uint32_t)(hash(HASH_START, key, len) % slots);
}

uint64_t kv_slot_sum(const struct kv_slot *slot)
{
	uint64_t h = hash(HASH_START, &slot->version, sizeof(slot->version));

	h = hash(h, &slot->key_len, 2);
	h = hash(h, slot->key, slot->key_len <= KV_KEY_MAX ? slot->key_len : 0);
	return hash(h, slot->value, slot->value_len <= KV_VALUE_MAX ? slot->value_len : 0);
}

bool kv_slot_whole(const struct kv_slot *slot)
{
	return !(be64toh(slot->version) & 1) && slot->key_len <= KV_KEY_MAX &&
	       slot->value_len <= KV_VALUE_MAX && be64toh(slot->sum) == kv_slot_sum(slot);
}

bool kv_slot_holds(const struct kv_slot *slot, const char *key, size_t len)
{
	return slot->key_len == len && !memcmp(slot->key, key, len);
}

int kv_table_init(struct kv_table *t, uint32_t count)
{
	t->count = count;
	t->slots = calloc(count + KV_PROBE - 1, sizeof(*t->slots));
	if (!t->slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < count + KV_PROBE - 1; i++)
		t->slots[i].sum = htobe64(kv_slot_sum(&t->slots[i]));
	return 0;
}

void kv_table_uninit(struct kv_table *t)
{
	free(t->slots);
	t->slots = NULL;
}

size_t kv_table_size(const struct kv_table *t)
{
	return (t->count + KV_PROBE - 1) * sizeof(*t->slots);
}

static void slot_version_set(struct kv_slot *slot, uint64_t version)
{
	/*
	 * Pairs with whoever reads the memory for a peer: before and behind it the octets stay
	 * where they are.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&slot->version, htobe64(version), __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void slot_change(struct kv_table *t, struct kv_slot *slot, const struct kv_request *req)
{
	uint64_t version = be64toh(slot->version);
	struct kv_slot new = { .version = htobe64(version + 2) };

	if (req->op == KV_PUT) {
		new.key_len = req->key_len;
		new.value_len = req->value_len;
		memcpy(new.key, req->key, req->key_len);
		memcpy(new.value, req->value, req->value_len);
	}
	new.sum = htobe64(kv_slot_sum(&new));
	slot_version_set(slot, version + 1);
	memcpy(&slot->key_len, &new.key_len,
	       offsetof(struct kv_slot, value) - offsetof(struct kv_slot, key_len));
	if (t->tear_ms)
		usleep(t->tear_ms * 1000);
	memcpy(slot->value, new.value, sizeof(slot->value));
	slot->sum = new.sum;
	slot_version_set(slot, version + 2);
}

static enum kv_answer apply(struct kv_table *t, const struct kv_request *req)
{
	struct kv_slot *slot = t->slots + kv_home(req->key, req->key_len, t->count);
	struct kv_slot *empty = NULL;

	for (unsigned int i = 0; i < KV_PROBE; i++, slot++) {
		if (kv_slot_holds(slot, req->key, req->key_len)) {
			slot_change(t, slot, req);
			return KV_DONE;
		}
		if (!slot->key_len && !empty)
			empty = slot;
	}
	if (req->op == KV_DELETE)
		return KV_ABSENT;
	if (!empty)
		return KV_FULL;
	slot_change(t, empty, req);
	return KV_DONE;
}

enum kv_answer kv_table_apply(struct kv_table *t, const struct kv_request *req)
{
	enum kv_answer answer;

	if (req->op != KV_PUT && req->op != KV_DELETE)
		return KV_BAD;
	if (!req->key_len || req->key_len > KV_KEY_MAX || req->value_len > KV_VALUE_MAX)
		return KV_BAD;
	pthread_mutex_lock(&lock);
	answer = apply(t, req);
	pthread_mutex_unlock(&lock);
	return answer;
}
