/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `warpsock check`: does a server speak DDP?
 *
 * The answer is that of a program under the interposer: the launcher executes itself with the
 * interposer loaded, and connects by socket calls in mode on. DDP_INFO then tells what the two ends
 * agreed on, or why they did not.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <warp/ddp.h>

#include "apps/warpsock/command.h"
#include "apps/warpsock/launcher.h"
#include "config/reason.h"

#define NOT_DDP 1
#define TIMEOUT "3s"
/* An answer that no descriptor tells of is looked for so often */
#define LOOK_MS 20

/* --- the launcher --- */

/* `check` again, under the interposer: the name of the program tells it which it is */
#define INNER "warpsock-check"

__attribute__((noreturn)) static void interpose(char **argv)
{
	static const char *const use[] = { "ddp client * *:*" };
	struct config_sources sources = { .use = use, .uses = 1, .file = "" };
	static struct config_rules rules;
	struct config_error err;

	if (config_rules_load(&rules, &sources, &err))
		launcher_die("%s", err.text);
	environment_rules(&rules);
	environment_put("WARPSOCK_LOG", "off");
	unsetenv("WARPSOCK_REPORT");
	environment_preload();
	argv[0] = (char *)INNER;
	execv("/proc/self/exe", argv);
	launcher_die("/proc/self/exe: %s", strerror(errno));
}

/* --- the connection --- */

struct probe {
	const char *target;
	int fd;
	int error; /* errno; 0 */
	double ms; /* that start-up took */
	struct ddp_info info;
};

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* getaddrinfo() takes any number, and its remainder */
static void port_check(const char *port)
{
	unsigned long number = strtoul(port, NULL, 10);

	if (!port[strspn(port, "0123456789")] && (!number || number > UINT16_MAX))
		launcher_die("expected a port from 1 to %u, got \"%s\"", UINT16_MAX, port);
}

/* HOST:PORT, [ADDRESS]:PORT; the list is the process's to the end */
static struct addrinfo *target_find(const char *target)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	const char *colon = strrchr(target, ':');
	char host[256];
	size_t n = colon ? (size_t)(colon - target) : 0;
	int err;

	if (n > 2 && target[0] == '[' && target[n - 1] == ']') {
		target++;
		n -= 2;
	} else if (n && memchr(target, ':', n)) {
		n = 0;
	}
	if (!n || n >= sizeof(host) || !colon[1])
		launcher_die("expected HOST:PORT or [ADDRESS]:PORT, got \"%s\"", target);
	port_check(colon + 1);
	snprintf(host, sizeof(host), "%.*s", (int)n, target);
	err = getaddrinfo(host, colon + 1, &hints, &found);
	if (err == EAI_SERVICE)
		launcher_die("no service is called \"%s\", and it is no port", colon + 1);
	if (err)
		launcher_die("%s: %s", host, gai_strerror(err));
	return found;
}

static void info_read(struct probe *p)
{
	socklen_t len = sizeof(p->info);

	if (getsockopt(p->fd, SOL_DDP, DDP_INFO, &p->info, &len))
		launcher_die("the interposer is not there: %s", strerror(errno));
}

static int error_take(int fd)
{
	socklen_t len = sizeof(int);
	int err = 0;

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	return err;
}

/* The peer's kernel has not answered yet */
static bool tcp_connects(int fd)
{
	struct tcp_info tcp = { .tcpi_state = 0 };
	socklen_t len = sizeof(tcp);

	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &tcp, &len) && tcp.tcpi_state == TCP_SYN_SENT;
}

/* TCP has the limit. Behind it start-up has the interposer's, and twice ours is for the worst */
static bool time_is_over(const struct probe *p, double begin, double limit)
{
	double took = now_ms() - begin;

	return took > 2 * limit || (took > limit && tcp_connects(p->fd));
}

/* Until start-up is over */
static void wait_started(struct probe *p, double begin, double limit)
{
	struct pollfd pfd = { .fd = p->fd, .events = POLLOUT };

	do {
		poll(&pfd, 1, LOOK_MS);
		p->error = error_take(p->fd);
		info_read(p);
	} while (!p->error && !p->info.connected && !time_is_over(p, begin, limit));
	if (p->error || p->info.connected)
		return;
	p->error = ETIMEDOUT;
	if (tcp_connects(p->fd))
		p->info.reason = CONFIG_REASON_UNREACHABLE;
}

