/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_ASK_KNOWN_H
#define PRELOAD_ASK_KNOWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/clock.h"

/*
 * What came of questions beside a connection, in this process and those that it has forked. YES and
 * NO are of an address and port, SILENT and FAR of a host. No lock, no memory; safe after fork().
 * It may forget.
 */
enum ask_known {
	ASK_KNOWN_NOTHING,
	ASK_KNOWN_ASKED, /* a question is out */
	ASK_KNOWN_YES,
	ASK_KNOWN_NO,
	ASK_KNOWN_SILENT, /* the host has not answered a short while ago */
	ASK_KNOWN_FAR,	  /* it is none that is asked */
};

/* A question is out for so long; a yes and a host that is far are kept so long */
#define ASK_KNOWN_OUT (2 * BASE_NS_PER_S)
#define ASK_KNOWN_LIFE (60 * BASE_NS_PER_S)
/* A silent host is left alone at first, and at most */
#define ASK_SILENT_MIN_S 10u
#define ASK_SILENT_MAX_S 300u

void ask_known_init(void);
enum ask_known ask_known(const struct sockaddr *peer, socklen_t len, uint64_t now);
/* True, to one of those that come at once: nothing is known, and it is to ask */
bool ask_known_claim(const struct sockaddr *peer, socklen_t len, uint64_t now);
/* A no is kept for @life; a host that answers is not silent */
void ask_known_answer(const struct sockaddr *peer, socklen_t len, bool yes, uint64_t life,
		      uint64_t now);
/* For 10 s, and each time that it is found so again twice as long, up to 5 min */
void ask_known_silent(const struct sockaddr *peer, socklen_t len, uint64_t now);
void ask_known_far(const struct sockaddr *peer, socklen_t len, uint64_t now);

#endif
