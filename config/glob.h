/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CONFIG_GLOB_H
#define CONFIG_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Patterns for program names: * any bytes, ? one byte, [a-z] one of a set, [!a-z] or [^a-z]
 * one outside of it, \ takes the next byte as it is. They mean what fnmatch() takes them for in
 * the C locale, whatever the program's locale is.
 */

/* Async-signal-safe. Reads no byte behind a NUL, also in a pattern that is malformed. */
bool config_glob_match(const char *pattern, const char *text);

/* NULL, or what was expected, and at which byte of the pattern it is missing. */
const char *config_glob_check(const char *pattern, size_t *where);

#endif
