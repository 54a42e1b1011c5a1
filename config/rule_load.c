/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where rules come from: the command line, the environment, a file, in this precedence. It is
 * the one place of this folder that reads a file; by raw system calls, because in a program
 * with the interposer loaded libc's names are its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/fdutil.h"
#include "config/rule.h"

int config_mode_parse(const char *word, enum config_transport *out)
{
	if (!strcmp(word, "on"))
		*out = CONFIG_USE_DDP;
	else if (!strcmp(word, "auto"))
		*out = CONFIG_USE_AUTO;
	else
		return -EINVAL;
	return 0;
}

void config_sources_init(struct config_sources *sources)
{
	*sources = (struct config_sources){
		.environment = getenv("WARPSOCK_USE"),
		.file = getenv("WARPSOCK_CONFIG"),
	};
}

static int string_add(struct config_rules *rules, const struct config_sources *sources,
		      enum config_source source, const char *name, uint32_t line,
		      const char *octets, struct config_error *err)
{
	struct config_text text = {
		.mistake = sources->mistake,
		.source = source,
		.name = name,
		.line = line,
		.octets = octets,
		.len = strlen(octets),
	};

	return config_rules_add(rules, &text, err);
}

/* Who wants all mistakes has the other sources read, too */
static bool goes_on(const struct config_sources *sources, int bad)
{
	return !bad || sources->mistake;
}

static int worse(int bad, int err)
{
	return bad ? bad : err;
}

static int command_add(struct config_rules *rules, const struct config_sources *sources,
		       struct config_error *err)
{
	static const char *const all[] = {
		[CONFIG_USE_TCP] = "tcp * * *:*",
		[CONFIG_USE_AUTO] = "auto * * *:*",
		[CONFIG_USE_DDP] = "ddp * * *:*",
	};
	int bad = 0;

	for (unsigned int i = 0; i < sources->uses && goes_on(sources, bad); i++)
		bad = worse(bad, string_add(rules, sources, CONFIG_FROM_COMMAND, "--use", i + 1,
					    sources->use[i], err));
	if (goes_on(sources, bad) && sources->all)
		bad = worse(bad, string_add(rules, sources, CONFIG_FROM_COMMAND, "--all",
					    sources->uses + 1, all[sources->all_transport], err));
	return bad;
}

/* All bytes of @fd, which need not be a regular file; -EFBIG when they do not fit */
static ssize_t octets_read(int fd, char *buf, size_t size)
{
	size_t at = 0;
	long n;

	do {
		n = syscall(SYS_read, fd, buf + at, size - at);
		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	} while (n && at < size);
	return n ? -EFBIG : (ssize_t)at;
}

static ssize_t file_read(const char *path, char *buf, size_t size)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = octets_read(fd, buf, size);
	base_fd_close(fd);
	return n;
}

static int file_parse(struct config_rules *rules, const struct config_sources *sources,
		      const char *path, char *buf, struct config_error *err)
{
	ssize_t n = file_read(path, buf, CONFIG_FILE_MAX + 1);
	struct config_text text = {
		.mistake = sources->mistake,
		.source = CONFIG_FROM_FILE,
		.name = path,
		.line = 1,
		.octets = buf,
		.len = (size_t)n,
	};

	if (n >= 0)
		return config_rules_add(rules, &text, err);
	/* unlike strerror(), without the locale */
	config_error_set(err, "%.255s: cannot be read: %s", path, strerrordesc_np((int)-n));
	if (sources->mistake)
		sources->mistake(err);
	return (int)n;
}

static int file_add(struct config_rules *rules, const struct config_sources *sources,
		    struct config_error *err)
{
	const char *path = sources->file;
	size_t size = CONFIG_FILE_MAX + 1;
	void *buf;
	int bad;

	if (!path && syscall(SYS_faccessat, AT_FDCWD, CONFIG_FILE_DEFAULT, F_OK) && errno == ENOENT)
		return 0;
	path = path ? path : CONFIG_FILE_DEFAULT;
	if (!*path)
		return 0;
	buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf == MAP_FAILED) {
		config_error_set(err, "%.255s: no memory to read it", path);
		return -ENOMEM;
	}
	bad = file_parse(rules, sources, path, buf, err);
	munmap(buf, size);
	return bad;
}

int config_rules_load(struct config_rules *rules, const struct config_sources *sources,
		      struct config_error *err)
{
	int bad;

	config_rules_init(rules);
	bad = command_add(rules, sources, err);
	if (goes_on(sources, bad) && sources->environment)
		bad = worse(bad, string_add(rules, sources, CONFIG_FROM_ENVIRONMENT, "WARPSOCK_USE",
					    1, sources->environment, err));
	if (goes_on(sources, bad))
		bad = worse(bad, file_add(rules, sources, err));
	if (bad)
		config_rules_init(rules);
	return bad;
}

int config_rules_inherit(struct config_rules *rules, config_mistake_fn mistake,
			 struct config_error *err)
{
	const char *table = getenv("WARPSOCK_RULES");
	struct config_sources sources;
	int bad;

	if (!table) {
		config_sources_init(&sources);
		sources.mistake = mistake;
		return config_rules_load(rules, &sources, err);
	}
	bad = config_rules_decode(rules, table);
	if (bad)
		config_error_set(err, "WARPSOCK_RULES: expected a table as warpsock run makes it");
	if (bad && mistake)
		mistake(err);
	return bad;
}
