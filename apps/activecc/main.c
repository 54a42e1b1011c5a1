/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-activecc: compiles a program for a server of Active RDMA, and has the verifier judge it that
 * the server has. An object is there, under its name, only if it was taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/activecc/activecc.h"

enum { FILE_MAX = 32 << 20 };

static uint8_t *file_read(const char *name, size_t *len)
{
	FILE *f = fopen(name, "re");
	struct stat st;
	uint8_t *bytes = NULL;

	if (!f || fstat(fileno(f), &st)) {
		activecc_complain("%s: %s", name, strerror(errno));
	} else if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX) {
		activecc_complain("%s: no file of up to %d MiB", name, FILE_MAX >> 20);
	} else {
		bytes = malloc((size_t)st.st_size + 1);
		*len = bytes ? fread(bytes, 1, (size_t)st.st_size, f) : 0;
		if (!bytes || *len != (size_t)st.st_size) {
			activecc_complain("%s: %s", name,
					  bytes ? "it became shorter" : "out of memory");
			free(bytes);
			bytes = NULL;
		}
	}
	if (f)
		fclose(f);
	return bytes;
}

/* Loads the file as a server does, and lists it if that is asked for */
static enum activecc_status check(const struct activecc_options *opt, const char *name)
{
	const struct ebpf_helpers helpers = { opt->helpers, opt->helper_count };
	struct ebpf_object *obj = NULL;
	enum activecc_status status = ACTIVECC_OK;
	struct ebpf_error err;
	size_t len = 0;
	uint8_t *elf = file_read(name, &len);
	int ret;

	if (!elf)
		return ACTIVECC_FAILED;
	ret = ebpf_object_load(elf, len, &helpers, EBPF_LOAD_NO_JIT, &obj, &err);
	free(elf);
	if (ret) {
		activecc_complain("%s is refused: %s", opt->input, err.text);
		return ret == -ENOMEM ? ACTIVECC_FAILED : ACTIVECC_REFUSED;
	}
	if (opt->list)
		activecc_listing_print(obj);
	if (opt->kernel)
		status = activecc_kernel_print(obj);
	ebpf_object_destroy(obj);
	return status;
}

/* Gives the object of a source in assembler its source lines, if that can be done */
static enum activecc_status lines_add(const struct activecc_options *opt, const char *scratch)
{
	enum activecc_status status = ACTIVECC_OK;
	size_t len = 0, source_len = 0;
	uint8_t *elf = file_read(scratch, &len), *source = NULL;
	char *wrapper = NULL;

	if (elf)
		source = file_read(opt->input, &source_len);
	if (!source ||
	    asprintf(&wrapper, "%s.%c", scratch, opt->input[strlen(opt->input) - 1]) < 0) {
		wrapper = NULL;
		status = ACTIVECC_FAILED;
	} else if (activecc_assembler_wrap(opt, elf, len, (char *)source, source_len, wrapper)) {
		status = activecc_compile(opt, wrapper, scratch);
	}
	if (wrapper)
		unlink(wrapper);
	free(wrapper);
	free(source);
	free(elf);
	return status;
}

/* The object takes its name when it has been checked; until then it is beside it */
static enum activecc_status make(const struct activecc_options *opt)
{
	enum activecc_status status = ACTIVECC_FAILED;
	mode_t mask = umask(0);
	char *scratch;
	int fd;

	umask(mask);
	if (asprintf(&scratch, "%s.XXXXXX", opt->output) < 0)
		return ACTIVECC_FAILED;
	fd = mkstemp(scratch);
	if (fd < 0) {
		activecc_complain("%s: %s", opt->output, strerror(errno));
		free(scratch);
		return ACTIVECC_FAILED;
	}
	close(fd);
	status = activecc_compile(opt, opt->input, scratch);
	if (status == ACTIVECC_OK && opt->kind == ACTIVECC_ASSEMBLER)
		status = lines_add(opt, scratch);
	if (status == ACTIVECC_OK)
		status = check(opt, scratch);
	if (status == ACTIVECC_OK &&
	    (chmod(scratch, 0666 & ~mask) || rename(scratch, opt->output))) {
		activecc_complain("%s: %s", opt->output, strerror(errno));
		status = ACTIVECC_FAILED;
	}
	if (status != ACTIVECC_OK)
		unlink(scratch);
	free(scratch);
	return status;
}

int main(int argc, char **argv)
{
	struct activecc_options opt;
	int status = activecc_options_read(&opt, argc, argv);

	if (status < 0)
		status = (int)(opt.output ? make(&opt) : check(&opt, opt.input));
	activecc_options_free(&opt);
	if (fflush(stdout) || ferror(stdout)) {
		activecc_complain("standard output: %s", strerror(errno));
		return ACTIVECC_FAILED;
	}
	return status;
}
