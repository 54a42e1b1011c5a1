/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose the tables are: of this process, or of one whose memory it has for a while.
 *
 * A fork that nobody announced, by a bare system call, is found out by a page that
 * the kernel wipes in a child, when the child closes or ends something.
 *
 * vfork(), and clone() with CLONE_VM: the child is a guest in its parent's memory, with
 * descriptors of its own, until it executes a program or exits. The page is not wiped and holds
 * another process's number.
 */
#include "preload/table/fork_gen.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/map.h"

#define PAGE 4096

bool fork_gen_bare;
unsigned int fork_gen;

static struct life {
	long pid;     /* atomic */
	long adopter; /* the thread that sees to it, while pid is ADOPTING */
} * life;	      /* wiped in a child */

static void (*fork_gen_adopt)(void);

bool fork_gen_is_known(void)
{
	return life;
}

void fork_gen_born(void)
{
	life->pid = syscall(SYS_getpid);
}

#define ADOPTING (-1)

/* A child with threads by now: one of them does it, and the others wait for that */
static void adopt_once(void)
{
	long nobody = 0;

	if (__atomic_compare_exchange_n(&life->pid, &nobody, ADOPTING, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		life->adopter = syscall(SYS_gettid);
		fork_gen_adopt();
		__atomic_store_n(&life->pid, syscall(SYS_getpid), __ATOMIC_RELEASE);
	}
	while (__atomic_load_n(&life->pid, __ATOMIC_ACQUIRE) == ADOPTING &&
	       life->adopter != syscall(SYS_gettid))
		sched_yield();
}

bool fork_gen_is_guest(void)
{
	long pid, owner;

	if (!life)
		return false;
	pid = syscall(SYS_getpid);
	owner = __atomic_load_n(&life->pid, __ATOMIC_ACQUIRE);
	if (owner == pid || pid < 0)
		return false; /* nobody may ask: a sandbox, whose processes do not fork */
	if (owner > 0)
		return true;
	adopt_once();
	return false;
}

void fork_gen_init(void (*adopt)(void))
{
	/* Without one that is wiped, a fork that nobody announces goes for a guest */
	static struct life lasting;
	void *page;

	fork_gen_adopt = adopt;
	life = &lasting;
	if (!base_map_create(PAGE, &page)) {
		if (madvise(page, PAGE, MADV_WIPEONFORK))
			base_map_destroy(page, PAGE);
		else
			life = page;
	}
	life->pid = syscall(SYS_getpid);
}
