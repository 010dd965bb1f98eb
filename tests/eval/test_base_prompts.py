# SPDX-License-Identifier: MIT
"""Recorded prompts in five languages, as well as faster-whisper: texts, word errors and languages found.

    test_base_prompts.py [--all] [--seed N] [--fallback]

tests/data/prompts-peer.tsv holds what faster-whisper made of the same weights in f32 and the same samples
(tools/peer-texts). A tenth of the clips is drawn by the seed that is printed; --all takes all of them.
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

SOURCE, SOTTO = os.environ["SOTTO_SOURCE"], os.environ["SOTTO"]
SOUNDS = "/usr/share/asterisk/sounds/"
MODELS = os.environ.get("SOTTO_MODELS") or os.path.expanduser("~/.cache/sotto/models")


def evaluate(listing, *options):
    """{clip: record} of `sotto eval --json` on f32 weights."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as file:
        file.write(listing)
        file.flush()
        command = [SOTTO, "eval", file.name, "-m", os.path.join(MODELS, "base-f32.gguf"), "--json", *options]
        report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return {clip["audio"].removeprefix(SOUNDS): clip for clip in report["clips"]}


def peer():
    with open(os.path.join(SOURCE, "tests/data/prompts-peer.tsv"), encoding="utf-8") as file:
        header = file.readline().rstrip("\n").split("\t")
        rows = [dict(zip(header, line.rstrip("\n").split("\t"))) for line in file]
    return {row["audio"]: row for row in rows}


def errors_of(clip):
    words = clip["words"]
    return words["substitutions"] + words["deletions"] + words["insertions"]


def interval(ours, theirs, words):
    """95 % of the differences of pooled error rates when clips are drawn with replacement."""
    rng = np.random.default_rng(1)
    draws = rng.integers(0, len(words), (10000, len(words)))
    rate = (np.asarray(ours) - np.asarray(theirs))[draws].sum(1) / np.asarray(words)[draws].sum(1)
    return np.quantile(rate, [0.025, 0.975])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--fallback", action="store_true")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(2), "little"))
    arguments = parser.parse_args()
    draw = [] if arguments.all else ["--tenth", str(arguments.seed)]
    listing = subprocess.run([os.path.join(SOURCE, "tools/make-prompts-tsv"), *draw], stdout=subprocess.PIPE, check=True)
    listing = listing.stdout.decode()
    suffix = "_fallback" if arguments.fallback else ""
    clips = evaluate(listing, *([] if arguments.fallback else ["--temperature-inc", "0"]))
    theirs = {audio: row for audio, row in peer().items() if audio in clips}
    assert len(theirs) == len(clips) >= 5, "the list and the peer's texts do not match"

    same = [hashlib.sha256(" ".join(clips[a]["heard"].split()).encode()).hexdigest()[:16] == row["hash" + suffix]
            for a, row in theirs.items()]
    wrong = [errors_of(clips[a]) for a in theirs], [int(row["errors" + suffix]) for row in theirs.values()]
    words = [int(row["words"]) for row in theirs.values()]
    low, high = interval(*wrong, words)
    print(f"seed {arguments.seed}, {len(clips)} clips, {sum(words)} words, {'with' if arguments.fallback else 'no'} fallback")
    print(f"same text as faster-whisper on {sum(same)}; word errors {sum(wrong[0])}, its {sum(wrong[1])}; "
          f"difference of rates between {100 * low:.2f} and {100 * high:.2f} points")
    for audio, equal in zip(theirs, same):
        if not equal:
            print(f"  differs: {audio}: {clips[audio]['heard']}")

    auto = evaluate(listing, "-l", "auto", "--temperature-inc", "0")
    found = sum(auto[a]["language"] == row["lang"] for a, row in theirs.items())
    found_by_peer = sum(row["detected"] == row["lang"] for row in theirs.values())
    print(f"language right on {found}, by faster-whisper on {found_by_peer}")

    ok = low <= 0 and found >= found_by_peer - 2
    if not arguments.fallback:  # drawn samples are nobody's to repeat
        ok = ok and sum(same) >= (0.97 if arguments.all else 0.9) * len(same)
    sys.exit(0 if ok else 1)


main()
