/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stream of octets of which each tells its place: of four, six bits each, and two bits which of
 * the four. So several processes can read from it, and see that none comes twice or out of order.
 */
#ifndef TESTS_E2E_PROGRAMS_CALLS_OCTETS_H
#define TESTS_E2E_PROGRAMS_CALLS_OCTETS_H

#include "tests/e2e/programs/calls_share.h"

static inline uint8_t octet_at(uint32_t at)
{
	return (uint8_t)((at & 3) << 6 | (at >> 2 >> 6 * (at & 3) & 63));
}

/* The place of the first; -1: too few to tell */
static inline long place_of(const uint8_t *p, ssize_t n)
{
	for (ssize_t i = 0; i + 4 <= n; i++)
		if (!(p[i] >> 6)) {
			long word = (p[i] & 63) | (p[i + 1] & 63) << 6 | (p[i + 2] & 63) << 12 |
				    (p[i + 3] & 63) << 18;

			return 4 * word - i;
		}
	return -1;
}

/* In their order and nothing else; each is noted */
static inline bool note(const uint8_t *p, ssize_t n)
{
	long at = place_of(p, n);

	if (at < 0) {
		__atomic_add_fetch(&crew->loose, n, __ATOMIC_RELAXED);
		return true;
	}
	need(at + n <= STREAM);
	for (ssize_t i = 0; i < n; i++) {
		need(p[i] == octet_at((uint32_t)(at + i)));
		__atomic_add_fetch(&crew->seen[at + i], 1, __ATOMIC_RELAXED);
	}
	return true;
}

static inline bool none_twice(void)
{
	for (long i = 0; i < STREAM; i++)
		need(crew->seen[i] <= 1);
	return true;
}

static inline bool all_seen(void)
{
	uint32_t missing = 0;

	for (long i = 0; i < STREAM; i++)
		missing += !crew->seen[i];
	need(missing == crew->loose);
	return none_twice();
}

/* How many there were before the end, or the limit; -1: something else */
static inline long take_up_to(int fd, size_t size, long limit)
{
	static uint8_t buf[65536];
	long sum = 0;
	ssize_t n;

	while (sum < limit && (n = read(fd, buf, size)) != 0) {
		if (n < 0 || !note(buf, n))
			return -1;
		sum += n;
	}
	return sum;
}

static inline bool takes_some(const struct share *s)
{
	return take_up_to(s->fd, s->number % 2 ? 700 : 20000, STREAM + 1) >= 0;
}

static inline bool put_part(int fd, long from, long to)
{
	static uint8_t buf[10007];

	for (long at = from; at < to;) {
		long n = to - at < (long)sizeof(buf) ? to - at : (long)sizeof(buf);
		ssize_t done;

		for (long i = 0; i < n; i++)
			buf[i] = octet_at((uint32_t)(at + i));
		done = write(fd, buf, (size_t)n);
		need(done > 0);
		at += done;
	}
	return true;
}

static inline bool writes_all(const struct share *s)
{
	return put_part(s->fd, 0, STREAM);
}

/* The whole stream, of one writer, with pauses */
static inline bool drain_stream(int fd)
{
	static uint8_t buf[20000];
	long sum = 0;

	while (sum < STREAM) {
		ssize_t n = read(fd, buf, sizeof(buf));

		need(n > 0);
		for (ssize_t i = 0; i < n; i++)
			need(buf[i] == octet_at((uint32_t)(sum + i)));
		if (sum / 300000 != (sum + n) / 300000)
			nap_ms(10);
		sum += n;
	}
	return true;
}

#endif
