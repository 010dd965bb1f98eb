# SPDX-License-Identifier: MIT
"""Ctrl-C ends sotto within a second with exit code 130 and keeps the finished segments; the second one ends it at once
and leaves no temporary file. In every phase: opening the model, reading sound of any kind, recognising, waiting."""
import csv
import glob
import json
import os
import signal
import struct
import subprocess
import tempfile
import time

SOTTO, BUILD = os.environ["SOTTO"], os.environ["SOTTO_BUILD"]
PATIENCE = 60  # seconds until something is there at all, under sanitizers
PLAIN = os.environ.get("SOTTO_CPU_LEVEL") == "c" or "ASAN_OPTIONS" in os.environ
SOON = 5.0 if PLAIN else 2.0  # seconds; one is promised, but the machine may be busy; plain C and sanitizers are slow

work = tempfile.TemporaryDirectory()
checks = 0


def at(name):
    return os.path.join(work.name, name)


def check(holds, *what):
    global checks
    assert holds, what
    checks += 1


def wav(name, seconds, rate=16000, channels=1):
    """A recording of the given length; what is not written reads as silence and takes no room on the disk."""
    n = int(seconds * rate) * 2 * channels
    with open(at(name), "wb") as file:
        file.write(struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + n, b"WAVE", b"fmt ", 16, 1, channels, rate,
                               2 * channels * rate, 2 * channels, 16, b"data", n))
        file.write((b"sotto\n" * (min(n, 40000000) // 6 + 1))[:min(n, 40000000)])
        file.truncate(44 + n)
    return at(name)


def start(*arguments, **how):
    return subprocess.Popen([SOTTO, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)


def wait_for(what):
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def catches(process):
    """It has its handler by now."""
    try:
        with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
            caught = next(line for line in status if line.startswith("SigCgt"))
    except OSError:
        return False
    return int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1


def interrupt(process, codes=(130,), *more):
    """Send it, and what else there is at once; it has to end soon with one of the codes."""
    begin = time.monotonic()
    for number in (signal.SIGINT, *more):
        process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    taken = time.monotonic() - begin
    check(process.returncode in codes, process.args, process.returncode, err)
    check(taken < SOON, process.args, f"took {taken:.2f} s")
    check(glob.glob(at("**/*.tmp.*"), recursive=True) == [], "a temporary file was left")
    return out.decode(), err.decode()


def begun(pattern):
    """There is a temporary file of that name with something in it."""
    return any(os.path.getsize(path) > 0 for path in glob.glob(at(pattern)) if os.path.exists(path))


def main():
    model = at("tiny.gguf")
    subprocess.run([os.path.join(BUILD, "tests/write_tiny_model"), model], check=True)
    common = ["-m", model, "-l", "en", "--max-tokens", "8", "--no-fallback", "--no-speech-thold", "1"]
    brief, long = wav("brief.wav", 2), wav("long.wav", 3600)

    # while it recognises: the lines that were printed stay, and no error is told
    process = start("transcribe", *common, long)
    first = process.stdout.readline()
    out, err = interrupt(process)
    check(first.startswith(b"[00:00:0") and err == "", first, err)
    check(all(line.startswith("[00:") for line in out.splitlines()), out)

    # several files into one: the first is whole, of the second there is what was found, the third is not begun
    result = at("all.jsonl")
    for delay in 0.3, 1, 3, 8:  # on a busy machine the second file may not have been begun
        process = start("transcribe", *common, "--format", "jsonl", "-o", result, brief, long, brief)
        wait_for(lambda: begun("all.jsonl.tmp.*"))
        time.sleep(delay)
        interrupt(process)
        with open(result, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        if len(lines) > 1:
            break
    check([line["file"] for line in lines] == [brief, long], lines)
    check(lines[0]["segments"] and lines[1]["duration"] == 3600)
    check(not lines[1]["segments"] or lines[1]["segments"][-1]["end"] < 3600)

    # files of their own: every form of what was found
    for delay in 0.5, 1, 3, 8:
        process = start("transcribe", *common, "--format", "txt,srt,csv,json", "--output-dir", work.name, long, brief)
        wait_for(lambda: len(glob.glob(at("long.*.tmp.*"))) == 4)
        time.sleep(delay)
        interrupt(process)
        if os.path.exists(at("long.csv")):
            break
    with open(at("long.csv"), encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, strict=True))
    with open(at("long.json"), encoding="utf-8") as file:
        segments = json.load(file)["transcription"]
    check([row[2] for row in rows[1:]] == [segment["text"] for segment in segments])
    check(os.path.exists(at("long.srt")) and os.path.exists(at("long.txt")) and not os.path.exists(at("brief.txt")))

    # while it reads: most of an hour of 96 kHz in eight channels takes long, and there is nothing to keep
    large = wav("large.wav", 2600, 96000, 8)
    process = start("transcribe", *common, "--format", "txt", "-o", at("none.txt"), large)
    wait_for(lambda: glob.glob(at("none.txt.tmp.*")))
    time.sleep(0.2)
    out, err = interrupt(process)
    check(err == "" and open(at("none.txt"), encoding="utf-8").read() == "")

    # the same through FFmpeg, where sotto has it
    sound = struct.pack(">4sIIIII", b".snd", 24, 0xFFFFFFFF, 3, 96000, 8)
    for name, size in ("short.au", 320000), ("large.au", 4000000000):
        with open(at(name), "wb") as file:
            file.write(sound)
            file.truncate(24 + size)
    if start("transcribe", *common, at("short.au")).wait(PATIENCE) == 0:
        process = start("transcribe", *common, "--format", "txt", "-o", at("none2.txt"), at("large.au"))
        wait_for(lambda: glob.glob(at("none2.txt.tmp.*")))
        time.sleep(0.2)
        out, err = interrupt(process)
        check(err == "", err)

    # while it waits: for standard input, for a pipe with and without a writer
    os.mkfifo(at("pipe"))
    process = start("transcribe", *common, "-", stdin=subprocess.PIPE)
    wait_for(lambda: catches(process))
    time.sleep(0.3)
    interrupt(process)
    for writer in False, True:
        fd = os.open(at("pipe"), os.O_RDWR) if writer else -1
        process = start("transcribe", *common, at("pipe"))
        wait_for(lambda: catches(process))
        time.sleep(0.3)
        interrupt(process)
        if writer:
            os.close(fd)

    # while it opens a model, which has to be caught in the act
    with open(at("huge.gguf"), "wb") as file:
        n = 500000000
        file.write(struct.pack("<4sIqqq1sIIq", b"GGUF", 3, 0, 1, 1, b"x", 9, 0, n))
        file.truncate(file.tell() + n)
    for _ in range(20):
        process = start("transcribe", "-m", at("huge.gguf"), "-o", at("never.txt"), brief)
        wait_for(lambda: catches(process) or process.poll() is not None)
        interrupt(process, (130, 3))
        if process.returncode == 130:
            break
    check(process.returncode == 130 and not os.path.exists(at("never.txt")))

    # sotto eval writes its sums whole or not at all
    with open(at("list.tsv"), "w", encoding="utf-8") as file:
        file.write("audio\ttext\nlong.wav\tnothing\n")
    process = start("eval", at("list.tsv"), *common, "-o", at("sums.txt"))
    wait_for(lambda: glob.glob(at("sums.txt.tmp.*")))
    time.sleep(0.2)
    interrupt(process)
    check(not os.path.exists(at("sums.txt")))

    # a second signal ends it at once, wherever it is
    for i in range(5):
        process = start("transcribe", *common, "--format", "txt,srt", "-o", at(f"two{i}"), long)
        wait_for(lambda: len(glob.glob(at(f"two{i}.*.tmp.*"))) == 2)
        time.sleep(0.05 * i)
        interrupt(process, (130, 143), signal.SIGTERM)
        check(not os.path.exists(at(f"two{i}.txt")) and not os.path.exists(at(f"two{i}.srt")))
    print(f"{checks} checks passed")


main()
