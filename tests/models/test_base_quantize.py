# SPDX-License-Identifier: MIT
"""Whisper base quantised: it still understands the jfk recording, in sotto and in whisper.cpp (PyPI's pywhispercpp);
quantising takes little memory and any number of threads gives the same file; importance matrices are the same each
time; the report, and what an interrupt leaves of it.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

SOTTO = os.environ["SOTTO"]
MODELS = os.environ.get("SOTTO_MODELS") or os.path.expanduser("~/.cache/sotto/models")
AUDIO = os.path.join(os.environ.get("SOTTO_AUDIO") or os.path.expanduser("~/.cache/sotto/audio"), "jfk.wav")
BASE = os.path.join(MODELS, "base.gguf")
TEXT = "and so my fellow americans ask not what your country can do for you ask what you can do for your country"
PEAK_MB = 40  # the vocabulary and a piece of a tensor; the file has 149
SIZES = {"q8_0": 83076416, "q5_0": 56603264, "q4_K": 47778880}


def run(*words, code=0, **how):
    done = subprocess.run([SOTTO, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
    assert done.returncode == code, (words, done.returncode, done.stderr)
    return done.stdout.decode()


def peak_of(*words):
    """MB that the command had at most"""
    process = subprocess.Popen([SOTTO, *words])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return usage.ru_maxrss / 1024


def words_of(text):
    return re.sub(r"[^a-z ]", "", text.lower()).split()


def heard(model):
    out = run("transcribe", "-l", "en", "-m", model, "--format", "txt", AUDIO)
    return words_of(out.replace("\n", " "))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def check_types(work):
    for kind, size in SIZES.items():
        path = os.path.join(work, kind + ".gguf")
        peak = peak_of("quantize", BASE, path, kind, "-t", "2")
        assert peak <= PEAK_MB, f"{kind}: {peak:.1f} MB"
        assert os.path.getsize(path) == size, (kind, os.path.getsize(path))
        words = heard(path)
        assert words == TEXT.split(), (kind, words)
        print(f"{kind}: {size} bytes, {peak:.1f} MB at most")
    run("quantize", os.path.join(MODELS, "base-ct2"), os.path.join(work, "other.gguf"), "q8_0")
    assert read(os.path.join(work, "other.gguf")) == read(os.path.join(work, "q8_0.gguf")), "from CTranslate2"
    run("convert", BASE, os.path.join(work, "other.gguf"))
    assert read(os.path.join(work, "other.gguf")) == read(BASE)
    for threads in "1", "3":
        run("quantize", BASE, os.path.join(work, "other.gguf"), "q8_0", "-t", threads)
        assert read(os.path.join(work, "other.gguf")) == read(os.path.join(work, "q8_0.gguf")), threads


def check_interrupt(work):
    folder = os.path.join(work, "cut")
    os.mkdir(folder)
    process = subprocess.Popen([SOTTO, "quantize", BASE, os.path.join(folder, "x.gguf"), "q2_K", "-t", "1"])
    while not os.listdir(folder):  # the temporary file
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130 and not os.listdir(folder)


def check_peer(work):
    """.bin, straight from CTranslate2 and by way of GGUF, and what whisper.cpp hears"""
    from pywhispercpp.model import Model  # late: its memory would be counted to the commands that are started above
    first, second = os.path.join(work, "first.bin"), os.path.join(work, "second.bin")
    run("quantize", os.path.join(MODELS, "base-ct2"), first, "q5_0")
    run("convert", os.path.join(work, "q5_0.gguf"), second)
    assert read(first) == read(second)
    model = Model(first, n_threads=2, print_progress=False, print_realtime=False)
    words = words_of(" ".join(s.text for s in model.transcribe(AUDIO, language="en")))
    assert words == TEXT.split(), words
    run("convert", first, os.path.join(work, "back.gguf"))
    told = [json.loads(run("inspect", "--json", "--tensors", "--verify", os.path.join(work, name)))
            for name in ("back.gguf", "q5_0.gguf")]
    assert told[0]["tensors"] and told[0]["invalid_tensors"] == 0
    assert [t["sha256"] for t in told[0]["tensors"]] == [t["sha256"] for t in told[1]["tensors"]]


def listing(work):
    path = os.path.join(work, "list.tsv")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"audio\ttext\tlang\n{AUDIO}\t{TEXT}\ten\n")
    return path


def check_imatrix(work):
    """Gathered from a file and from a list."""
    paths = [os.path.join(work, f"imatrix{i}.gguf") for i in range(2)]
    for path, threads in zip(paths, "12"):
        run("imatrix", BASE, AUDIO, "-l", "en", "-t", threads, "-o", path)
    assert read(paths[0]) == read(paths[1])
    told = {t["name"]: t for t in json.loads(run("inspect", "--json", "--tensors", paths[0]))["tensors"]}
    assert told["enc.blk.5.ffn_down.weight.in_sum2"]["shape"] == [2048]
    assert told["dec.token_embd.weight.in_sum2"]["shape"] == [512]
    run("imatrix", BASE, listing(work), "/nonexistent.wav", "-o", paths[1], code=1)
    assert os.path.getsize(paths[1]) > 250000
    run("imatrix", BASE, "/nonexistent.wav", "-o", os.path.join(work, "none.gguf"), code=4)
    run("imatrix", BASE, AUDIO, "-o", "/nonexistent/x.gguf", code=8)
    run("imatrix", os.path.join(work, "list.tsv"), AUDIO, code=3)
    assert not os.path.exists(os.path.join(work, "none.gguf"))
    run("quantize", BASE, os.path.join(work, "weighed.gguf"), "q5_0", "--imatrix", paths[0])
    assert heard(os.path.join(work, "weighed.gguf")) == TEXT.split()
    assert read(os.path.join(work, "weighed.gguf")) != read(os.path.join(work, "q5_0.gguf"))


def check_report(work):
    folder = os.path.join(work, "tmp")
    os.mkdir(folder)
    env = dict(os.environ, TMPDIR=folder)
    path = listing(work)
    told = json.loads(run("quantize", "--report", path, "--json", os.path.join(work, "q8_0.gguf"), "q5_0", "q8_0", env=env))
    kinds = {row["type"]: row for row in told["types"]}
    assert list(kinds) == ["q5_0", "q8_0"] and not os.listdir(folder)
    for kind, row in kinds.items():
        assert row["bytes"] == SIZES[kind] and row["words"] == 22 and row["errors"] == 0, row
        assert row["time"] > 0 and row["compute_seconds"] > 0
    assert kinds["q8_0"]["error"] == 0 and 0.02 < kinds["q5_0"]["error"] < 0.07, kinds
    assert kinds["q5_0"]["worst_tensor"].endswith(".weight") and kinds["q5_0"]["worst"] > kinds["q5_0"]["error"]
    run("quantize", "--report", path, "/nonexistent", env=env, code=3)
    run("quantize", "--report", "/nonexistent.tsv", BASE, env=env, code=4)
    run("quantize", "--report", path, BASE, "q9", env=env, code=2)
    run("quantize", "--report", path, BASE, "q8_0", env=dict(env, TMPDIR="/nonexistent"), code=8)
    for after in 0.05, 0.4, 1.5:
        process = subprocess.Popen([SOTTO, "quantize", "--report", path, BASE, "q8_0", "q5_0"], env=env,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.3 + after)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 130 and not out and not os.listdir(folder), (after, process.returncode, out)


def main():
    with tempfile.TemporaryDirectory() as work:
        check_types(work)
        check_interrupt(work)
        check_peer(work)
        check_imatrix(work)
        check_report(work)
    print("all is well")
    sys.stdout.flush()


main()
