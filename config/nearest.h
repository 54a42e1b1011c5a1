/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CONFIG_NEAREST_H
#define CONFIG_NEAREST_H

#include <stddef.h>

/*
 * The name that a user probably meant by a word that is none. @at gives the names one by one, NULL
 * behind the last; an empty name is passed over. NULL: none is near, which is at most a third of
 * the word's letters, 3 at most, inserted, removed or replaced.
 */
typedef const char *(*config_names_fn)(unsigned int i);
const char *config_nearest(const char *word, size_t len, config_names_fn at);

#endif
