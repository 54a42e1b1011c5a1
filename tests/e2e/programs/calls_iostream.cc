/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * std::cin and std::cout that are sockets, in step with stdio and not. To be run by itself and
 * under the launcher.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

static int connected_pair(int fd[2])
{
	sockaddr_in addr{};
	socklen_t len = sizeof(addr);
	int lfd = socket(AF_INET, SOCK_STREAM, 0);

	addr.sin_family = AF_INET;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(lfd, reinterpret_cast<sockaddr *>(&addr), len) || listen(lfd, 1) ||
	    getsockname(lfd, reinterpret_cast<sockaddr *>(&addr), &len))
		return -1;
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd[0], reinterpret_cast<sockaddr *>(&addr), len))
		return -1;
	fd[1] = accept(lfd, nullptr, nullptr);
	return close(lfd);
}

/* The child's part: a word, a line, the rest */
[[noreturn]] static void child(int fd, bool in_step)
{
	std::string word, line, rest;

	/* What they do first, they do with the file of before */
	std::cout << "to nowhere" << std::flush;
	dup2(fd, 0);
	dup2(fd, 1);
	dup2(fd, 2);
	close(fd);
	if (!in_step)
		std::ios::sync_with_stdio(false);
	std::cin >> word;
	std::getline(std::cin, line);
	std::cout << word << '|' << line << '|';
	if (in_step)
		printf("printf|");
	while (std::getline(std::cin, line))
		rest += line;
	std::cout << rest.size() << std::endl;
	std::cerr << "err";
	exit(0);
}

static bool talk(bool in_step)
{
	const std::string wanted = std::string("one| two three|") + (in_step ? "printf|" : "") +
				   "50000\nerr";
	std::string text = "one two three\n" + std::string(50000, 'r') + "\n", answer;
	char buf[1000];
	int fd[2], status;
	ssize_t n;

	if (connected_pair(fd))
		return false;
	fflush(nullptr);
	if (!fork()) {
		close(fd[1]);
		if (!freopen("/dev/null", "w", stdout))
			_exit(1);
		child(fd[0], in_step);
	}
	close(fd[0]);
	for (size_t sum = 0; sum < text.size(); sum += static_cast<size_t>(n))
		if ((n = write(fd[1], text.data() + sum, text.size() - sum)) <= 0)
			return false;
	shutdown(fd[1], SHUT_WR);
	while ((n = read(fd[1], buf, sizeof(buf))) > 0)
		answer.append(buf, static_cast<size_t>(n));
	close(fd[1]);
	wait(&status);
	if (n || status || answer != wanted)
		printf("# got \"%s\", %zd, status %d\n", answer.c_str(), n, status);
	return !n && !status && answer == wanted;
}

int main()
{
	int failed = 0;

	for (int i = 0; i < 2; i++) {
		bool good = talk(i == 0);

		printf("%sok %d - cin and cout, %s step with stdio\n", good ? "" : "not ", i + 1,
		       i ? "out of" : "in");
		failed += !good;
	}
	printf("1..2\n");
	return failed != 0;
}
