/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_LIST_NODE_H
#define APPS_EXAMPLES_LIST_NODE_H

/*
 * What warp-list's server, client and programs have in common. Pointers are numbers: addresses at
 * the server. All in the byte order of the hosts, which must be the same.
 */

struct list_node {
	unsigned long value;
	unsigned long next; /* 0 in the last */
};

/* Arguments of the programs */
struct list_walk {
	unsigned long first; /* the first node */
	unsigned long hops;
	unsigned long value;
};

#endif
