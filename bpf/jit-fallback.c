/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where there is no JIT for the processor: objects are interpreted.
 */
#include <errno.h>

#include "bpf/state.h"

int ebpf_jit_create(const struct ebpf_object *obj, struct ebpf_jit **out)
{
	return -ENOTSUP;
}

void ebpf_jit_destroy(struct ebpf_jit *jit)
{
}

size_t ebpf_jit_size(const struct ebpf_jit *jit)
{
	return 0;
}

void ebpf_jit_reset(const struct ebpf_jit *jit, struct ebpf_run *run,
		    const struct ebpf_region *before, size_t count)
{
}

enum ebpf_status ebpf_jit_run(const struct ebpf_jit *jit, struct ebpf_run *run)
{
	return (enum ebpf_status)ebpf_interpret(run, NULL);
}
