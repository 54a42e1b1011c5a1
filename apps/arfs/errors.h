/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_ERRORS_H
#define APPS_ARFS_ERRORS_H

/* Linux's error numbers; programs are compiled without the headers of a host. */

#ifdef __bpf__
enum {
	EPERM = 1,
	ENOENT = 2,
	EAGAIN = 11,
	EEXIST = 17,
	EXDEV = 18,
	ENOTDIR = 20,
	EISDIR = 21,
	EINVAL = 22,
	EFBIG = 27,
	ENOSPC = 28,
	EMLINK = 31,
	ENAMETOOLONG = 36,
	ENOTEMPTY = 39,
	EOVERFLOW = 75,
	ESTALE = 116,
	EUCLEAN = 117,
};
#else
#include <errno.h>
#endif

#endif
