/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the socket programs of the benchmarks share. A call that fails ends the program with a
 * message: half a measurement is none.
 */
#ifndef BENCH_TOOLS_TOOL_H
#define BENCH_TOOLS_TOOL_H

#include <stddef.h>
#include <stdint.h>

#define TOOL_NS 1000000000ull

__attribute__((noreturn, format(printf, 1, 2))) void tool_die(const char *format, ...);

/* Monotonic time, and the processor time of all threads of this process, in nanoseconds */
uint64_t tool_now(void);
uint64_t tool_cpu(void);

/* Sleeps until that moment of tool_now() */
void tool_sleep_until(uint64_t when);

double tool_number(const char *text, double min, double max);
void *tool_alloc(size_t size);

/* IPv4 addresses in dots; @flags are those of socket(), SOCK_NONBLOCK for one */
int tool_listen(const char *host, const char *port);
int tool_socket(int flags);
int tool_connect(const char *host, const char *port);
struct sockaddr_in tool_address(const char *host, const char *port);

void tool_write(int fd, const void *buf, size_t size);
/* Returns 0 when the peer ended before the first byte, else 1 */
int tool_read(int fd, void *buf, size_t size);

/* Sorts in place and prints quantiles as members of a JSON object, in microseconds; @n is
 * at least 1 */
void tool_quantiles(const char *name, uint32_t *ns, size_t n);

#endif
