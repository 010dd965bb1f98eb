#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What the command line says to calls that make no sense, and what needs no model.
source "$(dirname "$0")/lib.sh"

code 2 "$SOTTO"
says "sotto transcribe [options] FILE..."
code 2 "$SOTTO" frobnicate
says "frobnicate: no such command"
code 0 "$SOTTO" help
says "sotto convert" "$work/out"
for command in transcribe eval convert quantize inspect imatrix models help completion; do
    code 0 "$SOTTO" help $command
    says "sotto $command" "$work/out"
done
code 0 "$SOTTO" transcribe --help
says "--language LANG" "$work/out"
code 0 "$SOTTO" convert -h
says "--type TYPE" "$work/out"
code 2 "$SOTTO" help frobnicate

code 2 "$SOTTO" transcribe
says "arguments are missing"
code 2 "$SOTTO" transcribe --frobnicate x.wav
says "no such option"
code 2 "$SOTTO" transcribe --lang en x.wav
says "no such option"
code 2 "$SOTTO" transcribe -x x.wav
code 2 "$SOTTO" transcribe x.wav -m
says "its value is missing"
for number in 0 -1 513 two 1.5 99999999999999999999 ""; do
    code 2 "$SOTTO" transcribe -t "$number" x.wav
    says "--threads takes a number from 1 to 512"
done
for format in "" sr txt\|jsonl tx txt, ,txt txt,,srt; do
    code 2 "$SOTTO" transcribe --format="$format" x.wav
    says "--format takes some of txt|srt|vtt|tsv|csv|lrc|json|json-full|jsonl"
done
for raw in "" s16 s16le:0 s16le:16000:0 wav; do
    code 2 "$SOTTO" transcribe --raw "$raw" x.raw
    says "s16le:16000:1"
done
for option in "--temperature abc" "--temperature -1" "--temperature nan" "--temperature-inc inf" "--no-speech-thold 1.5" \
    "--beam-size 0" "--beam-size 17" "--best-of x" "--offset-t -5" "--duration 1s" "--clip a" "--clip 1,,2" "--clip -1,2" \
    "--language-detection-segments 0" "--language-detection-threshold 2" "--suppress-tokens ," "--suppress-tokens 1," \
    "--suppress-tokens 1;2" "--suppress-tokens -1" "--suppress-tokens 99999999999" "--prompt-tokens x" "--entropy-thold -1" \
    "--no-repeat-ngram -1" "--max-initial-ts x" "--no-early-end=1" \
    "--pad-mode one" "--max-tokens 300" "--max-context -2" "-t abc" "-t 0" "--model" "--prompt" "--no-progress=1"; do
    # shellcheck disable=SC2086
    code 2 "$SOTTO" transcribe x.wav $option
done
code 2 "$SOTTO" transcribe --output a --output-dir b x.wav
says "contradict"
code 2 "$SOTTO" transcribe --format txt,srt -o - x.wav
code 2 "$SOTTO" transcribe --format srt -o a.srt x.wav y.wav
says "--output-dir"
code 2 "$SOTTO" transcribe --format json,json-full x.wav
says "same file"
code 2 "$SOTTO" transcribe --format txt --output-dir "$work" a/x.wav b/x.mp3
says "a/x.wav and b/x.mp3 would be written to the same file"

# words from a file
printf -- '--frobnicate\r\n\nx.wav' >"$work/words"
code 2 "$SOTTO" transcribe "@$work/words"
says "--frobnicate: no such option"
printf 'help\ntranscribe\n' >"$work/words"
code 0 "$SOTTO" "@$work/words"
says "--language LANG" "$work/out"
code 2 "$SOTTO" transcribe "@$work/absent"
says "absent"
code 2 "$SOTTO" transcribe "@$work"
yes -- --no-timestamps | head -n 3000 >"$work/words" || true
echo -x >>"$work/words"
code 2 "$SOTTO" transcribe "@$work/words"
says "-x: no such option"

# manual page and completion
code 0 "$SOTTO" help --man
says ".TH SOTTO 1" "$work/out"
says '\fB\-\-no\-speech\-thold\fR' "$work/out"
code 0 "$SOTTO" completion bash
cp "$work/out" "$work/completion"
cat >>"$work/completion" <<'END'
COMP_WORDS=(sotto transcribe --format js) COMP_CWORD=3
_sotto
echo "${COMPREPLY[@]}"
COMP_WORDS=(sotto tr) COMP_CWORD=1
_sotto
echo "${COMPREPLY[@]}"
COMP_WORDS=(sotto eval --str) COMP_CWORD=2
_sotto
echo "${COMPREPLY[@]}"
END
code 0 bash "$work/completion"
empty "$work/err"
printf 'json json-full jsonl\ntranscribe\n--strip-accents\n' >"$work/expected"
same "$work/out" "$work/expected"
code 0 "$SOTTO" completion zsh
says "#compdef sotto" "$work/out"
if command -v zsh >/dev/null; then
    zsh -n "$work/out"
fi
code 2 "$SOTTO" completion fish
code 8 bash -c "'$SOTTO' completion bash >/dev/full"

code 2 "$SOTTO" transcribe -l klingon x.wav
says "'klingon' is no language"
code 2 "$SOTTO" transcribe --help=yes x.wav
says "takes no value"

code 3 "$SOTTO" transcribe -m /nonexistent/model.gguf x.wav
says "/nonexistent/model.gguf"
SOTTO_MODELS=$work code 3 "$SOTTO" transcribe x.wav
says "$work/base.gguf"
says "make demo"
printf 'RIFF....WAVE' >"$work/sound.gguf"
code 3 "$SOTTO" transcribe -m "$work/sound.gguf" x.wav
says "sound.gguf"

SOTTO_MODELS=$work code 0 "$SOTTO" models path tiny
echo "$work/tiny.gguf" >"$work/expected"
same "$work/out" "$work/expected"
SOTTO_MODELS='' HOME=$work code 0 "$SOTTO" models path tiny
echo "$work/.cache/sotto/models/tiny.gguf" >"$work/expected"
same "$work/out" "$work/expected"
SOTTO_MODELS='' HOME='' code 3 "$SOTTO" models path tiny
code 2 "$SOTTO" models path ../tiny
code 2 "$SOTTO" models where tiny
code 2 "$SOTTO" models path
code 2 "$SOTTO" models path a b

code 2 "$SOTTO" convert in
code 2 "$SOTTO" convert in out more
code 2 "$SOTTO" convert in out --type q9_9
says "'q9_9' is no type of weights; there are f32 f16 q4_0 q4_1"
code 3 "$SOTTO" convert /nonexistent "$work/x.gguf"
says "SOTTO_E_IO"
mkdir "$work/empty"
code 3 "$SOTTO" convert "$work/empty" "$work/x.gguf"
says "SOTTO_E_MODEL_FORMAT"
code 3 "$SOTTO" convert "$work/sound.gguf" "$work/x.gguf"
says "SOTTO_E_MODEL_FORMAT"
printf 'GGUF' >"$work/cut.gguf"
code 3 "$SOTTO" convert "$work/cut.gguf" "$work/x.gguf"
says "SOTTO_E_MODEL_TRUNCATED"
printf 'lmgg' >"$work/cut.bin"
code 3 "$SOTTO" convert "$work/cut.bin" "$work/x.gguf"
says "SOTTO_E_MODEL_TRUNCATED"
[ ! -e "$work/x.gguf" ]
finish
