/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-arfs: mounts ARFS by FUSE.
 *
 * Nothing is cached: entries and attributes are good for no time, and files are opened for direct
 * I/O, so that each client sees what the others did. With -c the kernel shows entries and
 * attributes for a while, and keeps what it has read of a file as long as that is the same when it
 * is opened. It knows a file by its node, which is its inode and which use of it that is.
 *
 * A file that loses its last name while it is open here stays at the server until it is closed
 * (opens.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <warp/rdma.h>

#include "apps/examples/endpoint.h"
#include "client.h"
#include "entry.h"
#include "known.h"
#include "listing.h"
#include "opens.h"

enum status { DONE, USAGE = 2, FAILED = 3 };

static struct {
	struct client_attr client;
	const char *host, *mount_options;
	unsigned long port, spin_us, wait_ms, keep_ms, foreground;
	double keep; /* seconds that the kernel may show what it knows */
} options = { .port = 7190, .wait_ms = 10000 };

static struct client *client;
static struct opens opens;
static struct known known;
static struct fuse_session *mounted;

/* --- answers --- */

static void error_give(fuse_req_t req, long ret)
{
	fuse_reply_err(req, (int)-ret);
}

static void entry_give(fuse_req_t req, long ret, const struct arfs_attr *a)
{
	const struct fuse_entry_param e = entry_of(a, options.keep);

	if (ret)
		error_give(req, ret);
	else
		fuse_reply_entry(req, &e);
}

static void attr_give(fuse_req_t req, long ret, const struct arfs_attr *a)
{
	struct stat st;

	if (ret) {
		error_give(req, ret);
		return;
	}
	entry_stat(a, &st);
	fuse_reply_attr(req, &st, options.keep);
}

/* --- names --- */

static void do_lookup(fuse_req_t req, fuse_ino_t dir, const char *name)
{
	struct arfs_attr a = { 0 };
	long ret = client_lookup(client, dir, name, &a);

	/* Node 0: that there is none is known for a while, too */
	entry_give(req, ret == -ENOENT && options.keep > 0 ? 0 : ret, &a);
}

static void do_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	struct arfs_attr a;

	attr_give(req, client_getattr(client, node, &a), &a);
}

static struct arfs_ask ask_new(fuse_req_t req, fuse_ino_t dir, uint32_t mode)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	return (struct arfs_ask){
		.node = dir, .mode = mode, .uid = ctx->uid, .gid = ctx->gid, .flags = ARFS_EXCLUSIVE
	};
}

static void make(fuse_req_t req, const struct arfs_ask *ask, const char *name, const char *target)
{
	struct arfs_changed changed = { 0 };

	entry_give(req, client_change(client, "create", ask, name, target, &changed),
		   &changed.attr);
}

static void do_mknod(fuse_req_t req, fuse_ino_t dir, const char *name, mode_t mode, dev_t rdev)
{
	struct arfs_ask ask = ask_new(req, dir, mode);

	ask.rdev = (uint32_t)rdev;
	make(req, &ask, name, NULL);
}

static void do_mkdir(fuse_req_t req, fuse_ino_t dir, const char *name, mode_t mode)
{
	const struct arfs_ask ask = ask_new(req, dir, S_IFDIR | (mode & 07777));

	make(req, &ask, name, NULL);
}

static void do_symlink(fuse_req_t req, const char *target, fuse_ino_t dir, const char *name)
{
	const struct arfs_ask ask = ask_new(req, dir, S_IFLNK | 0777);

	make(req, &ask, name, target);
}

static void do_link(fuse_req_t req, fuse_ino_t node, fuse_ino_t dir, const char *name)
{
	const struct arfs_ask ask = { .node = node, .other = dir };
	struct arfs_changed changed = { 0 };

	entry_give(req, client_change(client, "link", &ask, name, NULL, &changed), &changed.attr);
}

/* What lost its last name is kept if it is open here */
static void orphan_mind(uint64_t node)
{
	if (node && !opens_orphan(&opens, node))
		client_simple(client, "release", node, 0);
}

