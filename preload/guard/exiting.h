/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_EXITING_H
#define PRELOAD_EXITING_H

#include <stdbool.h>

/* The process ends, or its program does: one thread sees to it, and others stay where they are */
extern bool exiting_begun; /* atomic */

/* Once: it is the caller's to see to. False: it was done */
bool exiting_claim(void);
/* All has been delivered, and the process may still be there for a while */
void exiting_done(void);
/* Stays here while another thread ends the process, until a while after that. Did it stay? */
bool exiting_halt(void);
/* and as long as the process is there */
void exiting_halt_for_good(void);
/* It does not, after all; false: nobody was about to end it */
bool exiting_revoke(void);
/* In a child, which lives on whatever its parent was about */
void exiting_after_fork(void);

#endif
