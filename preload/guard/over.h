/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_OVER_H
#define PRELOAD_OVER_H

#include <stdbool.h>

/* The process ends, or its program does: one thread sees to it, and others stay where they are */
extern bool over_begun; /* atomic */

/* Once: it is the caller's to see to. False: it was done */
bool over_claim(void);
/* All has been delivered, and the process may still be there for a while */
void over_done(void);
/* Stays here while another thread ends the process, until a while after that. Did it stay? */
bool over_halt(void);
/* and as long as the process is there */
void over_halt_for_good(void);
/* It does not, after all; false: nobody was about to end it */
bool over_revoke(void);
/* In a child, which lives on whatever its parent was about */
void over_after_fork(void);

#endif
