/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_ENV_H
#define AM_ENV_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Environment variables of AMUDP: name X is looked up as AMUDP_X, then as X, in the process and
 * then, in a worker of a job, in the copy of the console's environment.
 */
const char *am_env_get(const char *name);
int64_t am_env_int(const char *name, int64_t fallback);
double am_env_double(const char *name, double fallback);
bool am_env_bool(const char *name, bool fallback);

/* A question that may be left to us: "auto", or nothing said. */
enum am_choice { AM_CHOICE_NO, AM_CHOICE_YES, AM_CHOICE_AUTO };
enum am_choice am_env_choice(const char *name);

/* The copy that a worker got: NUL-terminated strings, an empty one last. */
extern const char *am_env_console;
const char *am_env_console_get(const char *name);

#endif
