/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The providers of this process. Each one enters itself by a constructor, so that to link a
 * provider is to have it.
 *
 * Invariants: an entry is never taken out; entries are added before main() or under the dynamic
 * linker's lock, one at a time, and may be looked for by any thread meanwhile.
 */
#include "rnic/rnic.h"

#include <string.h>

#include "base/bits.h"
#include "base/log.h"

#define PROVIDERS_MAX 8

static const struct rnic_ops *providers[PROVIDERS_MAX];
static unsigned int provider_count; /* release in rnic_register(), acquire in rnic_at() */

const struct rnic_ops *rnic_at(unsigned int i)
{
	return i < __atomic_load_n(&provider_count, __ATOMIC_ACQUIRE) ? providers[i] : NULL;
}

const struct rnic_ops *rnic_find(const char *name)
{
	const struct rnic_ops *ops;
	size_t len;

	if (!name)
		return rnic_at(0);
	len = strcspn(name, ":");
	for (unsigned int i = 0; (ops = rnic_at(i)); i++)
		if (strlen(ops->name) == len && !memcmp(ops->name, name, len))
			return ops;
	return NULL;
}

const char *rnic_device_name(const char *name)
{
	const char *colon = name ? strchr(name, ':') : NULL;

	return colon ? colon + 1 : NULL;
}

void rnic_register(const struct rnic_ops *ops)
{
	if (rnic_find(ops->name) || provider_count == PROVIDERS_MAX) {
		base_err("provider %s: %s", ops->name,
			 provider_count == PROVIDERS_MAX ? "there are too many"
							 : "there is one already");
		return;
	}
	providers[provider_count] = ops;
	__atomic_store_n(&provider_count, provider_count + 1, __ATOMIC_RELEASE);
}
