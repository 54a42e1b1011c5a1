/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_WALK_H
#define APPS_ARFS_WALK_H

/*
 * A walk through a tree of ARFS, for warp-grep, warp-find, warp-sum and warp-top: what the client
 * gives, and what comes back. The program is walk.bpf.c and functions that the client makes of its
 * pattern, condition or expression.
 */

#include "layout.h"

enum {
	WALK_DEPTH = 48,
	WALK_PATH = 4096,
	WALK_SCRATCH = 8192,	/* the longest line that may lie in two places of the store */
	WALK_LINE = 4000,	/* bytes of a line that are given */
	WALK_BYTES = 256 << 20, /* of files, in one run */
	WALK_JUDGE = 100,	/* number of the helper that the made function takes the place of */
	WALK_LINES = 101,	/* the same for lines */
	WALK_VALUE = 102,	/* the same for a value */
	WALK_RECORD_MAX = 4096,
	WALK_TOP_MAX = 100,
};

/* What conditions of warp-find are about: an inode's beginning, and a name */
#define WALK_LAYOUT                                                               \
	"u32 mode; u32 nlink; u32 uid; u32 gid; u64 size; u64 atime; u64 mtime; " \
	"u64 ctime; text[256] name"

struct walk_record {
	uint32_t mode, nlink, uid, gid;
	uint64_t size, atime, mtime, ctime;
	char name[256];
};

/* A directory that is walked through, and the offset of its next entry */
struct walk_level {
	uint32_t inode, path_len;
	uint64_t offset;
};

/* What the walk does with a file */
enum walk_mode {
	WALK_FILES,	   /* tells those that are wanted */
	WALK_TEXT,	   /* searches its lines */
	WALK_FOLD_FILES,   /* its own record goes into the fold; */
	WALK_FOLD_RECORDS, /* those that it has go there */
};

/* What became of the values so far. Those in it are biased: unsigned numbers in the same order */
struct walk_fold {
	uint64_t bias; /* 2^63 for signed values */
	uint64_t count, sum, least, greatest;
	uint32_t top, used;	      /* top: how many are wanted, or 0 for the sums above */
	uint64_t table[WALK_TOP_MAX]; /* the greatest so far, the least of them first */
};

/* Where a walk is: it goes on from there in another run */
struct walk_state {
	uint32_t depth, pad;
	uint64_t file_offset; /* where to go on in the file that comes next */
	struct walk_level level[WALK_DEPTH];
	char path[WALK_PATH];
	struct walk_fold fold;
};

/* Arguments; the program uses what stands behind the state as its memory */
struct walk_args {
	uint64_t room; /* for output */
	uint32_t mode, locked;
	uint32_t only; /* of the first directory this inode alone, or 0 */
	uint32_t record_size;
	struct walk_state state;
	uint64_t used, bytes;
	/* Of the file: its path was given or not; the beginning of a line that is in the scratch */
	uint32_t path_len, told;
	uint64_t size, held, held_at;
	struct walk_record record;
	char scratch[WALK_SCRATCH];
};

enum walk_kind { WALK_PATH_HIT, WALK_LINE_HIT, WALK_STATE, WALK_ROW_HIT };

/* What is found; its bytes stand behind it, and the next one at a multiple of 8 */
struct walk_hit {
	uint32_t kind, len;
	uint64_t offset; /* of a line or record */
};

/* Of a record whose value is among the greatest so far; its path and its bytes stand behind it */
struct walk_row {
	uint64_t value;
	uint32_t path_len, record_len;
};

_Static_assert(sizeof(struct walk_args) <= 16384, "arguments of a run");

#endif
