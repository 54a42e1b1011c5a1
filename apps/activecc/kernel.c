/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which functions of an object can run in the kernel of a server: those of which bpfkernel/ makes
 * code. Linux's verifier is not asked, for it may be that of another host.
 */
#include <stdio.h>
#include <string.h>

#include "active/kernel_helper.h"
#include "apps/activecc/activecc.h"

/* Any numbers would do: the code is not run */
static int library_make(struct bpfkernel_library **out)
{
	static const uint64_t none;
	int ret = bpfkernel_library_create(out);

	for (size_t i = 0; i < sizeof(active_kernel_helpers) / sizeof(active_kernel_helpers[0]);
	     i++)
		if (!ret)
			ret = bpfkernel_library_add(*out, active_kernel_helpers[i].id,
						    active_kernel_helpers[i].what, &none, 1);
	return ret;
}

static void function_print(const struct ebpf_object *obj, const char *name,
			   const struct bpfkernel_library *library)
{
	struct bpfkernel_params params = { .object = obj, .arena = 1ull << 32 };
	struct ebpf_error err;
	struct bpfgen_code *c;

	ebpf_object_entry(obj, name, &params.entry);
	params.helpers = bpfkernel_library_helpers(library, &params.helper_count);
	if (bpfgen_code_create(&c))
		return;
	if (bpfkernel_emit(c, &params, &err))
		printf("%s: not in the kernel: %s\n", name, err.text);
	else
		printf("%s: in the kernel, about %zu instructions\n", name, bpfgen_code_size(c));
	bpfgen_code_destroy(c);
}

enum activecc_status activecc_kernel_print(const struct ebpf_object *obj)
{
	struct bpfkernel_library *library = NULL;
	const char *name;
	int ret = library_make(&library);

	for (size_t i = 0; !ret && (name = ebpf_object_entry_name(obj, i)); i++)
		function_print(obj, name, library);
	bpfkernel_library_destroy(library);
	return ret ? ACTIVECC_FAILED : ACTIVECC_OK;
}
