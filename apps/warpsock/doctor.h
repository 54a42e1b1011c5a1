/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of `warpsock doctor` to each other.
 */
#ifndef APPS_WARPSOCK_DOCTOR_H
#define APPS_WARPSOCK_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#define DOCTOR_TEXT 256
#define DOCTOR_PATH 2048

/* Where the host's files are: "", or for tests a folder with some of their own */
extern const char *doctor_root;

/* A trouble, told below what it is about. How many there were is the exit status. */
__attribute__((format(printf, 1, 2))) void doctor_trouble(const char *fmt, ...);
extern unsigned int doctor_troubles;

/* The first line of a file below the root; false, and empty, when it cannot be read */
bool doctor_line(char out[DOCTOR_TEXT], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void doctor_path(char out[DOCTOR_PATH], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Calls @each for every name of a folder below the root, in order: how many there were */
unsigned int doctor_each(const char *folder, void (*each)(const char *name, void *ctx), void *ctx);

/* doctor_device.c: how many RDMA devices there are */
unsigned int doctor_devices(void);

/* doctor_host.c */
void doctor_limits(unsigned int devices);
void doctor_runtime(void);
void doctor_program(const char *name);

#endif
