/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Log lines: "warpsock[pid] level: message", one write each, which never waits: a line for which
 * a pipe, a socket or a terminal has no room is lost, and the next one that finds room comes behind
 * the number of those that were lost. The same holds for warnings and errors of one place in the
 * code beyond BASE_LOG_BURST a second: a peer must not be able to fill a disk.
 *
 * Standard error is what it was when the program began. When the program has put another file at
 * descriptor 2, as a daemon does, or data of its own, nothing is written there.
 *
 * WARPSOCK_LOG is err, warn (the default), info, debug or off; WARPSOCK_LOG_FILE is the
 * absolute path of a file to append to instead of standard error. May be called from a signal
 * handler and where errno must stay as it was, except that %f, %g, %a, %ls and positional
 * arguments are not for handlers: vsnprintf takes memory for them. A line that is off costs one
 * load and one compare.
 */
enum base_log_level {
	BASE_LOG_OFF = -1,
	BASE_LOG_ERR,
	BASE_LOG_WARN,
	BASE_LOG_INFO,
	BASE_LOG_DEBUG,
};

/* Lines of one place in one second */
#define BASE_LOG_BURST 8

/* The longest line with its newline; the rest of a longer one is cut and marked "...". */
#define BASE_LOG_LINE_MAX 512

extern int base_log_level;
/* What was written of one place in the code; all atomic */
struct base_log_site {
	uint64_t since; /* when this second began */
	unsigned int written, left_out;
};

/* Atomic: where lines go without a file; -1: nowhere, for standard error is no place for them */
extern int base_log_fd;

/*
 * Reads the environment. Runs as a constructor; a later call reads it again, and must be alone:
 * no thread may log meanwhile.
 */
void base_log_init(void);

static inline bool base_log_on(enum base_log_level level)
{
	return (int)level <= __atomic_load_n(&base_log_level, __ATOMIC_RELAXED);
}

/* @site: NULL, no line of it is left out */
void base_log_write(struct base_log_site *site, enum base_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Arguments are evaluated only when the level is on. */
#define base_log(level, ...)                                                                \
	do {                                                                                \
		static struct base_log_site log_site_;                                      \
		if (__builtin_expect(base_log_on(level), 0))                                \
			base_log_write((level) <= BASE_LOG_WARN ? &log_site_ : NULL, level, \
				       __VA_ARGS__);                                        \
	} while (0)

/* Each line, as many as there are: not for what a peer can bring about */
#define base_log_each(level, ...)                                 \
	do {                                                      \
		if (__builtin_expect(base_log_on(level), 0))      \
			base_log_write(NULL, level, __VA_ARGS__); \
	} while (0)

#define base_err(...) base_log(BASE_LOG_ERR, __VA_ARGS__)
#define base_warn(...) base_log(BASE_LOG_WARN, __VA_ARGS__)
#define base_info(...) base_log(BASE_LOG_INFO, __VA_ARGS__)
#define base_debug(...) base_log(BASE_LOG_DEBUG, __VA_ARGS__)

#endif
