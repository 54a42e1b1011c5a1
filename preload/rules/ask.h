/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_ASK_H
#define PRELOAD_ASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "config/rule.h"
#include "preload/rules/ask_known.h"

/*
 * The question beside a connection: is there a listener for DDP at the peer's address and port? No
 * lock, no memory, no sleep. Answers are taken in when anybody looks.
 */

/* How long an answer may come behind the end of TCP's handshake: so long, or a round trip */
#define ASK_WAIT (2 * BASE_NS_PER_MS)
/* The same over a device, where there is no handshake that could be measured */
#define ASK_WAIT_DEVICE (20 * BASE_NS_PER_MS)
/* Who waits looks so often, at least, or each eighth of the time that it has waited */
#define ASK_LOOK (100 * BASE_NS_PER_US)
/* A peer of which a yes was wrong is left alone for so long */
#define ASK_WRONG_LIFE (600 * BASE_NS_PER_S)

/* When the process starts: the port of UDP, 0: nobody is asked; and how long a no is kept */
void ask_init(uint16_t port, uint64_t life);
/* What is made now will not have to be made while a connect() waits; for programs with clients */
void ask_prepare(void);
/*
 * For who is about to connect: what is known, or ASK_KNOWN_ASKED, where a question has just gone
 * out, or that of another one is under way. ASK_KNOWN_FAR: nobody is asked there.
 */
enum ask_known ask_begin(const struct sockaddr *peer, socklen_t len, enum config_rule_ask how);
/* The question goes again */
void ask_repeat(const struct sockaddr *peer, socklen_t len);
/* What has come by now */
enum ask_known ask_look(const struct sockaddr *peer, socklen_t len);
/* Nothing has come in time */
void ask_expire(const struct sockaddr *peer, socklen_t len);

#endif
