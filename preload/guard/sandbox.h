/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_SANDBOX_H
#define PRELOAD_SANDBOX_H

#include <stdbool.h>

/*
 * What the process may still ask of the kernel after its seccomp filters. Calls of ours that a
 * filter would not let through are not made: they fail with EPERM, and whoever made them
 * has another way or does without.
 */
extern bool sandbox_on; /* atomic: there is a filter */

/* With a filter: would call @n with these arguments be let through? */
bool sandbox_lets(long n, const long *a);
/* The same for a call that looks at its arguments as nobody filters them; true without a filter */
bool sandbox_may(long n);
/* Can a connection begin, and go on as outside of a sandbox? */
bool sandbox_may_begin(void);

/* A filter that is about to stand, with the calls that a stream cannot do without */
struct sandbox_filter;

/*
 * Copies the program's filter: 0, or -errno. *@serves: streams can be served behind it; *@whole:
 * by the same calls as before it
 */
int sandbox_prepare(const void *program, struct sandbox_filter **out, bool *serves, bool *whole);
/* It counts from now on: before the kernel has it, for other threads may come under it too */
void sandbox_commit(struct sandbox_filter *f);
/* The kernel did not take it */
void sandbox_revert(struct sandbox_filter *f);
/* One that was not committed */
void sandbox_drop(struct sandbox_filter *f);

#endif