static void change(fuse_req_t req, const char *what, struct arfs_ask *ask, const char *name,
		   const char *other)
{
	struct arfs_changed changed = { 0 };
	int ret;

	if (opens_any(&opens))
		ask->flags |= ARFS_KEEP;
	ret = client_change(client, what, ask, name, other, &changed);
	if (!ret)
		orphan_mind(changed.orphan);
	error_give(req, ret);
}

static void do_unlink(fuse_req_t req, fuse_ino_t dir, const char *name)
{
	struct arfs_ask ask = { .node = dir };

	change(req, "unlink", &ask, name, NULL);
}

static void do_rmdir(fuse_req_t req, fuse_ino_t dir, const char *name)
{
	struct arfs_ask ask = { .node = dir };

	change(req, "rmdir", &ask, name, NULL);
}

static void do_rename(fuse_req_t req, fuse_ino_t dir, const char *name, fuse_ino_t to,
		      const char *new_name, unsigned int flags)
{
	struct arfs_ask ask = { .node = dir, .other = to };

	if (flags & ~(unsigned int)(RENAME_NOREPLACE | RENAME_EXCHANGE)) {
		error_give(req, -EINVAL);
		return;
	}
	ask.flags = (flags & RENAME_NOREPLACE ? (uint32_t)ARFS_NOREPLACE : 0) |
		    (flags & RENAME_EXCHANGE ? (uint32_t)ARFS_EXCHANGE : 0);
	change(req, "rename", &ask, name, new_name);
}

static void do_readlink(fuse_req_t req, fuse_ino_t node)
{
	char target[ARFS_TARGET_MAX + 1];
	long ret = client_read(client, node, 0, target, ARFS_TARGET_MAX);

	if (ret < 0) {
		error_give(req, ret);
		return;
	}
	target[ret] = 0;
	fuse_reply_readlink(req, target);
}

/* --- attributes --- */

static uint64_t ns_of(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

static uint64_t time_of(int given, int now, const struct timespec *t, uint32_t bit,
			struct arfs_ask *ask)
{
	struct timespec clock;

	if (!given)
		return 0;
	ask->set |= bit;
	clock_gettime(CLOCK_REALTIME, &clock);
	return ns_of(now ? &clock : t);
}

static void do_setattr(fuse_req_t req, fuse_ino_t node, struct stat *st, int set,
		       struct fuse_file_info *fi)
{
	struct arfs_ask ask = { .node = node,
				.mode = st->st_mode,
				.uid = st->st_uid,
				.gid = st->st_gid,
				.size = (uint64_t)st->st_size };
	struct arfs_changed changed;

	ask.set = (set & FUSE_SET_ATTR_MODE ? (uint32_t)ARFS_SET_MODE : 0) |
		  (set & FUSE_SET_ATTR_UID ? (uint32_t)ARFS_SET_UID : 0) |
		  (set & FUSE_SET_ATTR_GID ? (uint32_t)ARFS_SET_GID : 0) |
		  (set & FUSE_SET_ATTR_SIZE ? (uint32_t)ARFS_SET_SIZE : 0);
	ask.atime = time_of(set & FUSE_SET_ATTR_ATIME, set & FUSE_SET_ATTR_ATIME_NOW, &st->st_atim,
			    ARFS_SET_ATIME, &ask);
	ask.mtime = time_of(set & FUSE_SET_ATTR_MTIME, set & FUSE_SET_ATTR_MTIME_NOW, &st->st_mtim,
			    ARFS_SET_MTIME, &ask);
	attr_give(req, client_change(client, "setattr", &ask, NULL, NULL, &changed), &changed.attr);
}

static void do_statfs(fuse_req_t req, fuse_ino_t node)
{
	struct arfs_space s;
	struct statvfs to = { .f_bsize = ARFS_BLOCK,
			      .f_frsize = ARFS_BLOCK,
			      .f_namemax = ARFS_NAME_MAX };
	int ret = client_space(client, &s);

	if (ret) {
		error_give(req, ret);
		return;
	}
	to.f_blocks = s.blocks;
	to.f_bfree = to.f_bavail = s.free_blocks;
	to.f_files = s.inodes;
	to.f_ffree = to.f_favail = s.free_inodes;
	fuse_reply_statfs(req, &to);
}

/* --- open files --- */

/*
 * An open sees what others wrote before they closed the file, also how long it is by now: the
 * kernel is to ask for the attributes again, which it may have for a while yet
 */
static void attributes_forget(fuse_ino_t node)
{
	fuse_lowlevel_notify_inval_inode(mounted, node, -1, 0);
}

/* What is appended goes where the server has the end, whatever the kernel keeps */
static void open_answer(struct fuse_file_info *fi, const struct arfs_attr *now)
{
	fi->direct_io = options.keep <= 0 || fi->flags & O_APPEND;
	fi->keep_cache = options.keep > 0 && known_same(&known, now);
}

static void do_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	int ret = opens_add(&opens, node);
	struct arfs_attr a = { 0 };

	/* Where nothing is kept, the kernel has just looked the name up */
	if (!ret && options.keep > 0) {
		ret = client_getattr(client, node, &a);
		if (ret)
			opens_remove(&opens, node);
	}
	open_answer(fi, &a);
	if (!ret && options.keep > 0 && !fi->keep_cache)
		attributes_forget(node);
	if (ret)
		error_give(req, ret);
	else
		fuse_reply_open(req, fi);
}

