/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A folder of its own for the states of a test's streams.
 */
#ifndef TESTS_UNIT_STREAM_FOLDER_H
#define TESTS_UNIT_STREAM_FOLDER_H

#include <sys/stat.h>

#include "stream/place.h"
#include "tests/unit/stream/ends.h"

/* For the suite: makes the folder, in which ends_attach() puts states; removes it */
void place_begin(void);
void place_end(void);
extern char place_dir[];
/* From now on it is a tmpfs of its own; false: it cannot be. To be unmounted */
bool place_small(const char *options);
/* All of that, or so many bytes, by a file of somebody's */
void place_fill(size_t len);
/* How many files are there, but for the page that all processes share */
unsigned int place_files(void);
/* The path of the file with the state of @s, and what it is */
const char *place_slab_path(const struct stream *s);
struct stat place_file_of(const struct stream *s);
/* For stream_names_drop(): all of them go */
bool place_none_stays(struct stream_place place, const void *ctx);
/* Some octets each way */
#define PLACE_SOME 1000
void place_both_ways(struct stream *s[2]);
/* The path of the name that the state over @fd has, if others were told of it */
const char *place_path(int fd);
/* The stream over @fd that is there; NULL with *@err */
struct stream *place_adopt(int fd, int *err);
/* The same by its name alone */
struct stream *place_adopt_named(int fd, int *err);

void place_fd_send(int channel, int fd);
int place_fd_recv(int channel);

/* All of @len octets, as ends_octet() has them from @from on */
void place_send(struct stream *s, uint64_t from, size_t len);
void place_recv(struct stream *s, uint64_t from, size_t len);
/* What comes behind that: 0, or -errno */
ssize_t place_end_of(struct stream *s);
/* Waits for a child: its exit status, or -signal */
int place_wait(pid_t pid);
/*
 * A child is killed with both ends of @n connections, which others were told of, and @len unread
 * bytes each way: three names each
 */
void place_leave_behind(int n, size_t len);

#endif
