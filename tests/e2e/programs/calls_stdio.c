/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets by way of stdio: FILEs over them, dprintf, and standard streams that are sockets. To be
 * run by itself and under the launcher, as calls.c. Results go to a duplicate of standard output.
 */
#include "tests/e2e/programs/calls.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

static char text[300000];
/* Each byte of an unbuffered FILE is a message, and a look takes a thousand of them at most */
#define LOOK_EACH 500

/* What comes until @len octets are there */
static bool got(int fd, const char *wanted, size_t len)
{
	size_t sum = 0;

	while (sum < len) {
		ssize_t n = read(fd, text + sum, len - sum);

		need(n > 0);
		sum += (size_t)n;
	}
	need(!memcmp(text, wanted, len));
	return true;
}

#define got_text(fd, wanted) got(fd, wanted, strlen(wanted))

static bool reading(void)
{
	char line[100], *more = NULL;
	size_t room = 0;
	int fd[2], number;
	FILE *file;

	need(pair(fd));
	file = fdopen(fd[0], "r");
	need(file && fileno(file) == fd[0] && fileno_unlocked(file) == fd[0]);
	need(write(fd[1], "one\ntwo 22\nthree\nfour", 21) == 21);
	need(fgets(line, sizeof(line), file) && !strcmp(line, "one\n"));
	need(fscanf(file, "two %d\n", &number) == 1 && number == 22);
	need(getc(file) == 't' && ungetc('T', file) == 'T');
	need(getline(&more, &room, file) == 6 && !strcmp(more, "Three\n"));
	free(more);
	need(fread(line, 1, 4, file) == 4 && !memcmp(line, "four", 4) && !feof(file));
	need(fseek(file, 0, SEEK_SET) < 0 && errno == ESPIPE);
	need(!shutdown(fd[1], SHUT_WR) && getc(file) == EOF && feof(file) && !ferror(file));
	need(!fclose(file) && fcntl(fd[0], F_GETFD) < 0 && errno == EBADF);
	need(read(fd[1], line, 1) == 0);
	close(fd[1]);
	return true;
}

static bool writing(void)
{
	int fd[2];
	FILE *file;

	need(pair(fd));
	file = fdopen(fd[0], "w");
	need(file && fprintf(file, "%d %s\n", 7, "seven") == 8);
	need(!ready(fd[1], POLLIN, 20));
	need(!fflush(file) && got_text(fd[1], "7 seven\n"));
	need(!setvbuf(file, NULL, _IOLBF, 0) && fputs("line\nrest", file) >= 0);
	need(got_text(fd[1], "line\n"));
	need(!setvbuf(file, NULL, _IONBF, 0) && putc('x', file) == 'x');
	need(got_text(fd[1], "restx"));
	for (size_t i = 0; i < sizeof(text); i++)
		need(fputc((char)(i * 7), file) != EOF &&
		     (i % LOOK_EACH || ready(fd[1], 0, 0) == 0));
	need(!fclose(file));
	for (size_t sum = 0; sum < sizeof(text);) {
		char piece[1000];
		ssize_t n = read(fd[1], piece, sizeof(piece));

		need(n > 0);
		for (ssize_t i = 0; i < n; i++, sum++)
			need(piece[i] == (char)(sum * 7));
	}
	need(read(fd[1], text, 1) == 0);
	close(fd[1]);
	return true;
}

static bool both_ways(void)
{
	char line[100];
	int fd[2];
	FILE *file;

	need(pair(fd));
	file = fdopen(fd[0], "r+");
	need(file && write(fd[1], "ask\n", 4) == 4);
	need(fgets(line, sizeof(line), file) && !strcmp(line, "ask\n"));
	need(fprintf(file, "answer\n") == 7 && !fflush(file) && got_text(fd[1], "answer\n"));
	need(write(fd[1], "again\n", 6) == 6);
	need(fgets(line, sizeof(line), file) && !strcmp(line, "again\n"));
	need(!fclose(file));
	need(!fdopen(fd[1], "q") && errno == EINVAL);
	close(fd[1]);
	return true;
}

