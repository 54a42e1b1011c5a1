/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The moves that the states of a socket may make (preload/sock/sock_state.h has the drawings).
 *
 * A move is one compare-and-swap, so of several threads that make it one is told that it has. A
 * build with points ends the process at a move that must not be.
 */
#include "preload/sock/sock_state.h"

#define TO(state) (1u << (state))

const struct sock_moves sock_role_moves = {
	SOCK_PLAIN + 1,
	{
		[SOCK_NEW] = TO(SOCK_LISTENER) | TO(SOCK_STREAM_ON) | TO(SOCK_PLAIN),
		[SOCK_STREAM_ON] = TO(SOCK_NEW) | TO(SOCK_PLAIN),
	},
};

const struct sock_moves sock_start_moves = {
	SOCK_START_OPEN + 1,
	{
		[SOCK_START_NEW] = TO(SOCK_START_CONNECTING) | TO(SOCK_START_UNDECIDED) |
				   TO(SOCK_START_SPOKEN) | TO(SOCK_START_OPEN),
		[SOCK_START_CONNECTING] = TO(SOCK_START_OPEN) | TO(SOCK_START_NEW),
		[SOCK_START_UNDECIDED] = TO(SOCK_START_OPEN) | TO(SOCK_START_SPOKEN) |
					 TO(SOCK_START_NEW),
		[SOCK_START_SPOKEN] = TO(SOCK_START_NEW),
		[SOCK_START_OPEN] = TO(SOCK_START_NEW),
	},
};

const struct sock_moves sock_tenure_moves = {
	SOCK_SHARED + 1,
	{
		[SOCK_OF_ONE] = TO(SOCK_NEW_ELSEWHERE) | TO(SOCK_SHARED),
		[SOCK_NEW_ELSEWHERE] = TO(SOCK_OF_ONE) | TO(SOCK_SHARED),
		[SOCK_SHARED] = TO(SOCK_OF_ONE) | TO(SOCK_NEW_ELSEWHERE),
	},
};

const struct sock_moves sock_number_moves = {
	SOCK_NUMBER_NONE + 1,
	{
		[SOCK_NUMBER_PROGRAM] = TO(SOCK_NUMBER_INTERNAL) | TO(SOCK_NUMBER_NONE),
	},
};

static void refuse(const struct sock_moves *moves, uint32_t from)
{
#ifdef BASE_POINTS
	if (moves->next[from])
		__builtin_trap();
#endif
}

static bool is_move(const struct sock_moves *moves, uint32_t from, uint32_t to)
{
	if (from == to)
		return false;
	if (moves->next[from] & TO(to))
		return true;
	refuse(moves, from);
	return false;
}

bool sock_state_move(const struct sock_moves *moves, uint32_t *state, uint32_t to)
{
	uint32_t from = __atomic_load_n(state, __ATOMIC_ACQUIRE);

	while (is_move(moves, from, to))
		if (__atomic_compare_exchange_n(state, &from, to, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			return true;
	return false;
}

bool sock_state_leave(const struct sock_moves *moves, uint32_t *state, uint32_t from, uint32_t to)
{
	return is_move(moves, from, to) &&
	       __atomic_compare_exchange_n(state, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}
