/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What holds a door at its interface is a descriptor, so it goes with the process; but a child of
 * fork() that does not call exec() has it, too, and would keep the door there when the server is
 * gone. So the child closes it.
 */
#include "active/kernel_link.h"

#include <pthread.h>
#include <unistd.h>

#include "base/bits.h"
#include "bpfkernel/system.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct base_list links = BASE_LIST_INIT(links); /* under the lock */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int watched; /* set once: 0, or a negative errno */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	struct base_list *node;

	while ((node = base_list_pop_front(&links))) {
		struct active_kernel_link *link =
			base_list_entry(node, struct active_kernel_link, list);

		close(link->fd);
		link->fd = -1;
	}
	pthread_mutex_unlock(&lock);
}

static void watch(void)
{
	watched = -pthread_atfork(before_fork, in_parent, in_child);
}

int active_kernel_link_open(struct active_kernel_link *link, int program, unsigned int interface,
			    bool native)
{
	int ret;

	pthread_once(&once, watch);
	if (watched)
		return watched;
	pthread_mutex_lock(&lock);
	ret = bpfkernel_attach(program, interface, native);
	link->fd = base_max(ret, -1);
	if (ret >= 0)
		base_list_push_back(&links, &link->list);
	pthread_mutex_unlock(&lock);
	return base_min(ret, 0);
}

void active_kernel_link_close(struct active_kernel_link *link)
{
	pthread_mutex_lock(&lock);
	if (link->fd >= 0) {
		base_list_remove(&link->list);
		close(link->fd);
	}
	link->fd = -1;
	pthread_mutex_unlock(&lock);
}
