/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_GATE_H
#define PRELOAD_GATE_H

#include <stdbool.h>
#include <stdint.h>

/* What stands in epoll sets for one of the numbers that the program has it by; never changed */
struct gate_number {
	struct gate_number *next;
	int fd, stands;
};

/* A socket that a device listens for. Under the lock of device/listen.c, unless it is atomic */
struct gate {
	struct rnic_native_listener *listener; /* atomic; NULL: it does not, or no more */
	int fd;				       /* atomic: what stands for both; -1: the socket */
	struct gate_number *numbers;	       /* atomic: those that have been in a set */
	uint32_t pinned;		       /* atomic: sets that took it in, threads that wait */
	bool served;			       /* atomic: one of the device's was accepted */
	bool beside;			       /* the kernel listens, too */
	bool kernel_next;		       /* whose turn it is */
	bool given;			       /* by who may have it yet, and a device */
};

#endif
