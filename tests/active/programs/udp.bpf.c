/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program for the protocol of 2010: its arguments are 32-bit words, of which the first says what
 * to do.
 */
#include <warp/active_bpf.h>

enum { SUM, ARRAY, STORE, SPIN, WILD };

unsigned long helper_first(void)
{
	return 99; /* the function execute is taken before the first one */
}

unsigned long execute(const unsigned int *args, unsigned long len)
{
	unsigned int v = 0, *memory = warp_region(0);

	switch (len ? args[0] : SUM) {
	case SUM:
		for (unsigned long i = 1; i < len / 4; i++)
			v += args[i];
		return v;
	case ARRAY:
		warp_output(args + 1, len - 4);
		return 0;
	case STORE:
		memory[args[1] / 4] = args[2];
		return memory[args[1] / 4];
	case SPIN:
		for (;;)
			__sync_fetch_and_add(&memory[100], 1);
	default:
		return *(volatile unsigned int *)(unsigned long)args[1];
	}
}
