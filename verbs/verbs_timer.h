/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef VERBS_VERBS_TIMER_H
#define VERBS_VERBS_TIMER_H

#include <stdint.h>

/*
 * A timer in the epoll set @set, -1 while there is none; the set tells it by the address @timer. It
 * is made when it is first set, and goes off once, after @ns, with 0 never: 0, -errno
 */
int verbs_timer_set(int *timer, int set, uint64_t ns);
/* If there is one */
void verbs_timer_end(int *timer, int set);

#endif
