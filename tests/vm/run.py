#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the lab's cases in a virtual machine and prints TAP.

    run.py [--list] [--table FILE] [--kernel 6.12 | debug] [--guests N] [--processors N]
           [--seed N] [--seconds N] [--append WORDS] [--only PATTERN]... [CASE...]

Some guests share the cases out among them. Where one dies or its kernel complains, that case has
failed and the others get a fresh guest. What the cases left is judged here: their TAP, the
kernel's log, and their captures by tshark and by the decoder of tests/captures.
"""
import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LAB = ROOT / "build-vm"
OUT = LAB / "out"
BOOT = 60
# A guest is at rest for half of its time. One processor has no locks to emulate, and no other to
# tell of its page tables: a third less is to be done than for two.
GUESTS = min(4, 2 * (os.cpu_count() or 1))
PROCESSORS = 1
DEBUG, PATIENCE = "debug", 4  # a kernel that checks each access of its own
CHANCE = "module_fuzz"  # the case that goes on for as long as it is told to
# As measured, the longest first; the others by their limits
LONGEST = """operations streams vprograms wraps_device vforks vstreams conformance abrupt kills
    wraps wraps_devices programs vrules rings rstream terminates rping script rxe preload
    rsockets""".split()
BEGINS = " begins\n"  # what a guest's console says when it takes a case on
sys.path.insert(0, str(HERE.parent))
import captures  # noqa: E402
import host  # noqa: E402
import table  # noqa: E402
import tap  # noqa: E402


@dataclass
class Script:
    name: str
    what: str
    limit: int
    wrong: set  # captures that hold faults on purpose
    table: list  # its columns, of table.PAIRS, or None
    others: str  # why it has no others
    tap: bool  # the peer is this host
    dies: str  # what the kernel says when the case has ended the guest, as it must
    fault: str = ""  # of mutate.py: the build that has it
    only: tuple = ()  # patterns

    @property
    def label(self):
        return f"{self.name}@{self.fault}" if self.fault else self.name

    @property
    def folder(self):
        return OUT / self.label


@dataclass
class Guests:
    kernel: str = "6.1"
    number: int = GUESTS  # at a time
    processors: int = PROCESSORS  # of each
    seed: int = 0  # of what chance chooses
    seconds: int = 20  # of chance, in case module_fuzz
    words: str = ""  # for the kernel's command line

    @property
    def patience(self):
        """Times as long as the cases say."""
        return PATIENCE if self.kernel == DEBUG else 1


def scripts():
    for path in sorted((HERE / "cases").glob("*.sh")):
        text = path.read_text()
        limit = re.search(r"^# Limit: (\d+)$", text, re.M)
        what = re.search(r"^# (?!SPDX)(.*)$", text, re.M)
        wrong = re.search(r"^# Faulty captures: (.*)$", text, re.M)
        pairs = " ".join(re.findall(r"^# Table: (.*)$", text, re.M)).split()
        others = re.search(r"^# No others: (.*)$", text, re.M)
        dies = re.search(r"^# Dies: (.*)$", text, re.M)
        yield Script(path.stem, what[1], int(limit[1]), set(wrong[1].split()) if wrong else set(),
                     pairs or None, others[1] if others else "",
                     "\n# Network: tap\n" in text, dies[1] if dies else "")



# --- boots ----------------------------------------------------------------------------------------


def time_of(script, guests):
    return script.limit * guests.patience + (guests.seconds if script.name == CHANCE else 0)


def plan(todo, guests):
    """What the guests read: each takes the next case that none has begun, the longest first."""
    (OUT / "seed").write_text(f"{guests.seed}\n")
    (OUT / "seconds").write_text(f"{guests.seconds}\n")
    for script in todo:
        only = "".join(f"{pattern}\n" for pattern in script.only)
        (OUT / f"{script.label}.only").write_text(only)
    order = sorted(todo, key=lambda script: (
        LONGEST.index(script.name) if script.name in LONGEST else len(LONGEST), -script.limit))
    (OUT / "plan").write_text("".join(
        f"{script.label} {time_of(script, guests)} {'host' if script.tap else 'peer'}\n"
        for script in order))


def boot(todo, guests, over_tap):
    """Boots a guest for what is left of these scripts; what its console had to say."""
    limit = BOOT * guests.patience + sum(time_of(script, guests) + 10 for script in todo)
    command = ["unshare", "--net", HERE / "host.py"] if over_tap else [HERE / "boot.sh"]
    command += ["-t", str(limit), "-k", guests.kernel, "-p", str(guests.processors),
                "-a", guests.words, HERE / "guest.sh"]
    said = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace") as guest:
        for line in guest.stdout:
            said.append(line)
            if line.startswith("lab: ") and not line.endswith(BEGINS):
                print(f"# {line[5:].rstrip()}", flush=True)
    if over_tap:
        shutil.rmtree(OUT / "host", ignore_errors=True)
    return "".join(said)


def boot_on(todo, guests, over_tap):
    """A guest after the other, as long as each takes some of these scripts on; their consoles."""
    said, before = [], None
    while True:
        left = [script for script in todo if not script.folder.exists()]
        if len(left) in (0, before):
            return said
        before = len(left)
        said.append(boot(left, guests, over_tap))


def boot_all(todo, guests):
    """So many guests at a time; their consoles."""
    plan(todo, guests)
    begin = time.monotonic()
    with ThreadPoolExecutor(guests.number) as pool:
        running = []
        for over_tap in (True, False):
            part = [script for script in todo if script.tap == over_tap]
            number = min(len(part), 1 if over_tap else guests.number)
            running += [pool.submit(boot_on, part, guests, over_tap) for _ in range(number)]
    took = time.monotonic() - begin
    print(f"# {len(todo)} cases, {guests.number} guests: {took:.0f} s", flush=True)
    return [console for one in running for console in one.result()]


def run_all(chosen, guests):
    """Boots until each script has run or was under way when a guest died: label -> console."""
    died, todo = {}, chosen
    while todo:
        consoles = boot_all(todo, guests)
        left = [script for script in todo if not (script.folder / "status").exists()]
        begun = [script for script in left if script.folder.exists()]
        if len(left) == len(todo) and not begun:
            begun = left[:1]
        for script in begun:
            died[script.label] = next((text for text in consoles
                                       if f"lab: {script.label}{BEGINS}" in text), consoles[-1])
        todo = [script for script in left if script not in begun]
    return died


# --- judgement ------------------------------------------------------------------------------------


def cases_of(script):
    status = int((script.folder / "status").read_text())
    text = (script.folder / "tap").read_text(errors="replace")
    cases = tap.judge(text, 0 if status == 0 else status)
    if status in (124, 137):
        cases.append(tap.Case("time limit", "failed", [f"ended after {script.limit} s"]))
    for ended in sorted(script.folder.glob("*.ended")):
        output = ended.with_suffix(".tap").read_text(errors="replace")
        for case in tap.judge(output, int(ended.read_text())):
            case.name = f"{ended.stem}: {case.name}"
            cases.append(case)
    return cases


def kernel_case(script):
    trouble = (script.folder / "trouble").read_text(errors="replace").splitlines()
    if not trouble:
        return tap.Case("the kernel has no complaint", "passed")
    log = (script.folder / "dmesg").read_text(errors="replace").splitlines()
    return tap.Case("the kernel has no complaint", "failed", log[-80:])


def capture_cases(script):
    for path in sorted(script.folder.glob("*.pcap")):
        if path.stem in script.wrong:
            continue
        if not captures.pcap.connections(path) and script.only:
            continue
        lost = captures.lost(path)
        if lost:
            yield tap.Case(f"capture {path.stem} is whole", "failed", [lost])
            continue
        bad, fpdus, good = captures.by_tshark(path)
        bad += captures.wrong_crcs(path, fpdus, good)
        wrong, connections, messages, all_fpdus = captures.by_decoder(path)
        if fpdus != all_fpdus:
            bad.append(f"the decoder reads {all_fpdus}")
        yield tap.Case(f"capture {path.stem}: tshark judges {fpdus} FPDUs, {good} with CRC",
                       "failed" if bad else "passed", bad[:20])
        yield tap.Case(f"capture {path.stem}: the decoder reads {messages} messages on "
                       f"{connections} connections", "failed" if wrong else "passed", wrong[:20])


def judge(script, died):
    if script.dies and script.dies in died.get(script.label, ""):
        return [tap.Case(f"the guest ends by a {script.dies}", "passed")]
    if script.dies and script.label not in died:
        return [tap.Case(f"the guest ends by a {script.dies}", "failed", ["it lives"])]
    if script.label in died:
        tap_file = script.folder / "tap"
        said = tap_file.read_text(errors="replace").splitlines() if tap_file.exists() else []
        return [tap.Case("the guest", "failed",
                         ["it died", *said, *died[script.label].splitlines()[-60:]])]
    cases = cases_of(script) + [kernel_case(script)] + list(capture_cases(script))
    if any(case.result == "failed" for case in cases):
        stderr = (script.folder / "stderr").read_text(errors="replace").splitlines()
        topology = (script.folder / "topology").read_text(errors="replace").splitlines()
        cases[-1].detail = cases[-1].detail + stderr[-20:] + topology[-5:]
    return cases


# --- output ---------------------------------------------------------------------------------------


def print_tap(results, about_table):
    writer = tap.Writer()
    named = [(f"{script.name}: {case.name}", case) for script, cases in results for case in cases]
    named += [(f"table: {case.name}", case) for case in about_table]
    for name, case in named:
        if case.result == "skipped":
            writer.skip(name, case.reason)
        else:
            failed = case.result == "failed"
            writer.case(name, (case.detail or ["no more is known"]) if failed else ())
    writer.finish()


def lock():
    """One run at a time in this checkout: they share build-vm/out."""
    LAB.mkdir(exist_ok=True)
    held = open(LAB / "lock", "w")
    fcntl.flock(held, fcntl.LOCK_EX)
    return held


def prepare(kernel):
    subprocess.run([HERE / "prepare.sh", kernel], check=True)
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()


def main():
    parser = argparse.ArgumentParser(description="Run the kernel lab's cases.")
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    parser.add_argument("--table", metavar="FILE", help="also write a page about it")
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[],
                        help="only checks whose name fits")
    parser.add_argument("--kernel", choices=["6.1", "6.12", DEBUG], default="6.1",
                        help="6.1 of Debian 12, 6.12 of its backports, or 6.1 with what finds the"
                        " faults of modules, for the cases module*")
    parser.add_argument("--guests", type=int, default=GUESTS, metavar="N",
                        help="so many at a time, of 1.5 GB each")
    parser.add_argument("--processors", type=int, default=PROCESSORS, metavar="N",
                        help="of each guest")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 32768, metavar="N",
                        help="of what chance chooses in cases kills and module*")
    parser.add_argument("--seconds", type=int, default=Guests.seconds, metavar="N",
                        help="so long is chance at work in case module_fuzz")
    parser.add_argument("--append", default="", metavar="WORDS",
                        help="to the kernel's command line, as slub_debug=FZPU")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_args()
    known = {script.name: script for script in scripts()}
    if options.list:
        for script in known.values():
            print(f"{script.name:<16} {script.limit:4} s  {script.what}")
        return
    unknown = set(options.cases) - set(known)
    if unknown:
        sys.exit(f"no such case: {' '.join(sorted(unknown))} (there are: {' '.join(known)})")
    debug = options.kernel == DEBUG
    wanted = options.cases or [name for name in known if not debug or name.startswith("module")]
    chosen = [replace(script, only=tuple(options.only)) for name, script in known.items()
              if name in wanted]
    with lock():
        prepare(options.kernel)
        lacks = host.lacks()
        able = [script for script in chosen if not (script.tap and lacks)]
        guests = Guests(options.kernel, options.guests, options.processors, options.seed,
                        options.seconds, options.append)
        print(f"# seed {options.seed}", flush=True)
        died = run_all(able, guests)
        with ProcessPoolExecutor() as pool:
            judged = {script.name: pool.submit(judge, script, died) for script in able}
        results = [(script, judged[script.name].result() if script in able else
                    [tap.Case("all of it", "skipped", [lacks])]) for script in chosen]
    if options.table:
        table.write(options.table, results, known, options.kernel, bool(options.only))
    about = [] if options.only else [table.judged(results, len(chosen) == len(known))]
    print_tap(results, about)


if __name__ == "__main__":
    main()
