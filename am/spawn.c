/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Starting the workers of a job: on this machine, by ssh, or by a command of the user's.
 *
 * Remote workers get their variables on the command line, through ENV_CMD; every word is quoted
 * for the remote shell. Every user of a machine can read command lines, so the job's secret goes
 * another way: by ssh's standard input, in the environment of the command, or in a file of this
 * user's alone, of which the command line has the name.
 */
#include "am/spawn.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "am/env.h"
#include "am/job_wire.h"
#include "base/bits.h"

#define COMMAND_MAX (128 * 1024)
#define SERVERS_MAX 4096

const amudp_spawnfn_desc_t AMUDP_Spawnfn_Desc[] = {
	{ 'S', "start workers by ssh on the machines of SSH_SERVERS", AMUDP_SPMDSshSpawn },
	{ 'L', "start workers on this machine", AMUDP_SPMDLocalSpawn },
	{ 'C', "start workers by the command CSPAWN_CMD", AMUDP_SPMDCustomSpawn },
	{ 0, NULL, NULL },
};

amudp_spawnfn_t am_spawn_find(char letter)
{
	const amudp_spawnfn_desc_t *d;

	for (d = AMUDP_Spawnfn_Desc; d->abbrev; d++) {
		if (toupper((unsigned char)letter) == d->abbrev)
			return d->fnptr;
	}
	return NULL;
}

/* --- what has been started, until all workers have come --- */

static pid_t *started;
static int num_started, room_started;

/* Where there is no memory for its number it is not ended by us. */
static void started_add(pid_t pid)
{
	int room = base_max(2 * room_started, 64);
	pid_t *p = num_started < room_started ? started : realloc(started, room * sizeof(*p));

	if (!p)
		return;
	room_started = num_started < room_started ? room_started : room;
	started = p;
	started[num_started++] = pid;
}

bool am_spawn_started(pid_t pid)
{
	int i;

	for (i = 0; i < num_started; i++) {
		if (started[i] == pid)
			return true;
	}
	return num_started == 0;
}

void am_spawn_cancel(void)
{
	int i;

	for (i = 0; i < num_started; i++) {
		/* a number that is not a child's any more is another's */
		if (waitpid(started[i], NULL, WNOHANG) == 0)
			kill(started[i], SIGTERM);
	}
}

