/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_OPTION_H
#define PRELOAD_OPTION_H

#include <stdbool.h>

#include "config/config.h"

/* The user's options */
extern struct config sock_config;

/*
 * TCP's options that the program believes to be as it has set them, while the socket has them as
 * frames need them
 */
struct option_values {
	bool nodelay, cork;
	bool fast_open; /* TCP_FASTOPEN_CONNECT */
	/* SO_RCVTIMEO, SO_SNDTIMEO were set to less than nothing: the kernel does not tell */
	bool never_in, never_out;
};

/* The descriptor of a socket is to carry frames: before connect(), and when it is connected */
void option_prepare(int fd, const struct option_values *values);
/* It is plain TCP after all */
void option_restore(int fd, const struct option_values *values);

#endif