static void node_release(uint64_t node)
{
	if (opens_remove(&opens, node))
		client_simple(client, "release", node, 0);
}

static void do_create(fuse_req_t req, fuse_ino_t dir, const char *name, mode_t mode,
		      struct fuse_file_info *fi)
{
	struct arfs_ask ask = ask_new(req, dir, S_IFREG | (mode & 07777));
	struct arfs_changed changed = { 0 };
	struct fuse_entry_param e;
	int ret;

	if (!(fi->flags & O_EXCL))
		ask.flags = 0;
	ret = client_change(client, "create", &ask, name, NULL, &changed);
	if (!ret)
		ret = opens_add(&opens, changed.attr.node);
	if (ret) {
		error_give(req, ret);
		return;
	}
	e = entry_of(&changed.attr, options.keep);
	open_answer(fi, &changed.attr);
	/* -ENOENT: the call was interrupted, and nobody will release it */
	if (fuse_reply_create(req, &e, fi) == -ENOENT)
		node_release(changed.attr.node);
}

static void do_release(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	node_release(node);
	fuse_reply_err(req, 0);
}

static void do_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		    struct fuse_file_info *fi)
{
	char *to = malloc(size + 1);
	long ret = to ? client_read(client, node, (uint64_t)offset, to, size) : -ENOMEM;

	if (ret < 0)
		error_give(req, ret);
	else
		fuse_reply_buf(req, to, (size_t)ret);
	free(to);
}

static void do_write(fuse_req_t req, fuse_ino_t node, const char *from, size_t size, off_t offset,
		     struct fuse_file_info *fi)
{
	uint32_t flags = fi->flags & O_APPEND ? ARFS_APPEND : 0;
	long ret = client_write(client, node, (uint64_t)offset, flags, from, size);

	if (ret < 0)
		error_give(req, ret);
	else
		fuse_reply_write(req, (size_t)ret);
}

static void do_fsync(fuse_req_t req, fuse_ino_t node, int datasync, struct fuse_file_info *fi)
{
	int ret = client_simple(client, "fsync", node, 0);

	/* Who can only read has changed nothing */
	error_give(req, ret == -EROFS ? 0 : ret);
}

/* --- directories --- */

static void list_give(fuse_req_t req, const struct fuse_file_info *fi, struct listing_ask *ask)
{
	char *to = malloc(ask->room);
	long ret = -ENOMEM;

	ask->req = req;
	if (to)
		ret = listing_read((struct listing *)(uintptr_t)fi->fh, client, ask, to);
	if (ret < 0)
		error_give(req, ret);
	else
		fuse_reply_buf(req, to, (size_t)ret);
	free(to);
}

static void do_readdir(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		       struct fuse_file_info *fi)
{
	struct listing_ask ask = { .node = node, .room = size, .offset = offset, .keep = -1 };

	list_give(req, fi, &ask);
}