int AMUDP_SPMDLocalSpawn(int nproc, int argc, char **argv, char **extra_env)
{
	char rank[16];
	pid_t pid;
	int i, j;

	fflush(NULL);
	for (i = 0; i < nproc; i++) {
		pid = fork();
		if (pid < 0) {
			fprintf(stderr, "cannot start worker %d of %d: %s\n", i + 1, nproc,
				strerror(errno));
			return 0;
		}
		if (pid > 0) {
			started_add(pid);
			continue;
		}
		for (j = 0; extra_env[j]; j++)
			putenv(extra_env[j]);
		snprintf(rank, sizeof(rank), "%d", i);
		setenv(AM_JOB_ENV_RANK, rank, 1);
		execvp(argv[0], argv);
		fprintf(stderr, "cannot run %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	return 1;
}

struct command {
	char text[COMMAND_MAX];
	size_t used;
	int full;
};

static void add(struct command *c, const char *s)
{
	size_t n = strlen(s);

	if (c->used + n >= sizeof(c->text)) {
		c->full = 1;
		return;
	}
	memcpy(c->text + c->used, s, n + 1);
	c->used += n;
}

static void add_char(struct command *c, char ch)
{
	char s[2] = { ch, 0 };

	add(c, s);
}

/* One word for a shell, whatever is in it. */
static void add_quoted(struct command *c, const char *word)
{
	add(c, "'");
	for (; *word; word++) {
		if (*word == '\'')
			add(c, "'\\''");
		else
			add_char(c, *word);
	}
	add(c, "'");
}

static bool is_secret(const char *variable)
{
	return !strncmp(variable, AM_JOB_ENV_SECRET "=", sizeof(AM_JOB_ENV_SECRET));
}

/* NULL: the workers of a spawn function of the program's own need none. */
static char *secret_find(char **extra_env)
{
	while (*extra_env && !is_secret(*extra_env))
		extra_env++;
	return *extra_env;
}

/* --- the file of the secret --- */

static char secret_path[512];

void am_spawn_end(void)
{
	if (secret_path[0])
		unlink(secret_path);
	secret_path[0] = '\0';
}

static const char *secret_directory(void)
{
	const char *path = am_env_get("SECRET_DIRECTORY");

	if (!path || *path != '/')
		path = getenv("XDG_RUNTIME_DIR");
	return path && *path == '/' ? path : "/tmp";
}

/* mkostemp() gives the file to its user alone */
static bool secret_file_make(const char *secret)
{
	int fd, n = snprintf(secret_path, sizeof(secret_path), "%s/amudp-secret-XXXXXX",
			     secret_directory());
	size_t len = strlen(secret);

	fd = (size_t)n < sizeof(secret_path) ? mkostemp(secret_path, O_CLOEXEC) : -1;
	if (fd < 0) {
		fprintf(stderr, "no file for the job's secret in %s: %s\n", secret_directory(),
			strerror(errno));
		secret_path[0] = '\0';
		return false;
	}
	if (write(fd, secret, len) != (ssize_t)len || write(fd, "\n", 1) != 1) {
		fprintf(stderr, "%s: %s\n", secret_path, strerror(errno));
		am_spawn_end();
	}
	close(fd);
	return secret_path[0];
}

/* What stands for the secret on a command line; NULL: there is no file for it. */
static const char *secret_stand_in(char **extra_env)
{
	static char word[sizeof(AM_JOB_ENV_SECRET) + sizeof(secret_path)];
	const char *secret = secret_find(extra_env);

	if (!secret)
		return "";
	if (!secret_path[0] && !secret_file_make(strchr(secret, '=') + 1))
		return NULL;
	snprintf(word, sizeof(word), "%s=%s", AM_JOB_ENV_SECRET, secret_path);
	return word;
}

/* --- commands --- */

/* ENV_CMD VARIABLE=... PROGRAM ARGUMENTS, for a shell; @secret stands for the job's variable */
static void add_worker(struct command *c, char **argv, char **extra_env, const char *secret)
{
	const char *env = am_env_get("ENV_CMD");
	int i;

	add(c, env && *env ? env : "env");
	for (i = 0; extra_env[i]; i++) {
		const char *word = is_secret(extra_env[i]) ? secret : extra_env[i];

		if (!*word)
			continue;
		add(c, " ");
		add_quoted(c, word);
	}
	for (i = 0; argv[i]; i++) {
		add(c, " ");
		add_quoted(c, argv[i]);
	}
}

static void add_directory(struct command *c, const char *name)
{
	const char *path = am_env_get(name);
	char here[4096];

	if (!path || !*path)
		path = getcwd(here, sizeof(here));
	if (path)
		add_quoted(c, path);
}

/* A descriptor that gives this line, and its end behind it; -1: none to be had. */
static int line_open(const char *text)
{
	int fds[2], n = (int)strlen(text);

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	if (write(fds[1], text, (size_t)n) != n || write(fds[1], "\n", 1) != 1) {
		close(fds[0]);
		fds[0] = -1;
	}
	close(fds[1]);
	return fds[0];
}

/* The secret goes by standard input where that is asked for, else in the environment. */
static void __attribute__((noreturn))
shell_become(const struct command *c, char *secret, bool by_input)
{
	int fd = by_input ? line_open(secret ? strchr(secret, '=') + 1 : "") : -1;

	if (by_input && fd < 0)
		_exit(127);
	if (by_input)
		dup2(fd, STDIN_FILENO);
	else if (secret)
		putenv(secret);
	execl("/bin/sh", "sh", "-c", c->text, (char *)NULL);
	_exit(127);
}

static int shell_start(const struct command *c, char *secret, bool by_input)
{
	pid_t pid;

	if (c->full) {
		fprintf(stderr, "the command that starts the workers is too long\n");
		return 0;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		shell_become(c, secret, by_input);
	if (pid < 0)
		fprintf(stderr, "cannot start a shell: %s\n", strerror(errno));
	else
		started_add(pid);
	return pid > 0;
}

/* The words of a list of machines, separated by blanks or commas; returns how many. */
static int servers_split(char *list, char **out, int max)
{
	char *save, *word;
	int n = 0;

	for (word = strtok_r(list, " ,\t\n", &save); word && n < max;
	     word = strtok_r(NULL, " ,\t\n", &save))
		out[n++] = word;
	return n;
}

static int ssh_start(const char *server, char **argv, char **extra_env)
{
	const char *ssh = am_env_get("SSH_CMD"), *options = am_env_get("SSH_OPTIONS");
	static struct command remote, local;

	remote.used = local.used = 0;
	remote.full = local.full = 0;
	add(&remote, "cd ");
	add_directory(&remote, "SSH_REMOTE_PATH");
	add(&remote, " && exec ");
	add_worker(&remote, argv, extra_env, AM_JOB_ENV_SECRET "=" AM_JOB_BY_INPUT);
	add(&local, "exec ");
	add(&local, ssh && *ssh ? ssh : "ssh");
	add(&local, " ");
	add(&local, options ? options : "");
	add(&local, " ");
	add_quoted(&local, server);
	add(&local, " ");
	add_quoted(&local, remote.text);
	local.full |= remote.full;
	return shell_start(&local, secret_find(extra_env), true);
}

int AMUDP_SPMDSshSpawn(int nproc, int argc, char **argv, char **extra_env)
{
	const char *list = am_env_get("SSH_SERVERS");
	char *servers[SERVERS_MAX], *copy;
	char spelled[AM_ENV_NAME_MAX];
	int i, n, ok = 1;

	snprintf(spelled, sizeof(spelled), "%s", am_env_name("SPAWNFN"));
	if (!list || !*list) {
		fprintf(stderr,
			"%s names no machine to start workers on; letter L, amudprun "
			"-spawn L, or %s=L starts them on this machine\n",
			am_env_name("SSH_SERVERS"), spelled);
		return 0;
	}
	copy = strdup(list);
	n = copy ? servers_split(copy, servers, SERVERS_MAX) : 0;
	if (n == 0)
		ok = 0;
	for (i = 0; i < nproc && ok; i++)
		ok = ssh_start(servers[i % n], argv, extra_env);
	free(copy);
	return ok;
}

/*
 * %N processes, %C worker command, %W the same without the secret's file, %D directory, %M
 * machines, %P program, %% a per cent sign
 */
static void add_expanded(struct command *c, const char *format, int nproc, char **argv,
			 char **extra_env, const char *stand_in)
{
	const char *servers = am_env_get("CSPAWN_SERVERS");
	char number[16];

	for (; *format; format++) {
		if (*format != '%' || !format[1]) {
			add_char(c, *format);
			continue;
		}
		switch (*++format) {
		case 'N':
			snprintf(number, sizeof(number), "%d", nproc);
			add(c, number);
			break;
		case 'C':
			add_worker(c, argv, extra_env, stand_in);
			break;
		case 'W':
			add_worker(c, argv, extra_env, "");
			break;
		case 'D':
			add_directory(c, "CSPAWN_DIRECTORY");
			break;
		case 'M':
			add(c, servers ? servers : "");
			break;
		case 'P':
			add_quoted(c, argv[0]);
			break;
		default:
			add_char(c, *format);
		}
	}
}

int AMUDP_SPMDCustomSpawn(int nproc, int argc, char **argv, char **extra_env)
{
	const char *format = am_env_get("CSPAWN_CMD"), *stand_in = "";
	static struct command c;

	if (!format || !*format) {
		fprintf(stderr, "%s is not set: it starts %%N workers of command %%C\n",
			am_env_name("CSPAWN_CMD"));
		return 0;
	}
	if (strstr(format, "%C"))
		stand_in = secret_stand_in(extra_env);
	if (!stand_in)
		return 0;
	add_expanded(&c, format, nproc, argv, extra_env, stand_in);
	return shell_start(&c, secret_find(extra_env), false);
}
