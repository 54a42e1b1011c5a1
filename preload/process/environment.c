/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The environment of a program that inherits a stream.
 *
 * It is to load us, so what its predecessor gives it may lack neither our name in LD_PRELOAD nor
 * our own variables; those it has stay as they are. Copies are made at the start, because
 * servers write what they do over the original ones. A list is made in its caller's room: a
 * child of vfork() may leave nothing behind.
 */
#include "preload/process/environment.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"

#define OURS "WARPSOCK_"
#define PRELOAD "LD_PRELOAD="

static struct {
	char library[PATH_MAX]; /* empty: we are part of the program */
	char **list;		/* NAME=value, and NULL */
	size_t n;
} kept;

static bool is_ours(const char *entry)
{
	return !strncmp(entry, OURS, strlen(OURS));
}

static void list_copy(char *const *from)
{
	size_t room = sizeof(char *), n = 0;
	void *p;
	char *text;

	for (char *const *e = from; *e; e++)
		if (is_ours(*e)) {
			room += sizeof(char *) + strlen(*e) + 1;
			n++;
		}
	if (base_map_create(room, &p))
		return;
	kept.list = p;
	text = (char *)(kept.list + n + 1);
	for (; *from; from++)
		if (is_ours(*from)) {
			kept.list[kept.n++] = text;
			text = stpcpy(text, *from) + 1;
		}
}

static void library_find(void)
{
	struct link_map *map;
	Dl_info info;

	if (!dladdr1(&kept, &info, (void **)&map, RTLD_DL_LINKMAP) || !map->l_name[0])
		return;
	if (!realpath(map->l_name, kept.library))
		kept.library[0] = '\0';
}

void environment_init(void)
{
	library_find();
	list_copy(environ);
}

const char *environment_library(void)
{
	return kept.library;
}

bool environment_library_readable(void)
{
	return kept.library[0] && !euidaccess(kept.library, R_OK);
}

/* The value of @entry's name in @envp; NULL: it has none */
static const char *value_in(char *const *envp, const char *entry)
{
	size_t n = strcspn(entry, "=") + 1;

	for (; envp && *envp; envp++)
		if (!strncmp(*envp, entry, n))
			return *envp + n;
	return NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Whatever its folder is: it was loaded from there, or from where we were */
static bool names_library(const char *list)
{
	const char *name = base_name(kept.library);
	size_t n;

	for (; list && *list; list += n + (list[n] != '\0')) {
		size_t len = strlen(name);

		n = strcspn(list, ": ");
		if (n >= len && !memcmp(list + n - len, name, len))
			return true;
	}
	return false;
}

static bool lacks_preload(char *const *envp)
{
	return kept.library[0] && !names_library(value_in(envp, PRELOAD));
}

static size_t count(char *const *envp)
{
	size_t n = 0;

	while (envp && envp[n])
		n++;
	return n;
}

static size_t preload_room(char *const *envp)
{
	const char *before = value_in(envp, PRELOAD);

	return strlen(PRELOAD) + strlen(kept.library) + (before ? strlen(before) + 1 : 0) + 1;
}

size_t environment_room(char *const *envp)
{
	bool preload = lacks_preload(envp), lacks = preload;

	for (size_t i = 0; i < kept.n; i++)
		lacks |= !value_in(envp, kept.list[i]);
	if (!lacks)
		return 0;
	return (count(envp) + kept.n + 2) * sizeof(char *) + (preload ? preload_room(envp) : 0);
}

static char *preload_make(char *text, size_t room, char *const *envp)
{
	const char *before = value_in(envp, PRELOAD);

	snprintf(text, room, PRELOAD "%s%s%s", kept.library, before ? ":" : "",
		 before ? before : "");
	return text;
}

char **environment_make(void *room, char *const *envp)
{
	char **out = room, **at = out;
	char *text = (char *)(out + count(envp) + kept.n + 2);
	bool preload = lacks_preload(envp);

	if (preload)
		*at++ = preload_make(text, preload_room(envp), envp);
	for (char *const *e = envp; e && *e; e++)
		if (!preload || strncmp(*e, PRELOAD, strlen(PRELOAD)))
			*at++ = *e;
	for (size_t i = 0; i < kept.n; i++)
		if (!value_in(envp, kept.list[i]))
			*at++ = kept.list[i];
	*at = NULL;
	return out;
}

/* --- without the interposer --- */

size_t environment_bare_room(char *const *envp)
{
	const char *value = kept.library[0] ? value_in(envp, PRELOAD) : NULL;

	if (!value || !names_library(value))
		return 0;
	return (count(envp) + 1) * sizeof(char *) + strlen(PRELOAD) + strlen(value) + 1;
}

/* The other names of the list @from */
static void others_copy(char *to, const char *from)
{
	const char *name = base_name(kept.library), *begin = from;
	size_t len = strlen(name), n;

	for (to = stpcpy(to, PRELOAD); *from; from += n + (from[n] != '\0')) {
		n = strcspn(from, ": ");
		if (n >= len && !memcmp(from + n - len, name, len))
			continue;
		if (from > begin && to[-1] != '=')
			*to++ = ':';
		to = mempcpy(to, from, n);
	}
	*to = '\0';
}

char **environment_bare(void *room, char *const *envp)
{
	char **out = room, **at = out, *text = (char *)(out + count(envp) + 1);

	for (char *const *e = envp; *e; e++) {
		if (strncmp(*e, PRELOAD, strlen(PRELOAD))) {
			*at++ = *e;
			continue;
		}
		others_copy(text, *e + strlen(PRELOAD));
		if (text[strlen(PRELOAD)])
			*at++ = text;
	}
	*at = NULL;
	return out;
}

bool environment_restore(void)
{
	size_t room = environment_room(environ);
	void *p;

	if (room && base_map_create(room, &p))
		return false;
	if (room)
		environ = environment_make(p, environ);
	return true;
}
