/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that takes the address of a function, which the loader refuses.
 */
static unsigned long one(void)
{
	return 1;
}

unsigned long (*volatile pointer)(void) = one;

unsigned long address(void)
{
	return pointer != 0;
}
