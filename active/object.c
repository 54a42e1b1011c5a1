/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects of a client: files that it may have to send, and their hashes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "active/client.h"
#include "base/sha256.h"

static int object_new(size_t len, struct warp_active_object **out)
{
	struct warp_active_object *o;

	if (!len)
		return -EINVAL;
	if (len > ACTIVE_WIRE_OBJECT_MAX)
		return -E2BIG;
	o = malloc(sizeof(*o) + len);
	if (!o)
		return -ENOMEM;
	o->users = 1;
	o->len = len;
	*out = o;
	return 0;
}

int warp_active_object_create(const void *elf, size_t len, struct warp_active_object **out)
{
	struct warp_active_object *o;
	int ret;

	if (!elf || !out)
		return -EINVAL;
	ret = object_new(len, &o);
	if (ret)
		return ret;
	memcpy(o->bytes, elf, len);
	base_sha256(o->bytes, len, o->hash);
	*out = o;
	return 0;
}

static int bytes_read(int fd, struct warp_active_object *o)
{
	size_t got = 0;

	while (got < o->len) {
		ssize_t n = read(fd, o->bytes + got, o->len - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		got += (size_t)n;
	}
	return 0;
}

static int file_read(int fd, struct warp_active_object **out)
{
	struct warp_active_object *o;
	struct stat st;
	int ret;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	ret = object_new((size_t)st.st_size, &o);
	if (ret)
		return ret;
	ret = bytes_read(fd, o);
	if (ret) {
		free(o);
		return ret;
	}
	base_sha256(o->bytes, o->len, o->hash);
	*out = o;
	return 0;
}

int warp_active_object_open(const char *path, struct warp_active_object **out)
{
	int fd, ret;

	if (!path || !out)
		return -EINVAL;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = file_read(fd, out);
	close(fd);
	return ret;
}

struct warp_active_object *active_object_get(const struct warp_active_object *object)
{
	struct warp_active_object *o = (struct warp_active_object *)(uintptr_t)object;

	__atomic_add_fetch(&o->users, 1, __ATOMIC_RELAXED);
	return o;
}

void active_object_put(struct warp_active_object *o)
{
	/* Pairs with itself: the last one sees all that others did */
	if (o && !__atomic_sub_fetch(&o->users, 1, __ATOMIC_ACQ_REL))
		free(o);
}

void warp_active_object_destroy(struct warp_active_object *object)
{
	active_object_put(object);
}

void warp_active_object_hash(const struct warp_active_object *object, uint8_t hash[32])
{
	memcpy(hash, object->hash, ACTIVE_WIRE_HASH);
}
