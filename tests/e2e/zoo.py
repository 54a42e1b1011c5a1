#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs of each kind, with and without a way in for the interposer, in both modes.

    zoo.py WARPSOCK

Each fetches a page of a plain server, or says a word: what cannot be interposed is refused in mode
on where it is the command itself, and the user is warned of it in mode auto and below a shell. It
then runs as it would without warpsock.
"""
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402
from launch import Stage  # noqa: E402

LIMIT = 120
# A client of few calls
SOURCE = r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static const char ask[] = "GET / HTTP/1.0\r\n\r\n";
	struct sockaddr_in to = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char page[4096];
	ssize_t n, sum = 0;

	to.sin_port = htons((unsigned short)atoi(argv[argc - 1]));
	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) || write(fd, ask, sizeof(ask) - 1) < 0)
		return 1;
	while ((n = read(fd, page, sizeof(page))) > 0) {
		fwrite(page, 1, (size_t)n, stdout);
		sum += n;
	}
	return sum == 0;
}
"""
GO = """
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	r, err := http.Get("http://127.0.0.1:" + os.Args[1] + "/")
	if err != nil {
		os.Exit(1)
	}
	page, _ := io.ReadAll(r.Body)
	fmt.Print(string(page))
}
"""
PAGE = b"the page\n"


class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_):
        pass