static void do_readdirplus(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
			   struct fuse_file_info *fi)
{
	struct listing_ask ask = {
		.node = node, .room = size, .offset = offset, .keep = options.keep
	};

	list_give(req, fi, &ask);
}

static void do_opendir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	struct listing *l = listing_create();

	if (!l) {
		error_give(req, -ENOMEM);
		return;
	}
	fi->fh = (uintptr_t)l;
	/* The kernel compares the time of the directory's last change before it uses what it has */
	fi->cache_readdir = fi->keep_cache = options.keep > 0;
	/* -ENOENT: the call was interrupted, and nobody will release it */
	if (fuse_reply_open(req, fi) == -ENOENT)
		listing_destroy(l);
}

static void do_releasedir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	listing_destroy((struct listing *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}

static void do_init(void *context, struct fuse_conn_info *conn)
{
	/* The server makes an open file without content, and an append, one change */
	conn->want &= ~(unsigned int)(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_WRITEBACK_CACHE);
	if (options.keep <= 0)
		conn->want &= ~(unsigned int)FUSE_CAP_AUTO_INVAL_DATA;
	/* Attributes that are good for no time are of no use; one-sided, each would be a Read */
	if (options.keep <= 0 || options.client.one_sided)
		conn->want &= ~(unsigned int)FUSE_CAP_READDIRPLUS;
}

static const struct fuse_lowlevel_ops operations = {
	.init = do_init,
	.lookup = do_lookup,
	.getattr = do_getattr,
	.setattr = do_setattr,
	.readlink = do_readlink,
	.mknod = do_mknod,
	.mkdir = do_mkdir,
	.unlink = do_unlink,
	.rmdir = do_rmdir,
	.symlink = do_symlink,
	.rename = do_rename,
	.link = do_link,
	.open = do_open,
	.read = do_read,
	.write = do_write,
	.release = do_release,
	.fsync = do_fsync,
	.opendir = do_opendir,
	.readdir = do_readdir,
	.readdirplus = do_readdirplus,
	.releasedir = do_releasedir,
	.fsyncdir = do_fsync,
	.statfs = do_statfs,
	.create = do_create,
};

/* --- command line --- */

static void usage(FILE *to)
{
	fputs("usage: warp-arfs -a ADDRESS [OPTION..] DIRECTORY\n"
	      "  -a ADDRESS    the server\n"
	      "  -p PORT       its TCP port (7190)\n"
	      "  -1            read one-sided: by RDMA alone\n"
	      "  -c MS         show so long what is known, without asking (0)\n"
	      "  -o OPTIONS    of the mount, as of mount(8): ro, allow_other, ..\n"
	      "  -t MS         wait so long for a server that is away (10000)\n"
	      "  -f            stay in the foreground\n"
	      "  -s US         look for answers so long before sleeping (0)\n"
	      "  -h, --help    this text;  --version\n"
	      "exit status: 0 unmounted, 2 usage, 3 failed\n",
	      to);
}

static int wrong(const char *text)
{
	fprintf(stderr, "warp-arfs: %s\n", text);
	usage(stderr);
	return USAGE;
}

static int option_take(int letter)
{
	const struct {
		int letter;
		unsigned long max, *to;
	} numbers[] = { { 'c', 86400000, &options.keep_ms },
			{ 'p', 65535, &options.port },
			{ 's', 1000000, &options.spin_us },
			{ 't', 86400000, &options.wait_ms } };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (letter == numbers[i].letter)
			return endpoint_number(optarg, 0, numbers[i].max, numbers[i].to)
				       ? wrong("no value for this option")
				       : DONE;
	if (letter == 'a')
		options.host = optarg;
	else if (letter == 'o')
		options.mount_options = optarg;
	else if (letter == 'f')
		options.foreground = 1;
	else if (letter == '1')
		options.client.one_sided = true;
	else
		return wrong("no such option");
	return DONE;
}

/* 0, or the status to exit with plus one */
static int options_read(int argc, char **argv)
{
	static const struct option names[] = { { "help", no_argument, NULL, 'h' },
					       { "version", no_argument, NULL, 'V' },
					       { 0 } };
	int letter, ret;

	while ((letter = getopt_long(argc, argv, "a:c:p:o:s:t:1fh", names, NULL)) != -1) {
		if (letter == 'h')
			usage(stdout);
		if (letter == 'V')
			printf("warp-arfs %s\n", warp_version());
		if (letter == 'h' || letter == 'V')
			return DONE + 1;
		ret = option_take(letter);
		if (ret)
			return ret + 1;
	}
	if (!options.host)
		return wrong("-a is needed") + 1;
	return optind == argc - 1 ? 0 : wrong("one directory is needed") + 1;
}

static int loop(struct fuse_session *session)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int ret = fuse_session_loop_mt(session, config);

	fuse_loop_cfg_destroy(config);
	return ret > 0 ? 0 : ret; /* above 0: a signal, which unmounts */
}

