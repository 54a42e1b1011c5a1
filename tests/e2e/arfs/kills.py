#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""kill -9 of ARFS's server, and of a client, while clients change files.

    kills.py WARP-ARFS-SERVER WARP-ARFS
"""
import os
import random
import signal
import subprocess
import sys
import threading
import time

from world import LONG, World, enter, tap, until

KILLS = 40 if LONG else 6


class Worker(threading.Thread):
    """Changes files in a folder, and notes what fsync() returned for."""

    def __init__(self, top, seed):
        super().__init__()
        self.top, self.dice = top, random.Random(seed)
        self.safe, self.errors, self.stop, self.rounds = {}, set(), False, 0

    def once(self):
        name = f"file {self.dice.randrange(30)}"
        path = os.path.join(self.top, name)
        self.safe.pop(name, None)  # from here on nobody knows
        data = self.dice.randbytes(self.dice.choice((10, 5000, 40000)))
        new = f"{self.top}/new {self.rounds}"
        fd = os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
        try:
            os.write(fd, data)
            if self.dice.random() < 0.5:
                os.rename(new, path)
                os.fsync(fd)
                self.safe[name] = data
            else:
                os.unlink(new)
        finally:
            os.close(fd)

    def run(self):
        while not self.stop:
            self.rounds += 1
            try:
                self.once()
            except OSError as error:
                self.errors.add(error.strerror)

    def lost(self):
        found = []
        for name, data in self.safe.items():
            try:
                with open(os.path.join(self.top, name), "rb") as file:
                    same = file.read() == data
            except OSError as error:
                same = False
                name += f": {error.strerror}"
            found += [] if same else [f"{name} is not what fsync() returned for"]
        return found


def servers_death(writer, world, tops):
    dice, problems, worked = random.Random(5), [], 0
    for i in range(KILLS):
        workers = [Worker(top, i * 10 + k) for k, top in enumerate(tops)]
        for worker in workers:
            worker.start()
        time.sleep(0.2 + dice.random() * 0.3)
        world.server.process.kill()
        world.server.wait()
        problems += world.check()
        world.serve()
        before = [worker.rounds for worker in workers]
        if not until(lambda: all(w.rounds > b + 3 for w, b in zip(workers, before)), 10):
            problems.append(f"kill {i}: clients do not go on: {before}")
        for worker in workers:
            worker.stop = True
            worker.join(30)
        for worker in workers:
            problems += worker.lost()
            worked += worker.rounds
            if worker.errors - {"Input/output error"}:
                problems.append(f"kill {i}: {worker.errors}")
    writer.case(f"kill -9 of the server, {KILLS} times", problems[:9])
    writer.case("clients worked meanwhile", [] if worked > KILLS * 10 else [f"{worked} rounds"])


def clients_death(writer, world, top):
    """The other client goes on, and the store is whole."""
    problems = []
    for i in range(KILLS):
        victim = world.mount(f"victim {i}")
        survivor = Worker(top, i)
        survivor.start()
        script = (f"cd '{victim}'; exec 3> open; rm open; "
                  "while mkdir x && echo a > x/y && mv x/y x/z && rm -r x; do :; done")
        shell = subprocess.Popen(["sh", "-c", script], stderr=subprocess.DEVNULL)
        time.sleep(0.3)
        world.clients[f"victim {i}"].send_signal(signal.SIGKILL)
        before = survivor.rounds
        if not until(lambda: survivor.rounds > before + 20, 10):
            problems.append(f"kill {i}: the other client does not go on")
        survivor.stop = True
        survivor.join(30)
        shell.kill()
        shell.wait()
        world.unmount(f"victim {i}")
        problems += survivor.lost() + sorted(survivor.errors)
        subprocess.run(["rm", "-rf", f"{world.path}/active/x"], check=False)
    writer.case(f"kill -9 of a client, {KILLS} times", problems[:9])


def left_open(writer, world):
    """What dead clients had open is free once nobody is there."""
    for name in list(world.clients):
        world.unmount(name)

    def free():
        world.mount("look")
        inodes = os.statvfs(world.path / "look").f_ffree
        names = sum(len(files) + len(dirs) for _, dirs, files in os.walk(world.path / "look"))
        total = os.statvfs(world.path / "look").f_files
        world.unmount("look")
        time.sleep(1.5)
        return inodes + names + 2 == total

    writer.case("files that a dead client had open are freed",
                [] if until(free, 15) else ["inodes are lost"])


def main():
    writer = tap.Writer()
    enter(writer)
    with World(*sys.argv[1:]) as world:
        tops = [world.mount("active") / "w1", world.mount("one-sided", "-1") / "w2"]
        for top in tops:
            top.mkdir()
        servers_death(writer, world, tops)
        clients_death(writer, world, tops[0])
        left_open(writer, world)
        writer.case("it ends, and its store is whole", world.end())
    writer.finish()


if __name__ == "__main__":
    main()
