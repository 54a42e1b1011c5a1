/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Octets that are a function of direction and position, so that each can be checked alone, and a
 * few of them tell where they belong.
 */
#include "ledger.h"

static uint64_t mixed(uint64_t x)
{
	x += 0x9E3779B97F4A7C15ull;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
	return x ^ (x >> 31);
}

static uint8_t octet(int role, uint64_t at)
{
	return (uint8_t)(mixed((uint64_t)role << 56 | at / 8) >> at % 8 * 8);
}

void pattern_put(int role, uint64_t at, uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = octet(role, at + i);
}

size_t pattern_check(int role, uint64_t at, const uint8_t *p, size_t len)
{
	size_t i = 0;

	while (i < len && p[i] == octet(role, at + i))
		i++;
	return i;
}

uint32_t pattern_random(uint64_t *seed, uint32_t below)
{
	*seed = mixed(*seed);
	return (uint32_t)(*seed >> 33) % below;
}