/*
 * A child goes on, and the process that was called ends when the child says that the mount is there
 * (gone_on), or when the child ends. A descriptor, or a negative errno
 */
static int go_on(void)
{
	int ends[2], status = FAILED;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child = fork();
	if (child < 0)
		return -errno;
	if (!child) {
		close(ends[0]);
		setsid();
		return ends[1];
	}
	close(ends[1]);
	if (read(ends[0], &status, sizeof(status)) != sizeof(status))
		status = FAILED;
	exit(status);
}

static void gone_on(int end)
{
	const int status = DONE, nowhere = open("/dev/null", O_RDWR);

	for (int fd = 0; fd <= 2 && nowhere >= 0; fd++)
		dup2(nowhere, fd);
	if (nowhere > 2)
		close(nowhere);
	if (chdir("/") || write(end, &status, sizeof(status)) < 0)
		return; /* nobody waits */
	close(end);
}

static int serve(struct fuse_session *session, const char *directory)
{
	int end = options.foreground ? -1 : go_on();
	int ret = end < 0 && !options.foreground ? end : client_open(&options.client, &client);

	if (ret) {
		fprintf(stderr, "warp-arfs: %s: %s\n", options.host, strerror(-ret));
		return -1;
	}
	ret = fuse_session_mount(session, directory);
	if (!ret) {
		if (end >= 0)
			gone_on(end);
		ret = loop(session);
		fuse_session_unmount(session);
	}
	client_close(client);
	return ret;
}

/* The kernel would mount on a file, too */
static int directory_check(const char *directory)
{
	struct stat st;

	if (stat(directory, &st))
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

static int mount_at(const char *directory)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *session = NULL;
	int ret = directory_check(directory);

	if (ret) {
		fprintf(stderr, "warp-arfs: %s: %s\n", directory, strerror(-ret));
		return FAILED;
	}
	ret = -1;
	fuse_opt_add_arg(&args, "warp-arfs");
	fuse_opt_add_arg(&args, "-odefault_permissions,fsname=arfs,subtype=arfs");
	if (options.mount_options) {
		fuse_opt_add_arg(&args, "-o");
		fuse_opt_add_arg(&args, options.mount_options);
	}
	session = fuse_session_new(&args, &operations, sizeof(operations), NULL);
	mounted = session;
	if (session && !fuse_set_signal_handlers(session)) {
		ret = serve(session, directory);
		fuse_remove_signal_handlers(session);
	}
	if (session)
		fuse_session_destroy(session);
	fuse_opt_free_args(&args);
	return ret ? FAILED : DONE;
}

int main(int argc, char **argv)
{
	int ret = options_read(argc, argv);

	if (ret)
		return ret - 1;
	ret = endpoint_resolve(options.host, (uint16_t)options.port, &options.client.addr);
	if (ret) {
		fprintf(stderr, "warp-arfs: %s: %s\n", options.host, gai_strerror(ret));
		return USAGE;
	}
	options.keep = (double)options.keep_ms / 1000;
	options.client.spin_us = (unsigned int)options.spin_us;
	options.client.wait_ms = (unsigned int)options.wait_ms;
	ret = opens_init(&opens);
	if (!ret)
		ret = known_init(&known);
	return ret ? FAILED : mount_at(argv[optind]);
}