/* True: there is no other address to be tried */
static bool probe_one(struct probe *p, const struct addrinfo *a, double limit)
{
	double begin = now_ms();

	p->fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		launcher_die("socket: %s", strerror(errno));
	p->error = connect(p->fd, a->ai_addr, a->ai_addrlen) ? errno : 0;
	if (p->error && p->error != EINPROGRESS)
		info_read(p);
	else
		wait_started(p, begin, limit);
	p->ms = now_ms() - begin;
	if (!p->error || p->info.reason != CONFIG_REASON_UNREACHABLE)
		return true;
	close(p->fd);
	return false;
}

/* --- what is told --- */

static void features_put(__u32 features)
{
	static const struct {
		__u32 bit;
		const char *name;
	} names[] = {
		{ DDP_FEATURE_ABORT, "aborts" },
		{ DDP_FEATURE_INLINE, "data within messages" },
		{ DDP_FEATURE_MESSAGES, "user messages" },
		{ DDP_FEATURE_ONESIDED, "one-sided operations" },
	};
	const char *comma = "";

	printf("    features:");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (features & names[i].bit) {
			printf("%s %s", comma, names[i].name);
			comma = ",";
		}
	puts(*comma ? "" : " none beyond the protocol of rsockets");
}

static void agreed_put(const struct probe *p)
{
	const struct ddp_info *i = &p->info;
	struct tcp_info tcp = { .tcpi_rtt = 0 };
	socklen_t len = sizeof(tcp);

	printf("%s speaks DDP\n", p->target);
	printf("    MPA revision %u, CRC %s, markers %s\n", i->mpa_rev, i->crc ? "on" : "off",
	       i->tx_markers || i->rx_markers ? "on" : "off");
	features_put(i->features);
	printf("    provider %s, ring %u KiB\n", i->provider, i->ring >> 10);
	printf("    start-up took %.2f ms", p->ms);
	if (!getsockopt(p->fd, IPPROTO_TCP, TCP_INFO, &tcp, &len) && tcp.tcpi_rtt)
		printf(", round trip of TCP %.2f ms", tcp.tcpi_rtt / 1e3);
	putchar('\n');
}

static void refusal_put(const struct probe *p)
{
	unsigned int reason = p->info.reason ? p->info.reason : config_reason_of_error(p->error);

	/* The error that programs get of a connection without DDP tells less than the code */
	if (reason == CONFIG_REASON_UNREACHABLE)
		printf("%s cannot be reached: %s\n", p->target, strerror(p->error));
	else
		printf("%s does not speak DDP\n", p->target);
	printf("    %s (%u): %s\n", config_reason_name(reason), reason, config_reason_text(reason));
	if (config_reason_advice(reason)[0])
		printf("    %s\n", config_reason_advice(reason));
}

static int probe_main(const char *target, double limit)
{
	struct probe p = { .target = target, .fd = -1 };

	for (struct addrinfo *a = target_find(target); a; a = a->ai_next)
		if (probe_one(&p, a, limit))
			break;
	if (p.error)
		refusal_put(&p);
	else
		agreed_put(&p);
	return p.error ? NOT_DDP : 0;
}

static void timeout_put(const char *timeout)
{
	static struct config_settings scratch;
	struct config_error err;

	if (config_settings_set(&scratch, CONFIG_START, timeout, CONFIG_ENVIRONMENT, &err))
		launcher_die("--timeout%s", strchr(err.text, ':'));
	environment_put(config_option_get(CONFIG_START)->name, timeout);
}

int check_main(int argc, char **argv)
{
	static struct config_settings settings;
	const char *timeout = TIMEOUT;

	while (command_next("check", argc, argv) != -1)
		timeout = optarg;
	if (optind != argc - 1)
		return command_wrong("check", "which HOST:PORT?");
	settings_load(&settings, NULL);
	timeout_put(timeout);
	if (!strstr(program_invocation_name, INNER))
		interpose(argv - 1);
	settings_load(&settings, NULL);
	return probe_main(argv[optind], (double)config_number(&settings, CONFIG_START) / 1e6);
}
