/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_FILTER_H
#define PRELOAD_FILTER_H

#include <stdbool.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

/*
 * What a seccomp filter answers to a system call, by its program: a value of SECCOMP_RET_, as the
 * kernel would get it. *@looks: it went by an argument of the call, not by its number alone. A
 * program that the kernel would not take answers SECCOMP_RET_KILL_PROCESS.
 */
__u32 filter_run(const struct sock_filter *program, unsigned int n, const struct seccomp_data *call,
		 bool *looks);

/* Is that an answer with which the call is made? */
bool filter_lets(__u32 answer);

#endif
