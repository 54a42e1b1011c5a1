/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_DESTRUCTOR_LIBRARY_H
#define TESTS_DESTRUCTOR_LIBRARY_H

#define LAST_WORDS "good-bye"

/* The library reads from @connection, and says LAST_WORDS there when the process ends */
void library_use(int connection);

#endif
