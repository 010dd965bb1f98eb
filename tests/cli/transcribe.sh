#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# sotto transcribe with the generated model: what is written, where it goes, and how bad inputs end. What is heard means
# nothing; its form does.
source "$(dirname "$0")/lib.sh"

# plain C takes a second a window, and this is many runs; what it computes is compared in tests/speech
[ "${SOTTO_CPU_LEVEL:-}" != c ] || unset SOTTO_CPU_LEVEL

python=$SOTTO_SOURCE/.venv/bin/python
[ -x "$python" ] || python=python3
model=$work/'tiny "m\ö.gguf'
"$SOTTO_BUILD"/tests/write_tiny_model "$model"
{
    printf 'RIFF\x24\xFA\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x80\x3E\0\0\0\x7D\0\0\2\0\x10\0data\0\xFA\0\0'
    yes sotto | head -c 64000
} 2>/dev/null >"$work/sound.wav" || true
run() { "$SOTTO" transcribe -m "$model" -l en --max-tokens 12 --no-fallback --no-progress "$@"; }

# every form, on standard output
for format in txt srt vtt tsv csv lrc json json-full jsonl; do
    code 0 run --format $format --offset-n 5 "$work/sound.wav"
    cp "$work/out" "$work/form.$format"
    empty "$work/err"
done

# the same as files: next to the folder given, under a name given, here
mkdir "$work/dir" "$work/here"
code 0 run --format txt,srt,vtt,tsv,csv,lrc,json-full,jsonl --offset-n 5 --output-dir "$work/dir" "$work/sound.wav"
empty "$work/out"
code 0 run --format json --offset-n 5 --output-dir "$work/here" "$work/sound.wav"
for format in txt srt vtt tsv csv lrc jsonl; do
    same "$work/dir/sound.$format" "$work/form.$format"
done
same "$work/dir/sound.json" "$work/form.json-full"
same "$work/here/sound.json" "$work/form.json"
code 0 run --format txt --format srt -o "$work/base" --offset-n 5 "$work/sound.wav"
same "$work/base.txt" "$work/form.txt"
same "$work/base.srt" "$work/form.srt"
cp "$work/sound.wav" "$work/here/-n.wav"
cd "$work/here"
printf -- '--format\nsrt,txt\n--offset-n\n5\n' >args
code 0 run @args -- -n.wav
same ./-n.srt "$work/form.srt"
code 0 run --format txt,vtt - <"$work/sound.wav"
same stdin.vtt "$work/form.vtt"
cd "$work"

# read by strict readers
"$python" - "$work" "$model" <<'PY'
import csv, json, re, sys
def read(name):
    return open(sys.argv[1] + "/form." + name, encoding="utf-8", errors="strict", newline="").read()
