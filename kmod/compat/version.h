/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What differs between Linux 6.1 and 6.12 */
#ifndef KMOD_COMPAT_VERSION_H
#define KMOD_COMPAT_VERSION_H

#include <linux/version.h>
#include <net/sock.h>

/* sendfile() comes by sendmsg(); since 6.5 it comes in no other way */
static inline void compat_no_sendpage(struct proto *p)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	p->sendpage = NULL;
#endif
}

/* What accept() of struct proto_ops gets besides the two sockets; since 6.10 in a struct */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define COMPAT_ACCEPT_ARGS int flags, bool kern
#define COMPAT_ACCEPT_PASS flags, kern
#else
#define COMPAT_ACCEPT_ARGS struct proto_accept_arg *arg
#define COMPAT_ACCEPT_PASS arg
#endif

#endif