static bool errors(void)
{
	int fd[2];
	FILE *file;

	need(pair(fd) && nonblock(fd[0]));
	file = fdopen(fd[0], "r+");
	need(getc(file) == EOF && ferror(file) && !feof(file) && errno == EAGAIN);
	clearerr(file);
	need(write(fd[1], "x", 1) == 1 && ready(fd[0], POLLIN, 5000) && getc(file) == 'x');
	need(!shutdown(fd[0], SHUT_WR));
	signals = 0;
	need(fputs("late", file) >= 0 && fflush(file) == EOF && errno == EPIPE && signals == 1);
	clearerr(file);
	fclose(file);
	close(fd[1]);
	return true;
}

static bool formatted(void)
{
	char *long_one = text + 100000;
	int fd[2];

	need(pair(fd));
	need(dprintf(fd[0], "%s-%05d\n", "n", 42) == 8 && got_text(fd[1], "n-00042\n"));
	memset(long_one, 'l', 50000);
	long_one[50000] = '\0';
	need(dprintf(fd[0], "%s%c", long_one, '.') == 50001);
	need(got(fd[1], long_one, 50000) && got_text(fd[1], "."));
	close(fd[1]);
	close(fd[0]);
	need(dprintf(fd[0], "x") < 0 && errno == EBADF);
	return true;
}

extern int __fprintf_chk(FILE *file, int flag, const char *format, ...);
extern int __vfprintf_chk(FILE *file, int flag, const char *format, va_list args);
extern int __dprintf_chk(int fd, int flag, const char *format, ...);
extern int __vdprintf_chk(int fd, int flag, const char *format, va_list args);
extern char *__fgets_chk(char *line, size_t size, int room, FILE *file);
extern char *__fgets_unlocked_chk(char *line, size_t size, int room, FILE *file);
extern size_t __fread_chk(void *buf, size_t room, size_t size, size_t n, FILE *file);
extern size_t __fread_unlocked_chk(void *buf, size_t room, size_t size, size_t n, FILE *file);

/* @form: which of them */
static int listed(int form, int fd, FILE *file, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = form == 0	? vdprintf(fd, format, args)
	    : form == 1 ? __vdprintf_chk(fd, 1, format, args)
	    : form == 2 ? vfprintf(file, format, args)
			: __vfprintf_chk(file, 1, format, args);
	va_end(args);
	return n;
}

static bool other_forms(void)
{
	char line[100];
	int fd[2];
	FILE *file;

	need(pair(fd));
	file = fdopen(fd[0], "r+");
	for (int form = 0; form < 4; form++) {
		need(listed(form, fd[0], file, "%d %s\n", form, "x") == 4 && !fflush(file));
		need(got(fd[1], (char[]){ (char)('0' + form), ' ', 'x', '\n' }, 4));
	}
	need(__dprintf_chk(fd[0], 1, "%d\n", 5) == 2 && got_text(fd[1], "5\n"));
	need(__fprintf_chk(file, 1, "%d\n", 6) == 2 && !fflush(file) && got_text(fd[1], "6\n"));
	need(write(fd[1], "one\ntwo\nabcdef", 14) == 14);
	need(__fgets_chk(line, sizeof(line), 50, file) && !strcmp(line, "one\n"));
	need(__fgets_unlocked_chk(line, sizeof(line), 50, file) && !strcmp(line, "two\n"));
	need(__fread_chk(line, sizeof(line), 1, 3, file) == 3 && !memcmp(line, "abc", 3));
	need(__fread_unlocked_chk(line, sizeof(line), 1, 3, file) == 3 && !memcmp(line, "def", 3));
	fclose(file);
	close(fd[1]);
	return true;
}

