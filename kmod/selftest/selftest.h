/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef KMOD_SELFTEST_SELFTEST_H
#define KMOD_SELFTEST_SELFTEST_H

/* 0, or -EINVAL: the compiled codec does not make the octets that it must; the log says which */
int kmod_selftest_run(void);

#endif
