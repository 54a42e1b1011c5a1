/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_FILES_H
#define PRELOAD_FILES_H

#include <stdbool.h>
#include <stdio.h>

/*
 * FILEs over descriptors of ours. libc's stdio does not pass through our names, so such a FILE
 * has functions of its own for reading, writing and closing; fileno() answers the descriptor.
 */

/* 0, or -errno */
int files_open(int fd, const char *mode, FILE **out);
/* It is going to be another file's */
void files_forget(FILE *file);
/* What programs have written and not flushed, before the process ends */
void files_flush(void);
void files_init(void);
/* Around fork() */
void files_before_fork(void);
void files_after_fork(bool child);
/* Around libc's, before and after all else; libc itself sees to the child */
void files_list_lock(void);
void files_list_unlock(void);

/*
 * While a descriptor of 0, 1, 2 is ours, stdin, stdout or stderr is such a FILE, and the
 * functions that wrap.list names take it in place of libc's, of which programs and C++ keep
 * pointers
 */
extern unsigned int files_standing_in; /* atomic: a bit for each descriptor */
FILE *files_stand_in(FILE *file);

static inline FILE *files_of(FILE *file)
{
	if (__builtin_expect(!__atomic_load_n(&files_standing_in, __ATOMIC_RELAXED), 1))
		return file;
	return files_stand_in(file);
}

#endif
