/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A library for LD_PRELOAD whose thread-local memory is larger than most stacks: libc takes it from
 * the stack of each thread.
 */
enum { ROOM = 600 * 1024 };

__attribute__((visibility("default"), tls_model("initial-exec"))) __thread char large_tls[ROOM];
