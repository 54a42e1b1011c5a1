/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that calls what nobody defines.
 */
extern unsigned long nobody(void);

unsigned long undefined(void)
{
	return nobody();
}
