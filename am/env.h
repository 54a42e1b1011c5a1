/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_ENV_H
#define AM_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Environment variables of AMUDP: name X is looked up as PREFIX_X, if there is a prefix, as AMUDP_X
 * and as X, in the process, and then in the copy that a worker has of the console's environment.
 * Values have been checked: am_env_check() comes first.
 */
const char *am_env_get(const char *name);
int64_t am_env_int(const char *name, int64_t fallback);
double am_env_double(const char *name, double fallback);
bool am_env_bool(const char *name, bool fallback);

/* A question that may be left to us: "auto", or nothing said. */
enum am_choice { AM_CHOICE_NO, AM_CHOICE_YES, AM_CHOICE_AUTO };
enum am_choice am_env_choice(const char *name);
/* What a word of the table of truth says: 1, 0, -EINVAL. */
int am_env_truth(const char *value);

/* As am_env_get(), but VERBOSEENV does not show it, and *spelled is the name that was found. */
#define AM_ENV_NAME_MAX 96
const char *am_env_find(const char *name, char *spelled);
/* The first spelling of a name, for messages that tell what to set; good until the next call. */
const char *am_env_name(const char *name);
/* The words that may stand before a name, from the first, 0, on; NULL: no more. */
const char *am_env_prefix(int i);
/* AMUDP_ENV_PREFIX that cannot stand before a name; NULL: it can, or nobody asks for one. */
const char *am_env_prefix_wrong(void);
/* VERBOSEENV: what was decided about a name, whatever its value says. */
void am_env_tell(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* env_check.c: 0, or -EINVAL when it has said on stderr which values are wrong. */
int am_env_check(void);
/* Is this a name that the library reads, without a word before it? */
bool am_env_is_ours(const char *name, size_t len);

/* env_pass.c: goes the console's NAME=VALUE to workers on other machines? See amudp(7). */
bool am_env_passes(const char *entry);

/* The copy that a worker got: NUL-terminated strings, an empty one last. */
extern const char *am_env_console;
const char *am_env_console_get(const char *name);

#endif
