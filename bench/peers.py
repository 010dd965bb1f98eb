# SPDX-License-Identifier: MIT
"""Whole transcriptions beside whisper.cpp's wheel, on the same sound, the same f16 weights and as many threads.

    bench/peers.py [--reps N] [--threads N]

The two take turns, each run in a process of its own, and medians are printed. Both decode greedily in English,
temperature 0 without fallback, the text of a window in the prompt of the next; versions, instruction sets, options, windows, tokens and texts
of both are printed. A row counts only if both kept more than 90 % of their threads busy (180 % CPU for two) and their
texts, normalised, differ in at most 3 % of words; where not, it says so, and why.
"""
import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
import wave

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = os.environ.get("SOTTO_MODELS") or os.path.expanduser("~/.cache/sotto/models")
AUDIO = os.environ.get("SOTTO_AUDIO") or os.path.expanduser("~/.cache/sotto/audio")
CLIPS = "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-%s.wav"
OPTIONS = {"language": "en", "no_context": True, "temperature": 0.0, "temperature_inc": 0.0, "greedy": {"best_of": 1}}
FILES = [os.path.join(AUDIO, "jfk.wav")] + [CLIPS % n for n in ("0870", "0880", "0890", "0920", "0930")]


def samples():
    parts = []
    for path in FILES:
        with wave.open(path) as file:
            parts.append(np.frombuffer(file.readframes(file.getnframes()), "<i2"))
    return np.concatenate(parts).astype(np.float32) / 32768


def run_whisper_cpp(threads):
    """In a process of its own: prints one JSON line."""
    import _pywhispercpp
    import pywhispercpp
    from pywhispercpp.model import Model
    from importlib.metadata import version

    model = Model(os.path.join(MODELS, "base.bin"), redirect_whispercpp_logs_to=None, n_threads=threads, print_progress=False,
                  print_realtime=False, print_timestamps=False, **OPTIONS)
    windows = []
    _pywhispercpp.assign_encoder_begin_callback(model._params, lambda *_: windows.append(1) or True)
    sound = samples()
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    segments = model.transcribe(sound)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    tokens = sum(_pywhispercpp.whisper_full_n_tokens(model._ctx, i) for i in range(len(segments)))
    print(json.dumps({"windows": len(windows), "tokens": tokens, "transcribe_s": wall, "cpu_s": cpu, "peak_mib": after.ru_maxrss / 1024,
                      "text": "".join(" " + s.text for s in segments), "version": version("pywhispercpp"),
                      "level": " ".join(re.findall(r"(\w+) = 1", _pywhispercpp.whisper_print_system_info()))}))


def child(command, **env):
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, env={**os.environ, **env})
    return json.loads(out.stdout.decode().strip().splitlines()[-1])


def words(text):
    return re.sub(r"[^a-z0-9' ]", " ", text.lower().replace("-", " ")).split()


def difference(a, b):
    """Edit distance of words over their number."""
    a, b = words(a), words(b)
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1] / max(len(b), 1)


def commit():
    found = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return found.stdout.strip() or "(no commit known)"


def show(name, runs, threads):
    wall = statistics.median(r["transcribe_s"] for r in runs)
    busy = statistics.median(r["cpu_s"] / r["transcribe_s"] for r in runs)
    peak = max(r["peak_mib"] for r in runs)
    print(f"  {name:34} {wall:8.3f} s  {100 * busy:5.0f} % CPU  peak {peak:6.1f} MiB")
    return wall, busy > 0.9 * threads


def compare(level, reps, threads):
    bench = [os.path.join(ROOT, "build/bench/bench_transcribe"), "--json", "--reps", "1", "--threads", str(threads)]
    peer = [sys.executable, os.path.abspath(__file__), "--child", "--threads", str(threads)]
    ours, theirs = [], []
    for _ in range(reps):
        ours.append(child(bench, **({"SOTTO_CPU_LEVEL": level} if level else {})))
        theirs.append(child(peer))
    wall, busy = show(f"sotto, {ours[0]['level']}", ours, threads)
    peer_wall, peer_busy = show(f"whisper.cpp ({theirs[0]['version']})", theirs, threads)
    apart = difference(ours[0]["text"], theirs[0]["text"])
    reasons = [why for why, holds in (("sotto's threads were not busy", busy), ("whisper.cpp's threads were not busy", peer_busy),
                                      ("the texts differ too much", apart <= 0.03)) if not holds]
    print(f"  ratio {peer_wall / wall:.2f}; texts differ in {100 * apart:.1f} % of words"
          + (f"  -- DOES NOT COUNT: {', '.join(reasons)}" if reasons else ""))
    for name, run in ("sotto", ours[0]), ("whisper.cpp", theirs[0]):
        print(f"    {name + ':':12} {run['windows']} windows, {run['tokens']} tokens:{run['text']}")
    print(f"    whisper.cpp's instruction sets: {theirs[0]['level']}; options: {OPTIONS}")
    print(f"    sotto {commit()}, instruction sets: {ours[0]['level']}; options: the defaults, language en, temperature_inc 0")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        run_whisper_cpp(args.threads)
        return
    seconds = len(samples()) / 16000
    print(f"{seconds:.1f} s of speech, base f16, {args.threads} threads, medians of {args.reps}, runs in turn")
    compare(None, args.reps, args.threads)
    compare("avx2", args.reps, args.threads)


main()
