/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files in which a command's processes add up what they did.
 *
 * A report begins with zeros, so that there is one whatever becomes of the command. Each command
 * has a file in /dev/shm, under the user's number and that of the launcher's process, which is the
 * command's own as a rule: its processes share what stands there behind the text, and the text is
 * the report where the user asked for none. The command's own process removes it at its end. What
 * a killed one leaves the next launcher removes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/warpsock/launcher.h"
#include "config/report.h"

#define FOLDER "/dev/shm"
#define NAME "warpsock-counts-%u-"

/* To go beyond RLIMIT_FSIZE is SIGXFSZ, and the command is to begin all the same */
static bool fits(size_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || size <= limit.rlim_cur;
}

/* @shared: with room behind the text. 0 or -errno */
static int zeros_write(const char *path, mode_t mode, bool shared)
{
	static const struct config_report zeros;
	char text[CONFIG_REPORT_MAX];
	size_t len = config_report_format(&zeros, text);
	int err = 0, fd;

	if (!fits(shared ? CONFIG_TALLY_SIZE : len))
		return -EFBIG;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len)
		err = -EIO;
	/* A page that is touched first when the folder is full ends the process */
	if (!err && shared)
		err = -posix_fallocate(fd, 0, CONFIG_TALLY_SIZE);
	close(fd);
	if (err)
		unlink(path);
	return err;
}

/* The program may change its directory before it ends */
static void absolute_make(const char *file, char out[PATH_MAX])
{
	char here[PATH_MAX];

	if (file[0] != '/' && !getcwd(here, sizeof(here)))
		launcher_die("the working directory: %s", strerror(errno));
	if (snprintf(out, PATH_MAX, "%s%s%s", file[0] == '/' ? "" : here, file[0] == '/' ? "" : "/",
		     file) >= PATH_MAX)
		launcher_die("%s: %s", file, strerror(ENAMETOOLONG));
}

/* A device, as /dev/null, is not removed, whoever may do so */
static void old_remove(const char *path)
{
	struct stat st;
	bool there = !lstat(path, &st);

	if (there && !S_ISREG(st.st_mode))
		launcher_die("%s: %s; --report - is standard output", path,
			     S_ISDIR(st.st_mode) ? strerror(EISDIR) : "Not a regular file");
	if (there && unlink(path))
		launcher_die("%s: %s", path, strerror(errno));
}

void counts_report(const char *file, char out[PATH_MAX])
{
	int err;

	if (!*file)
		launcher_die("--report: expected a path or -, got \"\"");
	absolute_make(file, out);
	old_remove(out);
	err = zeros_write(out, 0644, false);
	if (err)
		launcher_die("%s: %s", out, strerror(-err));
}

void counts_named(const char *path, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%s", path);
	zeros_write(out, 0644, false); /* if there is none */
}

/* Of a command that lives no more; another user's of this name nobody can remove */
static void left_remove(const char *name)
{
	char own[64], path[PATH_MAX];
	size_t len = (size_t)snprintf(own, sizeof(own), NAME, (unsigned int)getuid());
	pid_t pid;

	if (strncmp(name, own, len))
		return;
	pid = (pid_t)strtol(name + len, NULL, 10);
	if (pid > 0 && pid != getpid() && (!kill(pid, 0) || errno != ESRCH))
		return;
	snprintf(path, sizeof(path), FOLDER "/%s", name);
	unlink(path);
}

void counts_private(char out[PATH_MAX])
{
	DIR *dir = opendir(FOLDER);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		left_remove(entry->d_name);
	if (dir)
		closedir(dir);
	snprintf(out, PATH_MAX, FOLDER "/" NAME "%d", (unsigned int)getuid(), getpid());
	if (zeros_write(out, 0600, true))
		out[0] = '\0';
}

struct config_tally *counts_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	char *p = MAP_FAILED;

	if (fd >= 0) {
		p = mmap(NULL, CONFIG_TALLY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	return p == MAP_FAILED ? NULL : (struct config_tally *)(p + CONFIG_TALLY_AT);
}

bool counts_add(const char *path, const struct config_report *more, struct config_report *all)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char text[CONFIG_REPORT_MAX] = "";
	bool good;

	if (fd < 0)
		return false;
	good = !config_report_lock(fd) && pread(fd, text, sizeof(text) - 1, 0) > 0 &&
	       !config_report_parse(all, text);
	if (good) {
		size_t len;

		config_report_add(all, more);
		len = config_report_format(all, text);
		good = fits(len) && pwrite(fd, text, len, 0) == (ssize_t)len;
	}
	close(fd);
	return good;
}