def unique(pairs):
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)
line = json.loads(read("jsonl"), object_pairs_hook=unique)
segments = line["segments"]
assert len(segments) > 0
stamp = lambda ms, point: "%02d:%02d:%02d%s%03d" % (ms // 3600000, ms // 60000 % 60, ms // 1000 % 60, point, ms % 1000)
times = [(round(1000 * s["start"]), round(1000 * s["end"])) for s in segments]
texts = [s["text"] for s in segments]
flat = [re.sub("[\r\n]", " ", t) for t in texts]
cue = [t.replace("-->", "->") for t in flat]
assert read("txt") == "".join(t.lstrip(" \t") + "\n" for t in flat)
assert read("srt") == "".join("%d\n%s --> %s\n%s\n\n" % (i + 6, stamp(a, ","), stamp(b, ","), t)
                              for i, ((a, b), t) in enumerate(zip(times, cue)))
assert read("vtt") == "WEBVTT\n\n" + "".join("%s --> %s\n%s\n\n" % (stamp(a, "."), stamp(b, "."), t)
                                             for (a, b), t in zip(times, cue))
rows = list(csv.reader(open(sys.argv[1] + "/form.csv", encoding="utf-8", newline=""), strict=True))
assert rows == [["start", "end", "text"]] + [[str(a), str(b), t] for (a, b), t in zip(times, texts)]
assert read("csv").count("\r") == "".join(texts).count("\r")
assert read("tsv") == "start\tend\ttext\n" + "".join("%d\t%d\t%s\n" % (a, b, t.strip(" \t").replace("\t", " "))
                                                    for (a, b), t in zip(times, flat))
assert read("lrc") == "[by:sotto]\n" + "".join("[%02d:%02d.%02d]%s\n" % (a // 60000, a // 1000 % 60, a // 10 % 100, t)
                                               for (a, b), t in zip(times, flat))
plain, full = (json.loads(read(name), object_pairs_hook=unique) for name in ("json", "json-full"))
assert list(plain) == ["systeminfo", "model", "params", "result", "transcription"]
assert plain["params"] == {"model": sys.argv[2], "language": "en", "translate": False}
assert plain["result"] == {"language": "en"}
assert plain["model"]["multilingual"] is True and plain["model"]["vocab"] == 51865 and plain["model"]["mels"] == 80
assert plain["model"]["audio"] == {"ctx": 1500, "state": 64, "head": 1, "layer": 1} and plain["model"]["ftype"] == 0
for s, (a, b), text in zip(plain["transcription"], times, texts):
    assert s == {"timestamps": {"from": stamp(a, ","), "to": stamp(b, ",")}, "offsets": {"from": a, "to": b}, "text": text}
assert len(plain["transcription"]) == len(texts)
for s, text in zip(full["transcription"], texts):
    assert all(set(t) == {"text", "id", "p", "t_dtw"} and 0 <= t["p"] <= 1 and t["id"] >= 0 for t in s["tokens"])
    assert "".join(t["text"] for t in s["tokens"] if t["id"] < 50257) == text
assert "\n\t\"model\": {\n\t\t\"type\": " in read("json")
PY
checks=$((checks + 1))

# text that every form has to escape, quote or mend: made to be there (cases O02, O03, O05)
hard=$'="x, y",\n\\\t\r\x01\x7f\xe4\xbd\xa0 \xff-->\xc3\xa9;<b>&'
for format in txt srt vtt tsv csv lrc json json-full jsonl; do
    code 0 "$SOTTO" transcribe -m "$model" -l en --max-tokens 60 --no-fallback --no-timestamps --prefix "$hard" \
        --format $format "$work/sound.wav"
    cp "$work/out" "$work/hard.$format"
done
"$python" - "$work" <<'PY'
import csv, json, sys
def read(name):
    return open(sys.argv[1] + "/hard." + name, encoding="utf-8", errors="strict", newline="").read()
hard = '="x, y",\n\\\t\r\x01\x7f\u4f60 \ufffd-->\xe9;<b>&'
flat = hard.replace("\n", " ").replace("\r", " ")
plain, full, line = (json.loads(read(name)) for name in ("json", "json-full", "jsonl"))
text = plain["transcription"][0]["text"]
assert text.startswith(" " + hard), ascii(text)
assert full["transcription"][0]["text"] == line["segments"][0]["text"] == text and line["text"] == text.strip(" \t")
tokens = [t["text"] for t in full["transcription"][0]["tokens"] if t["id"] < 50257]
assert "".join(tokens) == text and any("\u4f60" in t for t in tokens)
rows = list(csv.reader(open(sys.argv[1] + "/hard.csv", encoding="utf-8", newline=""), strict=True))
assert rows[1][2] == text and len(rows) == 2
assert read("txt") == text.replace("\n", " ").replace("\r", " ").lstrip(" \t") + "\n"
rows = list(csv.reader(open(sys.argv[1] + "/hard.tsv", encoding="utf-8", newline=""), delimiter="\t", quoting=csv.QUOTE_NONE, strict=True))
assert len(rows) == 2 and len(rows[1]) == 3 and rows[1][2].startswith(flat.replace("\t", " "))
for name in "srt", "vtt":
    cue = read(name)
    assert cue.count("-->") == 1 and flat.replace("-->", "->") in cue and "\r" not in cue
assert read("lrc").split("\n")[1][10:].startswith(" " + flat) and read("lrc").count("\n") == 2
PY
checks=$((checks + 1))

# several recordings over one set of weights; names of all kinds; bad ones passed over
strange=$(printf '%s/a"b\\c\nd\xff.wav' "$work")
cp "$work/sound.wav" "$strange"
cp "$work/sound.wav" "$work/other.wav"
head -c 300 "$SOTTO_SOURCE/LICENSE" >"$work/text.wav"
code 1 run --format srt,json --output-dir "$work/dir" "$work/other.wav" "$work/text.wav" "$work/absent.wav" "$work/here" "$strange"
says "text.wav: SOTTO_E_AUDIO_"
says "absent.wav: SOTTO_E_IO"
says "here: SOTTO_E_IO"
same "$work/dir/other.json" "$work/form.json"
same "${strange%/*}/dir/$(basename "$strange" .wav).json" "$work/form.json"
[ ! -e "$work/dir/text.srt" ]
code 1 run --format jsonl "$strange" "$work/text.wav" "$work/other.wav"
"$python" -c 'import json,sys; a, b = map(json.loads, open(sys.argv[1], encoding="utf-8")); assert a["file"].endswith("/a\"b\\c\nd\ufffd.wav") and a["text"] == b["text"]' "$work/out"
code 4 run --format txt,srt --output-dir "$work/here" "$work/text.wav" "$work/absent.wav"
[ ! -e "$work/here/text.txt" ]

# output that cannot be written: nothing is left of it
code 8 run --format txt -o /dev/full "$work/sound.wav"
code 8 bash -c "'$SOTTO' transcribe -m '$model' -l en --format json '$work/sound.wav' >/dev/full"
code 8 run --format txt,srt --output-dir "$work/nowhere" "$work/sound.wav" "$work/text.wav"
says "nowhere"
code 8 run --format txt,srt --output-dir "$work/text.wav" "$work/sound.wav"
code 8 run --format txt -o "$work/dir" "$work/sound.wav"
ln -s /dev/full "$work/here/sound.srt"
echo old >"$work/here/sound.vtt"
code 8 run --format srt --output-dir "$work/here" "$work/sound.wav"
code 8 run --format txt,srt -o "$work/text.wav/x" "$work/sound.wav"
says "text.wav/x.txt"
code 8 run --format jsonl -o "$work/text.wav/x" "$work/sound.wav"
if [ -d /proc/self ]; then # nobody writes there, not even root
    code 8 run --format txt,srt --output-dir /proc "$work/sound.wav"
    says "/proc/sound.txt"
    code 8 run --format txt -o /proc/self/sound.txt "$work/sound.wav"
    code 8 "$SOTTO" eval -m "$model" -l en "$work/absent.tsv" -o /proc/sums
fi
if [ "$(id -u)" != 0 ]; then
    chmod a-w "$work/dir"
    code 8 run --format txt,srt --output-dir "$work/dir" "$work/sound.wav"
    chmod u+w "$work/dir"
fi

# the model comes first
code 3 run -m "$work/absent.gguf" --format txt -o /dev/full/x "$work/absent.wav"
head -c 100000 "$model" >"$work/cut.gguf"
code 3 run -m "$work/cut.gguf" "$work/sound.wav"
says "SOTTO_E_"
"$python" - "$model" "$work/kind.gguf" <<'PY'
import sys
data = open(sys.argv[1], "rb").read()
at = data.index(b"whisper", data.index(b"general.architecture") + 20)
open(sys.argv[2], "wb").write(data[:at] + b"llama-x" + data[at + 7:])
PY
code 3 run -m "$work/kind.gguf" "$work/sound.wav"
says "SOTTO_E_MODEL_ARCH"
code 3 run -m "$work/sound.wav" "$work/sound.wav"
code 3 run -m "$work/dir/" "$work/sound.wav"
code 9 run --suppress-regex '(' "$work/sound.wav"
says "SOTTO_E_REGEX"

code 2 run --suppress-tokens 51865 "$work/sound.wav"
says "suppress_tokens[0] is 51865"
code 2 run --prompt-tokens 1 --prompt x "$work/sound.wav"
printf 'audio\ttext\nsound.wav\tx\n' >"$work/list.tsv"
code 9 "$SOTTO" eval -m "$model" -l en --suppress-regex '(' "$work/list.tsv" -o "$work/sums"
code 2 "$SOTTO" eval -m "$model" -l en --suppress-tokens 51865 "$work/list.tsv" -o "$work/sums"
[ ! -e "$work/sums" ]

# a video without sound; a recording that memory has no room for
if command -v ffmpeg >/dev/null; then
    ffmpeg -nostdin -v error -y -f lavfi -i testsrc=s=64x64:r=5:d=1 -c:v mpeg4 "$work/mute.mp4"
    code 4 run --format txt -o "$work/mute.txt" "$work/mute.mp4"
    says "mute.mp4: SOTTO_E_AUDIO_"
    code 1 run --format txt,srt --output-dir "$work/dir" "$work/mute.mp4" "$work/sound.wav"
    [ ! -e "$work/mute.txt" ] && [ ! -e "$work/dir/mute.txt" ]
fi
if [ -z "${ASAN_OPTIONS:-}${TSAN_OPTIONS:-}" ]; then
    truncate -s 2000000000 "$work/huge.raw"
    code 5 bash -c "ulimit -v 500000; '$SOTTO' transcribe -m '$model' -l en --raw u8 '$work/huge.raw' -o '$work/huge.txt'"
    says "huge.raw: MEMORY"
    [ ! -e "$work/huge.txt" ]
    rm "$work/huge.raw"
fi

# parts of a recording
code 0 run --format jsonl --offset-t 2000 "$work/sound.wav"
says '"segments":[]' "$work/out"
code 0 run --format jsonl --clip 0.5,1 --prompt "x" --hotwords "y" --beam-size 2 --patience 1 "$work/sound.wav"
code 0 run --format txt --no-timestamps --translate --pad-mode silence --duration 500 --temperature 0.5 --seed 3 \
    --best-of 2 --single-segment --no-suppress-nst --max-context 0 "$work/sound.wav"

# options whose effect shows: what is forbidden or demanded is not, or is, there
"$python" - "$work/form.json-full" >"$work/ids" <<'PY'
import json, sys
tokens = [t["id"] for s in json.load(open(sys.argv[1], encoding="utf-8"))["transcription"] for t in s["tokens"]]
print(",".join(str(t) for t in sorted(set(tokens)) if t < 50257))
PY
code 0 run --format json-full --no-suppress-blank --no-early-end --keep-late-history --prompt-tokens 1,50364,2 \
    --suppress-tokens "$(cat "$work/ids")" --max-initial-ts 0 --no-repeat-ngram 1 --entropy-thold 2.4 --language auto \
    --multilingual --language-detection-segments 2 --language-detection-threshold 0.9 "$work/sound.wav"
"$python" - "$work/out" "$work/ids" <<'PY'
import json, sys
out = json.load(open(sys.argv[1], encoding="utf-8"))
text = [t["id"] for s in out["transcription"] for t in s["tokens"] if t["id"] < 50257]
assert text and not set(text) & set(map(int, open(sys.argv[2]).read().split(",")))
assert len(set(text)) == len(text) and out["result"]["language"]
PY

# whisper.cpp's name and options
ln -s "$SOTTO" "$work/whisper-cli"
cp "$work/sound.wav" "$work/here/w.wav"
code 0 "$work/whisper-cli" -m "$model" -l en -np -nf -t 2 --max-tokens 12 -on 5 -otxt --output-srt -oj -f "$work/here/w.wav"
same "$work/here/w.wav.txt" "$work/form.txt"
same "$work/here/w.wav.srt" "$work/form.srt"
same "$work/here/w.wav.json" "$work/form.json"
says "[00:00:0" "$work/out"
code 0 "$work/whisper-cli" -m "$model" -l en -nf -et 2.4 --max-tokens 4 "$work/here/w.wav"
for option in -ac -ml -sow -dtw --audio-ctx --word-thold; do
    code 2 "$work/whisper-cli" -m "$model" $option 1 "$work/here/w.wav"
    says "$option: no such option"
done
code 0 "$work/whisper-cli" -m "$model" -l en -tp 0 -tpi 0 -bs 1 --max-tokens 12 -olrc -of "$work/here/v" "$work/here/w.wav"
sed "s/by:sotto/by:whisper.cpp/" "$work/form.lrc" >"$work/expected"
same "$work/here/v.lrc" "$work/expected"
code 2 "$work/whisper-cli" -xyz "$work/here/w.wav"

# a bar on a terminal, and none without
cat >"$work/terminal.py" <<'PY'
import os, pty, sys
out = b""
def read(fd):
    global out
    data = os.read(fd, 4096)
    out += data
    return data
code = pty.spawn(sys.argv[2:], read)
open(sys.argv[1], "wb").write(out)
sys.exit(os.waitstatus_to_exitcode(code))
PY
bar() { TERM=xterm "$python" "$work/terminal.py" "$work/seen" "$SOTTO" transcribe -m "$model" -l en --max-tokens 12 "$@"; }
NO_COLOR='' code 0 bar "$work/sound.wav"
says "100 %" "$work/seen"
says "x real time  0:00 left" "$work/seen"
says $'\033[32m' "$work/seen"
NO_COLOR=1 code 0 bar "$work/sound.wav"
says "100 %" "$work/seen"
tr -d '\033' <"$work/seen" >"$work/plain"
same "$work/seen" "$work/plain"
code 0 bar --no-progress "$work/sound.wav"
if grep -q "real time" "$work/seen"; then
    echo "FAILED: a bar all the same" >&2
    exit 1
fi
if find "$work" -name '*.tmp.*' | grep .; then
    echo "FAILED: a temporary file was left behind" >&2
    exit 1
fi
finish
