/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Cases for a test that is a plain program: those under ThreadSanitizer, which Criterion's way
 * of starting a test does not survive, and those that must own their process. A program uses it
 * from one thread and returns tap_finish() from main().
 */
static int tap_count;
static int tap_failed;
static const char *tap_skipped;

/* What a case returns that cannot be run here */
static inline bool tap_skip(const char *reason)
{
	tap_skipped = reason;
	return true;
}

static inline bool tap_case(bool good, const char *name)
{
	bool skipped = good && tap_skipped;

	printf("%sok %d - %s%s%s\n", good ? "" : "not ", ++tap_count, name,
	       skipped ? " # SKIP " : "", skipped ? tap_skipped : "");
	fflush(stdout);
	tap_skipped = NULL;
	tap_failed += !good;
	return good;
}

static inline int tap_finish(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? 1 : 0;
}

#endif
