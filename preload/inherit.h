/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_INHERIT_H
#define PRELOAD_INHERIT_H

/* When the process starts: sockets that it was given, and that have no connection yet, are known */
void inherit_sockets(void);

#endif