class Site(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """A client in mode on leaves with a reset."""


def serve():
    server = Site(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return str(server.server_address[1])


def compiled(stage, name, *command):
    path = stage.dir / name
    subprocess.run([*command, "-o", str(path), str(stage.dir / "client.c")], check=True,
                   timeout=LIMIT)
    return path


def of_go(stage, name, cgo):
    folder = stage.dir / f"{name}-source"
    folder.mkdir()
    (folder / "main.go").write_text(GO)
    (folder / "go.mod").write_text("module client\n")
    env = dict(os.environ, CGO_ENABLED=cgo, GOCACHE=str(stage.dir / "gocache"), HOME=str(stage.dir),
               GOFLAGS="-p=1", GOPROXY="off", GOTOOLCHAIN="local")
    subprocess.run(["go", "build", "-ldflags=-s -w", "-o", str(stage.dir / name), "."], cwd=folder,
                   env=env, check=True, timeout=4 * LIMIT)
    return stage.dir / name


def given_away(stage, mode):
    path = compiled(stage, f"mode{mode:o}", "cc")
    os.chown(path, 65534, 65534)
    path.chmod(mode)
    return path


def capable(stage):
    path = compiled(stage, "capable", "cc")
    subprocess.run(["setcap", "cap_net_bind_service+ep", str(path)], check=True, timeout=LIMIT)
    return path


def script(stage, name, interpreter):
    path = stage.dir / name
    path.write_text(f"#!{interpreter}\n")
    path.chmod(0o755)
    return path


class Zoo:
    def __init__(self, writer, stage, port):
        self.writer, self.stage, self.port = writer, stage, port
        self.user = self.counts = None

    def run(self, mode, command):
        user = {"user": self.user, "group": self.user} if self.user else {}
        report = self.stage.dir / "report.json"
        if self.user:
            shutil.chown(self.stage.dir, self.user, self.user)
        proc = subprocess.Popen([self.stage.warpsock, "run", "--all", "--mode", mode, "--report",
                                 str(report), "--", *command], stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.PIPE, cwd=self.stage.dir,
                                env=dict(os.environ, WARPSOCK_CONFIG="", WARPSOCK_START="300ms"),
                                **user)
        done = subprocess.CompletedProcess(proc.args, None, *proc.communicate(timeout=LIMIT))
        done.returncode = proc.returncode
        self.counts = Path(f"/dev/shm/warpsock-counts-{self.user or os.getuid()}-{proc.pid}")
        made = self.stage.report("report")
        report.unlink(missing_ok=True)
        return done, made

    def case(self, name, done, good):
        self.writer.case(name, [] if good else [f"status {done.returncode}", done.stdout,
                                                done.stderr])

    def closed(self, name, path, why):
        """It cannot be interposed."""
        path, told = str(path), rf"{re.escape(str(path))} {why}"
        done, made = self.run("on", [path, self.port])
        self.case(f"{name}: refused in mode on", done, done.returncode == 126 and not done.stdout
                  and re.search(rf"^warpsock: {told}: it cannot be interposed, and is not run in "
                                "mode on\n$", done.stderr) and not made)
        done, made = self.run("auto", [path, self.port])
        self.case(f"{name}: warned of in mode auto, and run", done, done.returncode == 0 and
                  "the page" in done.stdout and made and not any(made["connections"].values()) and
                  made["programs"]["not_interposed"] == 1 and
                  re.search(rf"^warpsock: {told}: .* its sockets stay on TCP\n$", done.stderr))
        self.case(f"{name}: leaves no file of counts", done, not self.counts.exists())
        for mode in ("on", "auto"):
            done, made = self.run(mode, ["sh", "-c", f"{path} {self.port}; true"])
            self.case(f"{name}: warned of below a shell, in mode {mode}", done,
                      "the page" in done.stdout and made and
                      made["programs"]["not_interposed"] == 1 and
                      re.search(rf"^warpsock\[\d+\] warn: {told}: its sockets stay on TCP\n$",
                                done.stderr))
        if not self.user:
            spawned = ["python3", "-c", "import os, sys; p = sys.argv[1:]; "
                       "sys.exit(os.waitpid(os.posix_spawn(p[0], p, os.environ), 0)[1])"]
            done, made = self.run("auto", [*spawned, path, self.port])
            self.case(f"{name}: warned of when it is spawned", done, "the page" in done.stdout and
                      done.returncode == 0 and re.search(rf"warn: {told}", done.stderr))

    def open(self, name, path):
        """It can be, and asks a plain server in vain in mode on."""
        path = str(path)
        done, made = self.run("on", [path, self.port])
        self.case(f"{name}: interposed in mode on", done, done.returncode != 0 and
                  "failed in mode on" in done.stderr and made and
                  not made["programs"]["not_interposed"])
        done, made = self.run("auto", [path, self.port])
        self.case(f"{name}: interposed in mode auto", done, "the page" in done.stdout and made and
                  made["connections"]["tcp"] == 1)


def many(zoo, path):
    """A line a second at most, and how many there were."""
    done, made = zoo.run("auto", ["sh", "-c", f"for i in 1 2 3 4 5 6 7 8 9 10 11 12; do {path} "
                                  f"{zoo.port}; done"])
    lines = done.stderr.count("its sockets stay on TCP")
    left = sum(map(int, re.findall(r"lines left out, of programs that cannot be interposed: (\d+)",
                                   done.stderr)))
    zoo.case("a script that starts many has not a line for each", done, 1 <= lines < 12 and made and
             made["programs"]["not_interposed"] == 12)
    zoo.case("and is told how many had none", done, lines + left == 12)


def rules(zoo, path):
    """What no rule is for is no matter."""
    done = subprocess.run([zoo.stage.warpsock, "run", "--use", "ddp * other *:*", "--", str(path),
                           zoo.port], capture_output=True, text=True, timeout=LIMIT,
                          env=dict(os.environ, WARPSOCK_CONFIG=""))
    zoo.case("a static program that no rule is for", done, done.returncode == 0 and not done.stderr)
    done = subprocess.run([zoo.stage.warpsock, "run", "--use", f"ddp * {path.name} *:*", "--", "sh",
                           "-c", f"{path} {zoo.port}; true"], capture_output=True, text=True,
                          timeout=LIMIT, env=dict(os.environ, WARPSOCK_CONFIG=""))
    zoo.case("one below a shell that a rule is for, and none for the shell", done,
             done.stderr.count("warn:") == 1)


def doctor(zoo, path, why):
    done = subprocess.run([zoo.stage.warpsock, "doctor", str(path)], capture_output=True, text=True,
                          timeout=LIMIT)
    zoo.case("doctor says why", done, done.returncode == 1 and
             re.search(rf"program {re.escape(str(path))}\n    ! it {why}: its sockets stay on "
                       "TCP\n", done.stdout))
    done = subprocess.run([zoo.stage.warpsock, "doctor", "sh"], capture_output=True, text=True,
                          timeout=LIMIT)
    zoo.case("doctor says that one can be", done, "program sh\n    can be interposed\n"
             in done.stdout)


MACHINE = "is for another kind of processor, or a 32-bit program"
MUSL = "is linked to musl, and not to glibc"
STATIC = "is linked statically"
GO_WHY = "is a Go program, which makes system calls without libc"
PRIVILEGED = r"gets other privileges when it is run \(setuid or setgid\)"
CAPABLE = r"gets other privileges when it is run \(file capabilities\)"


def narrow(zoo):
    """A 32-bit program, whose linker itself complains of a library of 64 bits."""
    name = "a 32-bit program"
    if not shutil.which("gcc") or os.uname().machine != "x86_64":
        zoo.writer.skip(name, "no 32-bit programs on this processor")
        return
    path = compiled(zoo.stage, "narrow", "gcc", "-m32")
    try:
        subprocess.run([path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT)
    except OSError:
        zoo.writer.skip(name, "no 32-bit programs on this kernel")
        return
    done, made = zoo.run("on", [str(path), zoo.port])
    zoo.case(f"{name}: refused in mode on", done, done.returncode == 126 and MACHINE in done.stderr)
    done, made = zoo.run("auto", [str(path), zoo.port])
    zoo.case(f"{name}: warned of in mode auto, and run", done, "the page" in done.stdout and
             f"{path} {MACHINE}" in done.stderr)


def cleared(zoo):
    """docs/limits.md says so: what the environment does not name is not loaded."""
    done, made = zoo.run("on", ["env", "-i", "grep", "-c", "warpsock-preload", "/proc/self/maps"])
    zoo.case("a program with an environment of its own is not under warpsock", done,
             done.stdout == "0\n")


def main():
    writer = tap.Writer()
    with Stage(sys.argv[1]) as stage:
        stage.dir.chmod(0o755)
        (stage.dir / "client.c").write_text(SOURCE)
        zoo = Zoo(writer, stage, serve())
        static = compiled(stage, "static", "cc", "-static")
        zoo.open("a program", compiled(stage, "dynamic", "cc"))
        zoo.open("a script of one", script(stage, "script", stage.dir / "dynamic"))
        zoo.closed("a static program", static, STATIC)
        zoo.closed("a static program at any address", compiled(stage, "pie", "cc", "-static-pie"),
                   STATIC)
        zoo.closed("a script of a static program", script(stage, "of-static", static), STATIC)
        zoo.closed("a program of musl", compiled(stage, "musl", "musl-gcc"), MUSL)
        zoo.closed("a static program of musl",
                   compiled(stage, "musl-static", "musl-gcc", "-static"), STATIC)
        zoo.closed("a Go program", of_go(stage, "go", "0"), GO_WHY)
        zoo.closed("a Go program that is linked to libc", of_go(stage, "cgo", "1"), GO_WHY)
        narrow(zoo)
        cleared(zoo)
        many(zoo, static)
        rules(zoo, static)
        doctor(zoo, static, STATIC)
        if os.getuid():
            writer.skip("a setuid program", "not root")
        else:
            zoo.closed("a setuid program", given_away(stage, 0o4755), PRIVILEGED)
            zoo.closed("a setgid program", given_away(stage, 0o2755), PRIVILEGED)
            zoo.open("root's program with capabilities", capable(stage))
            zoo.user = 65534
            zoo.closed("a program with capabilities", stage.dir / "capable", CAPABLE)
    writer.finish()


if __name__ == "__main__":
    main()
