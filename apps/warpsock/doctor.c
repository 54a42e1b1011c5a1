/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `warpsock doctor`: who can do RDMA here, and why something cannot.
 *
 * It looks as the user who calls it, and changes nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <warp/rdma.h>

#include "apps/warpsock/doctor.h"
#include "apps/warpsock/launcher.h"

#define TROUBLE 1
/* Less is used up by the ring and the receives of a few connections */
#define MEMLOCK_LEAST (8ul << 20)

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

/* By /proc, which a made-up host has, too: false when it cannot be read; ULONG_MAX: no limit */
static bool memlock_read(unsigned long *out)
{
	char path[DOCTOR_PATH], line[DOCTOR_TEXT];
	bool found = false;
	FILE *f;

	doctor_path(path, "/proc/self/limits");
	f = fopen(path, "re");
	if (!f)
		return false;
	*out = ULONG_MAX;
	while (!found && fgets(line, sizeof(line), f)) {
		found = !strncmp(line, "Max locked memory", 17);
		if (found)
			sscanf(line + 17, "%lu", out);
	}
	fclose(f);
	return found;
}

static void memlock_put(unsigned int devices)
{
	unsigned long limit;

	if (!memlock_read(&limit))
		return;
	if (limit == ULONG_MAX)
		puts("  memory that may be locked: no limit");
	else
		printf("  memory that may be locked: %lu KiB\n", limit >> 10);
	if (devices && limit < MEMLOCK_LEAST)
		doctor_trouble("registered memory counts against it: ulimit -l, or LimitMEMLOCK= "
			       "of the service");
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

static const char *dir_wrong(const char *path)
{
	struct statfs fs;
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? NULL : strerror(errno);
	if (!S_ISDIR(st.st_mode))
		return "it is no folder";
	if (st.st_uid != geteuid())
		return "it is another user's";
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return "others may use it: its mode must be 0700";
	if (statfs(path, &fs))
		return strerror(errno);
	if (fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC)
		return "it is on no tmpfs";
	return NULL;
}

static void count(const char *name, void *ctx)
{
	++*(unsigned int *)ctx;
}

/* Where streams are kept that several processes share; the first one makes it */
static void runtime_put(void)
{
	static struct config_settings settings;
	char path[DOCTOR_PATH], below[DOCTOR_PATH];
	unsigned int streams = 0;
	const char *wrong, *dir;

	settings_load(&settings, NULL);
	dir = config_text(&settings, CONFIG_RUNTIME_DIR);
	if (strcmp(dir, "auto"))
		snprintf(below, sizeof(below), "%s", dir);
	else
		snprintf(below, sizeof(below), "/dev/shm/warpsock-%u", (unsigned int)geteuid());
	doctor_path(path, "%s", below);
	wrong = dir_wrong(path);
	doctor_each(below, count, &streams);
	printf("  runtime folder: %s, %s", path, access(path, F_OK) ? "not made yet" : "there");
	if (streams)
		printf(", connections: %u", streams);
	putchar('\n');
	if (wrong)
		doctor_trouble("%s; connections end with the process that made them", wrong);
}

int doctor_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "root", required_argument, NULL, 'r' },
		{ .name = NULL },
	};
	unsigned int devices;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) == 'r')
		doctor_root = optarg;
	if (c != -1 || optind != argc) {
		fputs(launcher_usage, stderr);
		return LAUNCHER_FAILED;
	}
	providers_put();
	puts("RDMA devices");
	devices = doctor_devices();
	if (!devices)
		puts("  none: the software provider does not need any");
	puts("host");
	manager_put(devices);
	memlock_put(devices);
	runtime_put();
	return doctor_troubles ? TROUBLE : 0;
}
