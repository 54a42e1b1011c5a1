/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_KNOWN_H
#define APPS_ARFS_KNOWN_H

/* How files were when they were opened last, for a mount that keeps what it has read. */

#include <pthread.h>
#include <stdbool.h>

#include "ask.h"

enum { KNOWN_FILES = 4096 };

struct known {
	pthread_mutex_t lock;
	struct known_file {
		uint64_t node, ctime, size;
	} files[KNOWN_FILES]; /* by node; one that comes displaces another */
};

int known_init(struct known *k);
/* Whether the file is as it was when this was asked last. It is noted as it is now */
bool known_same(struct known *k, const struct arfs_attr *now);

#endif
