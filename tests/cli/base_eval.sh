#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# sotto eval with Whisper base: sums, JSON, comparison with another run, bad lists.
source "$(dirname "$0")/lib.sh"

jfk=${SOTTO_AUDIO:-$HOME/.cache/sotto/audio}/jfk.wav
clips=/usr/share/pocketsphinx/test/data/librivox
python=$SOTTO_SOURCE/.venv/bin/python

code 2 "$SOTTO" eval
says "arguments are missing"
code 2 "$SOTTO" eval x.tsv -l klingon
code 2 "$SOTTO" eval x.tsv -t 0
code 3 "$SOTTO" eval x.tsv -m /nonexistent.gguf
code 4 "$SOTTO" eval /nonexistent.tsv
says "/nonexistent.tsv"
printf 'audio\twords\na.wav\tx\n' >"$work/bad.tsv"
code 4 "$SOTTO" eval "$work/bad.tsv"
says "audio and text"
printf 'audio\ttext\tlang\na.wav\tx\n' >"$work/bad.tsv"
code 4 "$SOTTO" eval "$work/bad.tsv"
says "line 2"
printf 'audio\ttext\tlang\na.wav\tx\txx\n' >"$work/bad.tsv"
code 4 "$SOTTO" eval "$work/bad.tsv"
says "'xx' is no language"
printf 'audio\ttext\na.wav\tx\n' >"$work/bad.tsv"
code 4 "$SOTTO" eval "$work/bad.tsv" -o "$work/none"
says "a.wav"
[ ! -e "$work/none" ]

# a byte-order mark, other columns, CRLF, an empty line; one word wrong and one missing; a clip that is not there
cp "$jfk" "$work/jfk.wav"
{
    printf '\xef\xbb\xbftext\tid\taudio\tlang\r\n'
    printf 'And so my dear Americans, ask not what your country can really do for you.'
    printf ' Ask what you can do for your country!\t1\tjfk.wav\ten\r\n\r\n'
    printf 'He might even have been made amiable himself.\t2\t%s/sense_and_sensibility_01_austen_64kb-0930.wav\ten\r\n' "$clips"
    printf 'Nothing\t3\tgone.wav\ten\r\n'
} >"$work/list.tsv"
code 1 "$SOTTO" eval "$work/list.tsv" --json -o "$work/run.json"
says "gone.wav"
"$python" - "$work/run.json" <<'PY'
import json, sys
run = json.load(open(sys.argv[1], encoding="utf-8"))
first, second, third = run["clips"]
assert run["failed"] == 1 and "heard" not in third
assert first["words"] == {"units": 23, "hits": 21, "substitutions": 1, "deletions": 1, "insertions": 0, "rate": 0.086957}
assert second["words"]["hits"] == 8 and second["words"]["rate"] == 0 and second["characters"]["units"] == 44
assert run["words"]["units"] == 31 and run["words"]["hits"] == 29
assert 14 < run["seconds"] < 15
first["heard"] = first["text"]                     # another recogniser, which makes no mistake
json.dump({"clips": [first, second]}, open(sys.argv[1] + ".best", "w"))
PY
mkdir "$work/elsewhere"
cp "$work/list.tsv" "$work/elsewhere"
code 1 "$SOTTO" eval "$work/elsewhere/list.tsv" --audio-root "$work" -l auto --against "$work/run.json.best"
says "WER         6.45 %  2 of 31: 1 substituted, 1 deleted, 0 inserted" "$work/out"
says "clips     3, 1 of which failed" "$work/out"
says "found right in 2 of 2" "$work/out"
says "the same text in 1 of 2 clips" "$work/out"
says "word errors +6.45 points" "$work/out"
says "2 errors, 23 words  jfk.wav" "$work/out"

# accents: by option for all, by a column for some
printf 'audio\ttext\tlang\taccents\n' >"$work/accents.tsv"
printf '%s\tH\xc3\xa9 might \xc3\xa9ven have been made amiable himself\tfr\t%s\n' \
    "$clips/sense_and_sensibility_01_austen_64kb-0930.wav" strip >>"$work/accents.tsv"
code 0 "$SOTTO" eval "$work/accents.tsv" -l en
says "0 of 8" "$work/out"
says "accents taken off in 1 clips" "$work/out"
sed -i 's/strip$//' "$work/accents.tsv"
code 0 "$SOTTO" eval "$work/accents.tsv" -l en
says "2 of 8" "$work/out"
code 0 "$SOTTO" eval "$work/accents.tsv" -l en --strip-accents
says "0 of 8" "$work/out"

echo '{' >"$work/broken.json"
code 4 "$SOTTO" eval "$work/list.tsv" --against "$work/broken.json"
says "broken.json"
echo '{}' >"$work/broken.json"
code 4 "$SOTTO" eval "$work/list.tsv" --against "$work/broken.json"
says "clips"
code 8 "$SOTTO" eval "$work/list.tsv" -o /nonexistent/x
code 8 bash -c "'$SOTTO' eval '$work/list.tsv' >/dev/full"
finish
