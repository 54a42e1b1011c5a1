/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The moves of a socket's states: each pair of states, against what the drawings of
 * preload/sock/sock_state.h say.
 */
#include "preload/sock/sock_state.h"

#include <criterion/criterion.h>

#include "base/bits.h"

/* By the rows: from; 'm' moves, '=' is there already, '.' no move leads there */
static void each(const struct sock_moves *moves, const char *const *rows, unsigned int n)
{
	cr_assert_eq(moves->states, n);
	for (uint32_t from = 0; from < n; from++) {
		for (uint32_t to = 0; to < n; to++) {
			uint32_t state = from;
			bool moved = sock_state_move(moves, &state, to);

			cr_expect_eq(moved, rows[from][to] == 'm', "from %u to %u", from, to);
			cr_expect_eq(state, moved ? to : from, "from %u to %u", from, to);
			cr_expect_eq(rows[from][to] == '=', from == to);
		}
	}
}

Test(sock_state, role)
{
	static const char *const rows[] = {
		[SOCK_NEW] = "=mmm",
		[SOCK_LISTENER] = ".=..",
		[SOCK_STREAM_ON] = "m.=m",
		[SOCK_PLAIN] = "...=",
	};

	each(&sock_role_moves, rows, base_array_size(rows));
}

Test(sock_state, start)
{
	static const char *const rows[] = {
		[SOCK_START_NEW] = "=mmmm",	  [SOCK_START_CONNECTING] = "m=..m",
		[SOCK_START_UNDECIDED] = "m.=mm", [SOCK_START_SPOKEN] = "m..=.",
		[SOCK_START_OPEN] = "m...=",
	};

	each(&sock_start_moves, rows, base_array_size(rows));
}

Test(sock_state, tenure)
{
	static const char *const rows[] = {
		[SOCK_OF_ONE] = "=mm",
		[SOCK_NEW_ELSEWHERE] = "m=m",
		[SOCK_SHARED] = "mm=",
	};

	each(&sock_tenure_moves, rows, base_array_size(rows));
}

Test(sock_state, number)
{
	static const char *const rows[] = {
		[SOCK_NUMBER_PROGRAM] = "=mm",
		[SOCK_NUMBER_INTERNAL] = ".=.",
		[SOCK_NUMBER_NONE] = "..=",
	};

	each(&sock_number_moves, rows, base_array_size(rows));
}
