/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_LOADABLE_H
#define PRELOAD_LOADABLE_H

#include "config/loadable.h"

/* What a program that is executed now would do with LD_PRELOAD */
enum loadable {
	LOADABLE_YES,
	LOADABLE_NO,	  /* it runs, without the interposer */
	LOADABLE_BREAKS,  /* the same, and LD_PRELOAD must not name the interposer */
	LOADABLE_NOTHING, /* there is none: the kernel says why */
};

/*
 * As execveat() has its arguments; no memory is taken but the stack's. What goes on without the
 * interposer where a rule is for it is told the user
 */
enum loadable loadable_at(int dir, const char *path, int flags);
/* As execvp() finds @file; what is no program that the kernel knows, the shell runs */
enum loadable loadable_find(const char *file);

#endif
