/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The module as a whole: what happens when it is loaded and unloaded.
 */
#include <linux/module.h>
#include <net/tcp.h>

#include "kmod/selftest/selftest.h"
#include "kmod/ulp.h"

static bool selftest;
module_param(selftest, bool, 0444);
MODULE_PARM_DESC(selftest, "hold the codec against its vectors when the module is loaded");

static int __init kmod_init(void)
{
	int rc = selftest ? kmod_selftest_run() : 0;

	return rc ? rc : kmod_ulp_init();
}

static void __exit kmod_exit(void)
{
	kmod_ulp_exit();
}

module_init(kmod_init);
module_exit(kmod_exit);

MODULE_DESCRIPTION("DDP (RFC 5041) on TCP sockets");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1.0");
MODULE_ALIAS_TCP_ULP("ddp");
