/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program whose reads go where its argument says: line numbers in results are those of this
 * file.
 */
unsigned long wild(const unsigned long *at)
{
	unsigned long v = 1;

	v += at[2]; /* line 10 */
	return v;
}