static bool another_file(void)
{
	char path[] = "/tmp/calls_stdio_XXXXXX", c;
	int fd[2], tmp = mkstemp(path);
	FILE *file;

	need(tmp >= 0 && pair(fd));
	file = fdopen(fd[0], "w");
	need(fputs("last", file) >= 0);
	file = freopen(path, "w", file);
	need(file && fileno(file) == fd[0] && got_text(fd[1], "last"));
	need(read(fd[1], &c, 1) == 0);
	need(fputs("to the file", file) >= 0 && !fflush(file));
	need(write(fd[0], "!", 1) == 1 && !fclose(file));
	need(read(tmp, text, 100) == 12 && !memcmp(text, "to the file!", 12));
	close(tmp);
	close(fd[1]);
	need(!unlink(path) && pair(fd));
	file = fdopen(fd[0], "w");
	need(!freopen(NULL, "r", file) && read(fd[1], &c, 1) == 0);
	close(fd[1]);
	return true;
}

/* --- standard streams; in a child, for they are the program's to spoil --- */

static bool run_in_child(bool (*run)(int fd), int fd[2])
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		close(fd[1]);
		exit(run(fd[0]) ? 0 : 1);
	}
	close(fd[0]);
	need(pid > 0);
	return true;
}

static bool child_good(void)
{
	int status;

	need(wait(&status) > 0 && WIFEXITED(status) && !WEXITSTATUS(status));
	return true;
}

static bool filter(int fd)
{
	char line[100], *more = NULL;
	size_t room = 0;

	printf("before");
	if (dup2(fd, 0) || dup2(fd, 1) != 1 || dup2(fd, 2) != 2 || close(fd))
		return false;
	if (fileno(stdin) || fileno(stdout) != 1 || fileno(stderr) != 2)
		return false;
	if (!fgets(line, sizeof(line), stdin) || getline(&more, &room, stdin) != 7)
		return false;
	printf(" <%.3s>", line);
	fputs(more, stdout);
	fflush(stdout);
	errno = ENOENT;
	perror("say");
	fprintf(stderr, "%d", getchar());
	puts("end");
	free(more);
	return true; /* what is left leaves at exit */
}

static bool standard_streams(void)
{
	int fd[2];
	char c;

	need(pair(fd) && run_in_child(filter, fd));
	need(write(fd[1], "abc\nsecond\nA", 12) == 12);
	need(got_text(fd[1], "before <abc>second\nsay: No such file or directory\n65end\n"));
	need(read(fd[1], &c, 1) == 0);
	close(fd[1]);
	return child_good();
}

/* As inetd's children do: the socket on all three, then another file in the place of each */
static bool leave_again(int fd)
{
	int out = dup(1);

	if (dup2(fd, 1) != 1 || close(fd))
		return false;
	printf("to the socket\n");
	fflush(stdout);
	if (dup2(out, 1) != 1 || fileno(stdout) != 1)
		return false;
	printf("# to the output of before\n");
	return !fclose(stdout);
}

static bool there_and_back(void)
{
	int fd[2];
	char c;

	need(pair(fd) && run_in_child(leave_again, fd));
	need(got_text(fd[1], "to the socket\n") && read(fd[1], &c, 1) == 0);
	close(fd[1]);
	return child_good();
}

static bool to_null(int fd)
{
	if (dup2(fd, 1) != 1 || close(fd))
		return false;
	printf("first");
	if (!freopen("/dev/null", "w", stdout) || fileno(stdout) != 1)
		return false;
	return printf("second") == 6;
}

static bool reopened(void)
{
	int fd[2];
	char c;

	need(pair(fd) && run_in_child(to_null, fd));
	need(got_text(fd[1], "first") && read(fd[1], &c, 1) == 0);
	close(fd[1]);
	return child_good();
}

/* Programs keep what stdout was when they began */
static bool by_copies(int fd)
{
	FILE *in = stdin, *out = stdout;
	char line[100], *more = NULL;
	size_t room = 0;

	if (dup2(fd, 0) || dup2(fd, 1) != 1 || close(fd))
		return false;
	if (fileno(in) || !fgets(line, sizeof(line), in) || getline(&more, &room, in) != 2)
		return false;
	if (ungetc(getc(in), in) != 'x' || fgetc(in) != 'x' || fread(line + 50, 1, 1, in) != 1)
		return false;
	fprintf(out, "%s%s", line, more);
	fputs("+", out);
	fputc(line[50], out);
	fwrite(line, 1, 1, out);
	free(more);
	return !fclose(out);
}

