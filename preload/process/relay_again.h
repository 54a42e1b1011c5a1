/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A relay goes on as a small program, without its maker's memory. */
#ifndef PRELOAD_RELAY_AGAIN_H
#define PRELOAD_RELAY_AGAIN_H

#include <stddef.h>

#include "preload/process/relay.h"

/* Room that it needs for so many lines, in which structs may stand behind each other */
size_t relay_again_room(unsigned int n);
/*
 * By the relay, before it touches a stream. It comes back where the program cannot be executed, or
 * could not find the state of one of these streams.
 */
void relay_again(void *room, const struct relay_line *lines, struct sock *const *socks,
		 unsigned int n);

#endif
