/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Named places for tests: where state is half changed, and the process may be killed; and where
 * the kernel may refuse something. In a build without -Dpoints=true they are nothing.
 *
 *	BASE_POINT(stream_send_booked);
 *	if (BASE_FAILS(map))
 *		return -ENOMEM;
 *
 * WARPSOCK_TEST_POINT=NAME:NTH kills the process when it comes to the point NAME for the NTH
 * time, and says so on standard error; "?" says each point that is reached. A program under test
 * may change the value in its environment where it stands. WARPSOCK_TEST_FAIL=NAME:NTH lets the
 * NTH of such a kind fail, and none after it. WARPSOCK_TEST_NOTES=FILE has a number added to the
 * file wherever one is to be known after the process's death.
 */
#ifndef BASE_POINT_H
#define BASE_POINT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef BASE_POINTS
/* By what stands before them a test finds the names in a library */
#define BASE_POINT(name) base_point_reach("warpsock-point:" #name)
#define BASE_FAILS(name) base_point_fails("warpsock-fails:" #name)
#define BASE_NOTE(number) base_point_note(number)

void base_point_reach(const char *mark);
bool base_point_fails(const char *mark);
void base_point_note(uint64_t number);
/* So many robust locks the calling thread has more */
void base_point_locked(int more);
#else
#define BASE_POINT(name) ((void)0)
#define BASE_FAILS(name) false
#define BASE_NOTE(number) ((void)0)

static inline void base_point_locked(int more)
{
}
#endif

#endif
