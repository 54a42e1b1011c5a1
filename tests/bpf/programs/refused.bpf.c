/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that the verifier refuses: a write to constants.
 */
static const volatile unsigned long constant = 5;

unsigned long refused(void)
{
	*(volatile unsigned long *)&constant = 6; /* line 9 */
	return constant;
}
