#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# sotto transcribe with Whisper base: formats, where the output goes, and what becomes of bad inputs.
source "$(dirname "$0")/lib.sh"

models=${SOTTO_MODELS:-$HOME/.cache/sotto/models}
jfk=${SOTTO_AUDIO:-$HOME/.cache/sotto/audio}/jfk.wav
clip=/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0930.wav
python=$SOTTO_SOURCE/.venv/bin/python

# lines with times, from a path, a name, and standard input
code 0 "$SOTTO" transcribe -m "$models/base.gguf" -l en "$clip"
cp "$work/out" "$work/lines"
grep -qE '^\[00:00:00\.[0-9]{3} --> 00:00:0[0-9]\.[0-9]{3}\]  [A-Z]' "$work/lines"
grep -qi "might even have been made amiable himself" "$work/lines"
empty "$work/err"
code 0 "$SOTTO" transcribe --language=English -t1 -- "$clip"
same "$work/out" "$work/lines"
code 0 "$SOTTO" transcribe -l en - <"$clip"
same "$work/out" "$work/lines"
code 0 bash -c "cat '$clip' | '$SOTTO' transcribe --model=base -len -"
same "$work/out" "$work/lines"

# plain text
code 0 "$SOTTO" transcribe -l en --format txt "$clip"
sed 's/^\[[^]]*\]  //' "$work/lines" >"$work/expected"
same "$work/out" "$work/expected"

# one JSON object a file, whatever the file is called; the language is found
strange=$(printf '%s/a"b\\c\nd\tde\xff.wav' "$work")
cp "$jfk" "$strange"
code 0 "$SOTTO" transcribe --format jsonl -o "$work/out.jsonl" "$strange" "$clip"
empty "$work/out"
"$python" - "$work/out.jsonl" "$strange" <<'PY'
import json, os, sys
lines = open(sys.argv[1], encoding="utf-8", errors="strict", newline="\n").read().split("\n")
assert len(lines) == 3 and lines[2] == ""
first, second = (json.loads(line) for line in lines[:2])
assert list(first) == ["file", "language", "duration", "text", "segments"]
assert first["file"] == os.fsencode(sys.argv[2]).decode("utf-8", "replace"), first["file"]
assert first["language"] == second["language"] == "en"
assert first["duration"] == 11.0 and abs(second["duration"] - 3.29) < 0.01
assert first["text"].startswith("And so") and "your country" in first["text"]
assert first["text"] == "".join(s["text"] for s in first["segments"]).strip()
end = 0
for segment in first["segments"]:
    assert list(segment) == ["start", "end", "text"]
    assert end <= segment["start"] < segment["end"] <= 11.0
    end = segment["end"]
PY
checks=$((checks + 1))

# output files: whole or not at all
echo old >"$work/old.txt"
code 0 "$SOTTO" transcribe -l en -o "$work/old.txt" "$clip"
same "$work/old.txt" "$work/lines"
code 0 "$SOTTO" transcribe -l en -o - "$clip"
same "$work/out" "$work/lines"
code 8 "$SOTTO" transcribe -l en -o "$work/absent/x.txt" "$clip"
says "absent/x.txt"
code 8 "$SOTTO" transcribe -l en -o /dev/full "$clip"
code 8 bash -c "'$SOTTO' transcribe -l en '$clip' >/dev/full"

# bad inputs are named and passed over
printf '\0\0\0\x20ftypM4A \0\0\0\0' >"$work/song.wav"
head -c 44 "$clip" >"$work/nothing.wav"
code 1 "$SOTTO" transcribe -l en "$work/song.wav" "$clip" "$work/absent.wav"
same "$work/out" "$work/lines"
says "song.wav: SOTTO_E_AUDIO_"
says "absent.wav: SOTTO_E_IO"
echo old >"$work/old.txt"
code 4 "$SOTTO" transcribe -l en -o "$work/old.txt" "$work/song.wav" "$work/nothing.wav" "$work" "$work/absent.wav"
says "nothing.wav: SOTTO_E_AUDIO_EMPTY"
echo old >"$work/expected"
same "$work/old.txt" "$work/expected"

# other rates, and samples without a header
"$python" - "$clip" "$work/fast.wav" <<'PY'
import sys, wave
source, target = wave.open(sys.argv[1]), wave.open(sys.argv[2], "wb")
target.setparams((2, 2, 48000, 0, "NONE", None))
frames = source.readframes(source.getnframes())
target.writeframes(b"".join(6 * frames[i:i + 2] for i in range(0, len(frames), 2)))
PY
code 0 "$SOTTO" transcribe -l en --format txt "$work/fast.wav"
code 0 "$SOTTO" transcribe -l en --format txt "$clip"
tail -c +45 "$clip" >"$work/clip.raw"
cp "$work/out" "$work/expected"
code 0 "$SOTTO" transcribe -l en --format txt --raw s16le:16000:1 "$work/clip.raw"
same "$work/out" "$work/expected"
code 0 "$SOTTO" transcribe -l en --format txt --raw s16le - <"$work/clip.raw"
same "$work/out" "$work/expected"
code 3 "$SOTTO" transcribe -m "$clip" "$clip"

# an interrupt ends it within a second; what was found is written
for i in 1 2 3 4 5 6; do
    cp "$jfk" "$work/jfk-$i.wav"
done
"$SOTTO" transcribe -l en --format jsonl -o "$work/some.jsonl" "$work"/jfk-?.wav &
job=$!
for ((i = 0; i < 600; i++)); do
    grep -qs "your country" "$work"/some.jsonl.tmp.* && break
    sleep 0.1
done
kill -TERM "$job"
start=$(date +%s%N)
found=0
wait "$job" || found=$?
taken=$((($(date +%s%N) - start) / 1000000))
if [ "$found" != 143 ] || [ "$taken" -gt 2000 ]; then
    echo "FAILED: exit code $found after $taken ms" >&2
    exit 1
fi
says "your country" "$work/some.jsonl"
if ls "$work" | grep -q '\.tmp\.'; then
    echo "FAILED: a temporary file was left behind" >&2
    exit 1
fi

# a signal while standard input is awaited
mkfifo "$work/pipe"
code 143 bash -c "exec 3<>'$work/pipe'; '$SOTTO' transcribe - <&3 & sleep 1; kill -TERM \$!; wait \$!"
finish
