/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registrations of a socket that was the kernel's alone, and becomes ours: by DDP_MODE, where no
 * rule had wanted it.
 *
 * Only the kernel knows them. /proc/self/fdinfo of a set has a line for each: descriptor, mask,
 * data, and the file by its inode. kcmp() says first whether there is one at all, for a set may
 * have very many members.
 */
#include "preload/wait/epset.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "base/log.h"

struct taking {
	struct sock *sock;
	int fd;	  /* the program's number of it; by another it may be another file's */
	int epfd; /* of the set at hand */
	unsigned long inode;
	unsigned int device; /* as the kernel writes it */
};

/* May the set have it? Where the kernel does not say, yes */
static bool may_have(int epfd, int fd)
{
	struct kcmp_epoll_slot slot = { .efd = (uint32_t)epfd, .tfd = (uint32_t)fd };
	int saved = errno;
	long pid = getpid();
	bool none;

	none = syscall(SYS_kcmp, pid, pid, KCMP_EPOLL_TFD, fd, &slot) < 0 && errno == ENOENT;
	errno = saved;
	return !none;
}

/* From the kernel to us, as the program made it */
static void take(const struct taking *t, const struct epoll_event *event)
{
	int err = (int)epset_kernel_ctl(t->epfd, EPOLL_CTL_DEL, t->fd, 0, 0);

	if (!err)
		err = epoll_sock_ctl(t->epfd, EPOLL_CTL_ADD, t->fd, t->sock, event);
	if (err)
		base_err("epoll: no more events of descriptor %d: %s", t->fd, strerror(-err));
}

static void line_take(const struct taking *t, const char *line)
{
	struct epoll_event event;
	unsigned int device, mask;
	unsigned long long data;
	unsigned long inode;
	int fd;

	if (sscanf(line, "tfd: %d events: %x data: %llx pos:%*d ino:%lx sdev:%x", &fd, &mask, &data,
		   &inode, &device) != 5)
		return;
	event.events = mask;
	event.data.u64 = data;
	if (fd == t->fd && inode == t->inode && device == t->device)
		take(t, &event);
}

/* The kernel makes the whole text at the first read, so members may go meanwhile */
static void lines_take(const struct taking *t, int info)
{
	char text[1024];
	size_t have = 0;
	ssize_t n;

	while ((n = syscall(SYS_read, info, text + have, sizeof(text) - 1 - have)) > 0) {
		char *line = text, *end;

		have += (size_t)n;
		text[have] = '\0';
		while ((end = strchr(line, '\n'))) {
			*end = '\0';
			line_take(t, line);
			line = end + 1;
		}
		have -= (size_t)(line - text);
		memmove(text, line, have);
	}
}

static void set_take(int epfd, struct fdent *ent, void *ctx)
{
	struct taking *t = ctx;
	char path[40];
	int info;

	if (ent->kind != FD_EPOLL || !may_have(epfd, t->fd))
		return;
	t->epfd = epfd;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", epfd);
	info = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return;
	lines_take(t, info);
	base_fd_close(info);
}

static void sock_take(struct sock *s, int fd)
{
	struct taking t = { .sock = s, .fd = fd };
	struct stat st;

	if (fstat(fd, &st))
		return;
	t.inode = st.st_ino;
	t.device = major(st.st_dev) << 20 | minor(st.st_dev);
	fdtab_each(set_take, &t);
}

static const struct sets_ops ops = {
	.rekey = epset_rekey,
	.forget = epset_forget,
	.give_back = epset_give_back,
	.pass = epset_pass,
	.take = sock_take,
};

void epoll_init(void)
{
	sets_begin(&ops);
}
