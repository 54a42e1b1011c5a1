/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_ERROR_H
#define AM_ERROR_H

extern int am_init_count; /* of AM_Init calls not yet ended; 0: nothing may be called */

/* errors are told once, on stderr, when AMUDP_VerboseErrors is set */
int am_error(int code, const char *function, const char *what);
/* Of a returned message, as programs know them. */
const char *am_status_name(int status);
const char *am_opcode_name(int opcode);
#define am_return_error(code, what) return am_error((code), __func__, (what))

#endif
