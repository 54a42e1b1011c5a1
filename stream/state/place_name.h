/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names in the folder of the states, and its own path.
 */
#ifndef STREAM_STATE_PLACE_NAME_H
#define STREAM_STATE_PLACE_NAME_H

#include "stream/place.h"

#define STREAM_NAME "%016llx"
#define STREAM_NAME_LEN 16
#define STREAM_SLAB_NAME "s" STREAM_NAME
#define STREAM_SLAB_NAME_LEN (1 + STREAM_NAME_LEN)

/* The folder: its length, or -ENAMETOOLONG */
int stream_place_folder(char path[BASE_RUNFILE_PATH], struct stream_place place);
/* What was found of its room is not to be believed any more */
void stream_place_look_again(void);

#endif
