/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `warpsock doctor`: what can do RDMA here, and why something cannot.
 *
 * It looks as the user who calls it, and changes nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <warp/rdma.h>

#include "apps/warpsock/command.h"
#include "apps/warpsock/doctor.h"
#include "apps/warpsock/launcher.h"

#define TROUBLE 1

const char *doctor_root = "";
unsigned int doctor_troubles;

/* --- what its parts have in common --- */

void doctor_trouble(const char *fmt, ...)
{
	va_list args;

	doctor_troubles++;
	fputs("    ! ", stdout);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

static void path_put(char out[DOCTOR_PATH], const char *fmt, va_list args)
{
	int n = snprintf(out, DOCTOR_PATH, "%s", doctor_root);

	if (n >= 0 && n < DOCTOR_PATH)
		vsnprintf(out + n, (size_t)(DOCTOR_PATH - n), fmt, args);
}

void doctor_path(char out[DOCTOR_PATH], const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	path_put(out, fmt, args);
	va_end(args);
}

bool doctor_line(char out[DOCTOR_TEXT], const char *fmt, ...)
{
	char path[DOCTOR_PATH];
	va_list args;
	FILE *f;
	bool got;

	va_start(args, fmt);
	path_put(path, fmt, args);
	va_end(args);
	out[0] = '\0';
	f = fopen(path, "re");
	if (!f)
		return false;
	got = fgets(out, DOCTOR_TEXT, f);
	fclose(f);
	out[strcspn(out, "\n")] = '\0';
	return got && out[0];
}

static int visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

unsigned int doctor_each(const char *folder, void (*each)(const char *name, void *ctx), void *ctx)
{
	char path[DOCTOR_PATH];
	struct dirent **names;
	int n;

	doctor_path(path, "%s", folder);
	n = scandir(path, &names, visible, versionsort);
	for (int i = 0; i < n; i++) {
		each(names[i]->d_name, ctx);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return n > 0 ? (unsigned int)n : 0;
}

/* --- providers --- */

static void providers_put(void)
{
	const char *name;
	bool verbs = false;

	puts("providers");
	for (unsigned int i = 0; (name = warp_provider_name(i)); i++) {
		verbs |= !strcmp(name, "verbs");
		printf("  %-10s %s%s\n", name,
		       strcmp(name, "verbs") ? "any network interface" : "RDMA devices, see below",
		       i ? "" : "; the default");
	}
	if (!verbs)
		puts("  verbs      not in this build: libibverbs-dev or librdmacm-dev was missing");
}

/* --- the host --- */

static bool is_there(const char *path, int mode)
{
	char at[DOCTOR_PATH];

	doctor_path(at, "%s", path);
	return !access(at, mode);
}

/* Only devices need it: without any it is no trouble */
static void manager_put(unsigned int devices)
{
	const char *node = "/dev/infiniband/rdma_cm";

	if (!devices)
		return;
	if (!is_there("/sys/class/misc/rdma_cm", F_OK)) {
		puts("  connection manager: none");
		doctor_trouble("the kernel's module rdma_ucm is not loaded: modprobe rdma_ucm");
	} else if (!is_there(node, F_OK)) {
		puts("  connection manager: no device file");
		doctor_trouble("%s is missing: udev makes it, a container must be given it", node);
	} else if (!is_there(node, R_OK | W_OK)) {
		puts("  connection manager: not for this user");
		doctor_trouble("%s cannot be opened: %s", node, strerror(errno));
	} else {
		printf("  connection manager: %s\n", node);
	}
}

int doctor_main(int argc, char **argv)
{
	unsigned int devices;

	while (command_next("doctor", argc, argv) != -1)
		doctor_root = optarg;
	if (argc > optind + 1)
		return command_wrong("doctor", "one program, not %d", argc - optind);
	providers_put();
	puts("RDMA devices");
	devices = doctor_devices();
	if (!devices)
		puts("  none: the software provider does not need any");
	puts("host");
	manager_put(devices);
	doctor_limits(devices);
	doctor_runtime();
	if (argc > optind)
		doctor_program(argv[optind]);
	return doctor_troubles ? TROUBLE : 0;
}
