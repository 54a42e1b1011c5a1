/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What warp-kv's server and clients agree on; warp-kv(1) has it in words. All numbers are big-
 * endian.
 */
#ifndef APPS_EXAMPLES_KV_H
#define APPS_EXAMPLES_KV_H

#include <stdbool.h>
#include <stdint.h>

#include "endpoint.h"

#define KV_PORT 7175
#define KV_MAGIC 0x574B5631 /* "WKV1" */
#define KV_PROBE 8	    /* slots that one key may be in: what one Read fetches */
#define KV_KEY_MAX 62
#define KV_VALUE_MAX 176
#define KV_SLOTS_MAX (1ul << 24)

/*
 * One slot of the table. The server changes it in place while clients read it: version is odd
 * meanwhile, and sum covers all of it, the version included, so that a mixture of two states
 * does not fit.
 */
struct kv_slot {
	uint64_t version;
	uint64_t sum;
	uint8_t key_len; /* 0: nothing is here */
	uint8_t value_len;
	char key[KV_KEY_MAX];
	char value[KV_VALUE_MAX];
};
_Static_assert(sizeof(struct kv_slot) == 256, "a slot's place is its number times 256");

/* Private data of the server's Reply: where the table is */
struct kv_geometry {
	uint32_t magic;
	uint32_t stag;
	uint64_t to;
	uint32_t slots; /* that keys hash to; KV_PROBE - 1 more stand behind them */
	uint32_t slot_size;
};
_Static_assert(sizeof(struct kv_geometry) == 24, "goes as it is");

/* What a client sends to change something, and the answer */
enum kv_op { KV_PUT = 1, KV_DELETE = 2 };
enum kv_answer { KV_DONE, KV_FULL, KV_ABSENT, KV_BAD };

struct kv_request {
	uint8_t op, key_len, value_len, pad;
	char key[KV_KEY_MAX];
	char value[KV_VALUE_MAX];
};
_Static_assert(sizeof(struct kv_request) == 242, "goes as it is");

/* --- both sides --------------------------------------------------------------------------- */

/* The first of the KV_PROBE slots that a key may be in */
uint32_t kv_home(const char *key, size_t len, uint32_t slots);
uint64_t kv_slot_sum(const struct kv_slot *slot);
/* Nobody was changing it when it was read */
bool kv_slot_whole(const struct kv_slot *slot);
bool kv_slot_holds(const struct kv_slot *slot, const char *key, size_t len);

/* --- server: one table, several threads --------------------------------------------------- */

struct kv_table {
	struct kv_slot *slots;
	uint32_t count;
	unsigned int tear_ms; /* stop so long half-way through a change */
};

int kv_table_init(struct kv_table *t, uint32_t count);
void kv_table_uninit(struct kv_table *t);
size_t kv_table_size(const struct kv_table *t);
enum kv_answer kv_table_apply(struct kv_table *t, const struct kv_request *req);

/* --- the program -------------------------------------------------------------------------- */

struct kv_options {
	const char *host, *provider;
	struct sockaddr_storage addr;
	uint16_t port;
	uint32_t slots;
	unsigned int tear_ms;
	uint32_t repeat;
	bool quiet;
	int timeout_ms;
};

/* Status to exit with */
enum kv_status { KV_OK, KV_NOT_FOUND, KV_USAGE, KV_FAILED };

enum kv_status kv_server_run(const struct kv_options *opt, struct warp_device *dev);
enum kv_status kv_client_get(const struct kv_options *opt, struct warp_device *dev, char **keys,
			     int n);
/* @value NULL: delete */
enum kv_status kv_client_change(const struct kv_options *opt, struct warp_device *dev,
				const char *key, const char *value);

#endif