static bool copies(void)
{
	int fd[2];
	char c;

	need(pair(fd) && run_in_child(by_copies, fd));
	need(write(fd[1], "a\nb\nxy", 6) == 6);
	need(got_text(fd[1], "a\nb\n+ya") && read(fd[1], &c, 1) == 0);
	close(fd[1]);
	return child_good();
}

static bool closed(int fd)
{
	if (dup2(fd, 1) != 1 || close(fd))
		return false;
	printf("by fclose");
	return !fclose(stdout);
}

static bool standard_closed(void)
{
	int fd[2];
	char c;

	need(pair(fd) && run_in_child(closed, fd));
	need(got_text(fd[1], "by fclose") && read(fd[1], &c, 1) == 0);
	close(fd[1]);
	return child_good();
}

static bool accept_on_0(int fd)
{
	char line[100];

	close(0);
	if (accept(lfd, NULL, NULL) || !fgets(line, sizeof(line), stdin))
		return false;
	return dprintf(0, "got %s", line) > 0 && write(fd, "k", 1) == 1;
}

static bool low_number(void)
{
	int fd[2], client = socket(AF_INET, SOCK_STREAM, 0);
	char c;

	need(pair(fd) && run_in_child(accept_on_0, fd));
	need(!connect(client, (struct sockaddr *)&laddr, sizeof(laddr)));
	need(write(client, "hello\n", 6) == 6 && got_text(client, "got hello\n"));
	need(read(fd[1], &c, 1) == 1 && c == 'k');
	close(client);
	close(fd[1]);
	return child_good();
}

/* A handler that opens and closes a FILE, while exit() waits for room for what is in another */
static int spare;

static void on_alarm(int number)
{
	FILE *file = fdopen(dup(spare), "r+");

	if (file && !fclose(file))
		signals++;
	if (signals == 1)
		write(spare, "k", 1);
}

static bool fills(int fd)
{
	struct itimerval soon = { .it_value.tv_usec = 100000 };
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	FILE *file = fdopen(fd, "w");
	static char room[2 * sizeof(text)];

	signals = 0;
	need(file && !setvbuf(file, room, _IOFBF, sizeof(room)));
	need(stuff(fd) > 0 && fwrite(text, 1, sizeof(text), file) == sizeof(text));
	need(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &soon, NULL));
	return true;
}

static bool handler_at_exit(void)
{
	int fd[2], other[2], status = -1;
	char c;
	pid_t pid;

	need(pair(fd) && pair(other));
	pid = fork();
	if (!pid) {
		spare = other[0];
		exit(fills(fd[0]) ? 0 : 1);
	}
	close(fd[0]);
	need(ready(other[1], POLLIN, 20000) && read(other[1], &c, 1) == 1 && c == 'k');
	while (read(fd[1], text, sizeof(text)) > 0)
		;
	need(waitpid(pid, &status, 0) == pid && !status);
	close(fd[1]);
	done(other);
	return true;
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "a FILE to read from", reading },
		{ "a FILE to write to, and its buffers", writing },
		{ "a FILE for both", both_ways },
		{ "errors and the end", errors },
		{ "dprintf", formatted },
		{ "forms with a list of arguments, and fortified ones", other_forms },
		{ "freopen", another_file },
		{ "stdin, stdout and stderr", standard_streams },
		{ "stdout becomes a socket and a file again", there_and_back },
		{ "freopen of stdout", reopened },
		{ "fclose of stdout", standard_closed },
		{ "stdin and stdout of before", copies },
		{ "accept gives 0", low_number },
		{ "a handler that opens a FILE at exit", handler_at_exit },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
