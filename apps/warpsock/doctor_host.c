/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The host's limits, the folder of connections, and whether a program can be interposed.
 *
 * A connection that is open has its state mapped by the processes that have it. So a file of the
 * folder that no process has mapped is what a killed process left; the next one that makes a
 * connection removes it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "apps/warpsock/doctor.h"
#include "apps/warpsock/launcher.h"
#include "config/loadable.h"

/* Less is used up by the ring and the receives of a few connections */
#define MEMLOCK_LEAST (8ul << 20)
/* Connections, and what a program has besides */
#define FILES_LEAST 1024ul
/* The file of a connection beside its ring, in whole */
#define STATE_SIZE (292ul << 10)
/* With a ring as it is by default, and some more */
#define FILE_LEAST (1ul << 20)

/* --- limits --- */

/* By /proc, which a made-up host has, too: false when it cannot be read; ULONG_MAX: no limit */
static bool limit_read(const char *name, unsigned long *out)
{
	char path[DOCTOR_PATH], line[DOCTOR_TEXT];
	bool found = false;
	FILE *f;

	doctor_path(path, "/proc/self/limits");
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		found = !strncmp(line, name, strlen(name));
	fclose(f);
	*out = ULONG_MAX;
	if (found)
		sscanf(line + strlen(name), "%lu", out);
	return found;
}

static void limit_put(const char *what, unsigned long limit, unsigned long unit, const char *name)
{
	if (limit == ULONG_MAX)
		printf("  %s: no limit\n", what);
	else
		printf("  %s: %lu%s\n", what, limit / unit, name);
}

void doctor_limits(unsigned int devices)
{
	unsigned long limit;

	if (limit_read("Max locked memory", &limit)) {
		limit_put("memory that may be locked", limit, 1024, " KiB");
		if (devices && limit < MEMLOCK_LEAST)
			doctor_trouble("registered memory counts against it: ulimit -l, or "
				       "LimitMEMLOCK= of the service");
	}
	if (limit_read("Max open files", &limit)) {
		limit_put("open files", limit, 1, "");
		if (limit < FILES_LEAST)
			doctor_trouble("each connection is one, as with TCP: ulimit -n, or "
				       "LimitNOFILE= of the service");
	}
	if (limit_read("Max file size", &limit)) {
		limit_put("size of a file", limit, 1024, " KiB");
		if (limit < FILE_LEAST)
			doctor_trouble("the state of a connection is a file of more: ulimit -f, or "
				       "LimitFSIZE= of the service");
	}
	if (limit_read("Max address space", &limit) && limit != ULONG_MAX)
		limit_put("address space", limit, 1024, " KiB");
}

/* --- the folder of connections --- */

static const char *dir_wrong(const char *path)
{
	struct statfs fs;
	struct stat st;

	if (lstat(path, &st))
		return strerror(errno);
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

/* Could a process make it? @parent becomes what it would stand in */
static const char *making_wrong(const char *path, char parent[DOCTOR_PATH])
{
	struct statfs fs;
	char *slash;

	snprintf(parent, DOCTOR_PATH, "%s", path);
	slash = strrchr(parent, '/');
	if (!slash || !slash[1])
		return "its name is no path of a folder";
	slash[slash == parent] = '\0';
	if (access(parent, W_OK | X_OK) || statfs(parent, &fs))
		return strerror(errno);
	if (fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC)
		return "it would be on no tmpfs";
	return NULL;
}

struct files {
	const char *folder; /* as processes name it */
	struct file {
		char name[NAME_MAX + 1];
		bool lives;
	} * file;
	size_t n;
};

static void file_add(const char *name, void *ctx)
{
	struct files *all = ctx;
	struct file *more = realloc(all->file, (all->n + 1) * sizeof(*more));

	if (!more)
		launcher_die("no memory");
	all->file = more;
	snprintf(more[all->n].name, sizeof(more->name), "%s", name);
	more[all->n++].lives = false;
}

/* A line of /proc/PID/maps ends with the path; behind it may stand " (deleted)" */
static void mapping_note(struct files *all, char *line)
{
	const char *path = strchr(line, '/');
	size_t len = strlen(all->folder);

	line[strcspn(line, "\n")] = '\0';
	if (!path || strncmp(path, all->folder, len) || path[len] != '/')
		return;
	for (size_t i = 0; i < all->n; i++)
		all->file[i].lives |= !strcmp(all->file[i].name, path + len + 1);
}

static void process_look(const char *pid, void *ctx)
{
	char path[DOCTOR_PATH], line[PATH_MAX + 256];
	FILE *f;

	if (pid[strspn(pid, "0123456789")])
		return;
	doctor_path(path, "/proc/%s/maps", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		mapping_note(ctx, line);
	if (f)
		fclose(f);
}

static void connections_put(const char *folder)
{
	struct files all = { .folder = folder };
	size_t lives = 0;

	doctor_each(folder, file_add, &all);
	if (all.n)
		doctor_each("/proc", process_look, &all);
	for (size_t i = 0; i < all.n; i++)
		lives += all.file[i].lives;
	printf(", connections: %zu", lives);
	if (all.n > lives)
		printf(", left by killed processes: %zu", all.n - lives);
	free(all.file);
}

/* Each may take all of its file; in the mean it is less, for a ring gets memory as it is used */
static void room_put(const char *path, unsigned long long ring)
{
	struct statfs fs;

	if (statfs(path, &fs))
		return;
	if (!fs.f_blocks)
		puts("    room: no limit");
	else
		printf("    room: for %llu connections at least, with rings of %llu KiB\n",
		       (unsigned long long)fs.f_bavail * (unsigned long long)fs.f_bsize /
			       (ring + STATE_SIZE),
		       ring >> 10);
}

void doctor_runtime(void)
{
	static struct config_settings settings;
	char path[DOCTOR_PATH], parent[DOCTOR_PATH], folder[DOCTOR_PATH];
	const char *wrong, *dir;
	bool there;

	settings_load(&settings, NULL);
	dir = config_text(&settings, CONFIG_RUNTIME_DIR);
	if (strcmp(dir, "auto"))
		snprintf(folder, sizeof(folder), "%s", dir);
	else
		snprintf(folder, sizeof(folder), "/dev/shm/warpsock-%u", (unsigned int)geteuid());
	doctor_path(path, "%s", folder);
	there = !access(path, F_OK);
	printf("  runtime folder: %s, %s", path, there ? "there" : "not made yet");
	if (there)
		connections_put(folder);
	putchar('\n');
	wrong = there ? dir_wrong(path) : making_wrong(path, parent);
	if (wrong)
		doctor_trouble("%s%s; connections end with the process that made them",
			       there ? "" : "it cannot be made: ", wrong);
	else
		room_put(there ? path : parent, config_number(&settings, CONFIG_RING));
}

/* --- a program --- */

void doctor_program(const char *name)
{
	enum config_loads l = config_loads_find(name);

	printf("program %s\n", name);
	if (l == CONFIG_LOADS_NOTHING)
		doctor_trouble("there is no such program, or it cannot be executed");
	else if (l != CONFIG_LOADS_YES)
		doctor_trouble("it %s: its sockets stay on TCP", config_loads_text(l));
	else
		puts("    can be interposed");
}
