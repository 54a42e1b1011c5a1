/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_DESTRUCTOR_LIBRARY_H
#define TESTS_DESTRUCTOR_LIBRARY_H

#define LAST_WORDS "good-bye"

/* The library reads from @connection, and says LAST_WORDS there when the process ends */
void library_use(int connection);

/*
 * The library reads from @connection and writes to it, in threads that it joins behind all
 * destructors
 */
void library_use_late(int connection);

#endif
