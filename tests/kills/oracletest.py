#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What oracle.py finds in the ends of some cases, which are made up.

They are by direction: who listens sends 500 octets and its child reads 500, in messages of 100.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
import oracle  # noqa: E402
import stage  # noqa: E402

OCTETS = 500
NOTHING = ""
CUT = "no message's end"
WHOLE = {"sent": OCTETS, "got": OCTETS, "end": oracle.STREAM_END}
LOST = {"sent": 400, "got": 400, "end": oracle.RESET}


def lost(**changed):
    return {**LOST, **changed}


# victim, locks that it held (None: nobody knows), octets by who connects, by who listens
TABLE = {
    "nobody is hurt": ("child", 0, WHOLE, WHOLE, NOTHING),
    "a sharer died with a lock": ("listen", 1, LOST, LOST, NOTHING),
    "a sharer died without one": ("listen", 0, LOST, LOST, "goes on"),
    "a sharer died somewhere": ("listen", None, LOST, LOST, NOTHING),
    "it had a lock, and one side goes on": ("listen", 1, LOST, lost(end=0), "is reset"),
    "not at a message's end": ("listen", 1, lost(got=350), LOST, CUT),
    "a filled buffer's end": ("listen", 1, lost(got=350, filled=350), LOST, NOTHING),
    "one of a child": ("child", 1, lost(got=350, filled=350), LOST, NOTHING),
    "one that is not noted yet": ("child", 1, lost(got=350, filled=360), LOST, NOTHING),
    "one before others": ("listen", 1, lost(got=350, filled=340), LOST, CUT),
    "one, and nobody knows": ("listen", None, lost(got=350, filled=350), LOST, NOTHING),
    "one, and outside of locks": ("listen", 0, lost(got=350, filled=350), LOST, CUT),
    "one of who shares nothing": ("listen", 1, LOST, lost(got=350, filled=350), CUT),
    "one, and its sender died": ("connect", 1, lost(got=350, filled=350), LOST, CUT),
    "an orderly end too early": ("connect", 0, lost(end=oracle.STREAM_END, got=300), LOST,
                                 "an orderly end"),
    "octets that nobody sent": ("connect", 0, lost(got=500), LOST, "octets came"),
    "octets of another place": ("connect", 0, lost(wrong=1), LOST, "not those that were sent"),
    "an end of another kind": ("connect", 0, lost(end=1110), LOST, "was told"),
    "a sender of another kind": ("connect", 0, lost(failed=1110), LOST, "send() failed"),
}


# end of who reads, octets that he has, of a long write's 400 in messages that end at 150 and 300
LONG = {
    "a long write to its end": (oracle.STREAM_END, 400, NOTHING),
    "a part of a long write, and its end": (oracle.STREAM_END, 300, NOTHING),
    "a part of one that had no end there": (oracle.STREAM_END, 200, CUT),
    "a long write that was cut": (oracle.RESET, 150, NOTHING),
    "one that was cut within a message": (oracle.RESET, 200, CUT),
    "one of which nothing came": (oracle.RESET, 0, NOTHING),
    "more than the long write had": (oracle.RESET, 450, "octets came"),
}


# victim, locks, had it come to its end, what is found when its parent's connection beside was hurt
HURT = {
    "beside a child that had a lock at its end": ("child", 1, 1, NOTHING),
    "beside a child at its end, and nobody knows": ("child", None, 1, NOTHING),
    "beside a child outside of locks": ("child", 0, 1, "beside 1 has suffered"),
    "beside a child at its work": ("child", 1, 0, "beside 1 has suffered"),
    "beside another one": ("connect", 1, 1, "beside 1 has suffered"),
}


def way_fill(way, values):
    way.total = OCTETS
    for name, value in values.items():
        setattr(way, name, value)
    for i in range(way.sent // 100):
        way.end_at[i] = 100 * (i + 1)
    way.ends = way.sent // 100


def case_make(victim, locks, *ways):
    case = stage.Case("by direction", ("f", OCTETS, OCTETS, None), victim, ledger=stage.Ledger(),
                      killed=True, locks=locks, threads=None if locks is None else 1)
    case.ledger.child = case.ledger.joined = 1
    case.ledger.alone = {"listen": 2, "child": 1}.get(victim, 0)
    case.status = {who: -9 if who == victim else 0 for who in oracle.LIVING}
    for way, values in zip(case.ledger.way, ways):
        way_fill(way, values)
    return case


def judge(writer, name, case, wanted):
    found = oracle.problems(case)
    right = any(wanted in text for text in found) if wanted else not found
    writer.case(name, [] if right else [f"wanted {wanted or 'nothing'}, found {found}"])


def hurt(victim, locks, done):
    case = case_make(victim, locks, WHOLE, WHOLE)
    case.ledger.done[2] = done
    case.ledger.side[1].opened = case.ledger.side[1].wrong = 1
    return case


def long(end, got):
    case = case_make("connect", None, {"sent": 0, "upto": 400, "got": got, "end": end}, LOST)
    case.shape = ("l", *case.shape[1:])
    case.ends = {"connect": {150, 300, 400}, "listen": {400}}
    return case


def main():
    writer = tap.Writer()
    for name, (end, got, wanted) in LONG.items():
        judge(writer, name, long(end, got), wanted)
    for name, (victim, locks, connects, listens, wanted) in TABLE.items():
        judge(writer, name, case_make(victim, locks, connects, listens), wanted)
    for name, (*what, wanted) in HURT.items():
        judge(writer, name, hurt(*what), wanted)
    writer.finish()


if __name__ == "__main__":
    main()
