/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reasons by socket: by the kernel's cookie and not by number, so that nothing has to be done when
 * one is closed. An entry is one word, cookie and reason; a later socket may take its place.
 */
#include "preload/rules/plain.h"

#include <stdint.h>

#include "base/sockutil.h"

#define ENTRIES 1024u
#define REASON_BITS 16

static uint64_t entries[ENTRIES]; /* atomic */

/* 0: it is no socket */
static uint64_t cookie_of(int fd)
{
	uint64_t cookie;

	return base_sock_cookie(fd, &cookie) ? 0 : cookie;
}

/* Cookies are counted up, in lots of which each processor has its own */
static uint64_t *entry_of(uint64_t cookie)
{
	return &entries[(cookie ^ cookie >> 10) % ENTRIES];
}

void plain_note(int fd, enum config_reason reason)
{
	uint64_t cookie = cookie_of(fd);

	if (cookie)
		__atomic_store_n(entry_of(cookie), cookie << REASON_BITS | reason,
				 __ATOMIC_RELAXED);
}

enum config_reason plain_reason(int fd)
{
	uint64_t cookie = cookie_of(fd);
	uint64_t word = __atomic_load_n(entry_of(cookie), __ATOMIC_RELAXED);

	if (!cookie || word >> REASON_BITS != cookie << REASON_BITS >> REASON_BITS)
		return CONFIG_REASON_RULE_NONE;
	return (enum config_reason)(word & ((1u << REASON_BITS) - 1));
}
