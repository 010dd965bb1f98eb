# SPDX-License-Identifier: MIT
"""Normalisers equal to PyPI's whisper-normalizer, its table of British spellings apart, and counts equal to jiwer's.

Texts are drawn from a seed, which is printed; give another as argument.
"""
import os
import random
import subprocess
import sys
import unicodedata

import jiwer
import whisper_normalizer.english
from whisper_normalizer.basic import BasicTextNormalizer

LINES = os.path.join(os.environ["SOTTO_BUILD"], "tests", "eval_lines")

NUMBERS = """zero o oh one two three four five six seven eight nine ten eleven twelve thirteen fourteen nineteen twenty
thirty forty fifty sixty ninety hundred thousand million billion trillion decillion ones twos sixes tens twenties
nineties zeroth first second third fourth fifth eighth ninth twelfth twentieth fiftieth hundreds millions hundredth
thousandth minus negative plus positive pound pounds euro euros dollar dollars cent cents per percent and double triple
point""".split()
DIGITS = """0 1 2 7 10 11 19 20 100 1000 007 2.5 1.0 0.36 0.05 3.14 1,000 1,2,3 12,345,678 1960s 10th 2nd 1st 10km b747 1s
1.5 $2 $2.50 $0.36 £5 €20 ¢7 $1 50% % 5 % 192.168.0.1 $ £ .5 5. ½ ² ① ١٢ $0x12""".split()
WORDS = """the cat sat house Mister John's it's they're we'd been he's gone she'd done it's got won't can't let's ain't
y'all wanna gotta gonna I'ma imma woulda coulda shoulda ma'am Mr Mrs St Dr Prof Capt Gov Ald Gen Sen Rep Pres Rev Hon
Asst Assoc Lt Col Jr Sr Esq I'm you've don't isn't I'll 'tis hmm mm mhm mmm uh um uh-huh and a half miles of an street
café naïve Ærø straße œuvre ÞORN łódź ﬁne x² I'd he'd ' '' rock'n'roll per cent kilometres""".split()
MARKS = [",", ".", "...", "!", "?", ";", ":", "-", "--", "(aside)", "[noise]", "<unk>", "(", ")", "[", "]", "<", ">", "()",
         "\"", "“quote”", "’", "/", "&", "@", "#", "+", "=", "_", "*", "♪", "™", "\t", "  ", "\u00a0", "\u2028"]
LETTERS = {
    "es": "abcdefghijlmnñopqrstuvzáéíóúü¿¡ÁÉÑ",
    "fr": "abcdefghijlmnopqrstuvzàâçéèêëîïôùûœæÀÇÉŒ«»’",
    "it": "abcdefghilmnopqrstuvzàèéìòùÀÈ",
    "ru": "абвгдеёжзийклмнопрстуфхцчшщъыьэюяЁЙ",
    "de": "abcdefghijklmnopqrstuvwxyzäöüßÄÖÜẞ",
    "el": "αβγδεζηθικλμνξοπρστυφχψωςΣΑΌή",
    "hi": "अआइईउऊकखगघचजटडतदनपबमयरलवशसहािीुूेैोौ्ंः",
    "ko": "가각한글뷁ᄀ각",
    "zh": "中文的一是了我不人在他有这個們來到時說神豈",
    "ja": "あいうえおがぎパピｱﾞカ日本語",
    "th": "กขคงจฉชซญดตถทนบปผฝพฟมยรลวสหอำาิีึืุู่้",
    "lo": "ກຂຄງຈສຊຍດຕຖທນບປຳ່້",
    "my": "ကခဂဃငစဆဇညတထဒဓနပဖဗမယရလဝသဟအိီုူေ်ွှ",
    "yue": "係唔嘅佢哋咗喺",
}
SPLIT = {"zh", "ja", "th", "lo", "my", "yue"}


def answers(lines, *arguments):
    data = "".join(line + "\n" for line in lines).encode()
    made = subprocess.run([LINES, *arguments], input=data, stdout=subprocess.PIPE, check=True).stdout
    out = made.decode().split("\n")
    assert out.pop() == "" and len(out) == len(lines), f"{len(lines)} lines in, {len(out)} out"
    return out


def compare(lines, reference, *arguments):
    """All lines give what the reference gives; those it fails on are left out."""
    wanted = {}
    for line in lines:
        try:
            wanted[line] = reference(line)
        except (AssertionError, ValueError, TypeError):
            continue
    kept = [line for line in lines if line in wanted and "\n" not in wanted[line]]
    assert len(kept) > 0.99 * len(lines), f"the reference fails on {len(lines) - len(kept)} of {len(lines)}"
    wrong = [(a, wanted[a], b) for a, b in zip(kept, answers(kept, *arguments)) if wanted[a] != b]
    for line, want, got in wrong[:10]:
        print(f"{' '.join(arguments)}: {line!a}\n    wanted {want!a}\n    got    {got!a}", file=sys.stderr)
    assert not wrong, f"{len(wrong)} of {len(kept)} texts differ"
    print(f"{' '.join(arguments)}: {len(kept)} texts equal")


def english_lines(rng, n):
    for _ in range(n):
        pools = rng.choice([[NUMBERS], [NUMBERS, DIGITS], [WORDS, NUMBERS], [WORDS, MARKS], [NUMBERS, WORDS, DIGITS, MARKS]])
        words = [rng.choice(rng.choice(pools)) for _ in range(rng.randint(1, 14))]
        text = "".join(word + rng.choice([" "] * 12 + [", ", ". ", "-", ""]) for word in words)
        yield rng.choice([str, str, str.upper, str.title])(text)


def other_lines(rng, letters, n):
    for _ in range(n):
        words = []
        for _ in range(rng.randint(1, 10)):
            words.append("".join(rng.choice(letters) for _ in range(rng.randint(1, 8))))
            if rng.random() < 0.3:
                words.append(rng.choice(MARKS + DIGITS))
        yield unicodedata.normalize(rng.choice(["NFC", "NFD", "NFKD"]), " ".join(words))


def every_character():
    """Each character this interpreter knows, between letters and behind marks, sixteen a line."""
    points = [p for p in range(0x110000) if p != 0x0A and not 0xD800 <= p < 0xE000 and unicodedata.category(chr(p)) != "Cn"]
    for first in range(0, len(points), 16):
        yield " ".join(f"a{chr(point)}e\u0327{chr(point)}\u0301" for point in points[first:first + 16])


def word_pairs(rng, n):
    """References and what a recogniser might make of them, few words so that many repeat."""
    for _ in range(n):
        words = [rng.choice("abcdefgh"[:rng.randint(2, 8)]) * rng.randint(1, 2) for _ in range(rng.randint(1, 30))]
        other = []
        for word in words:
            other += rng.choice([[word]] * 6 + [[], [word, word], ["x"], [rng.choice("abc"), word]])
        if rng.random() < 0.3:
            rng.shuffle(other)
        yield " ".join(words), " ".join(other)


def compare_counts(pairs, process, *arguments):
    lines = [f"{reference}\t{hypothesis}" for reference, hypothesis in pairs]
    for (reference, hypothesis), got in zip(pairs, answers(lines, *arguments)):
        m = process(reference, hypothesis)
        want = f"{m.hits} {m.substitutions} {m.deletions} {m.insertions}"
        assert got == want, f"{arguments[0]} of {reference!r} and {hypothesis!r}: {got}, jiwer {want}"
    print(f"{arguments[0]}: counts of {len(pairs)} pairs equal")


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 20261201
    print(f"seed {seed}")
    rng = random.Random(seed)
    # its table of spellings is fetched from the network when one is made: words alone instead
    whisper_normalizer.english.EnglishSpellingNormalizer = lambda: lambda text: " ".join(text.split())
    english = whisper_normalizer.english.EnglishTextNormalizer()
    lines = list(english_lines(rng, 6000))
    compare(lines, english, "normalise", "en")
    for language, letters in LETTERS.items():
        lines = list(other_lines(rng, letters, 300))
        compare(lines, BasicTextNormalizer(split_letters=language in SPLIT), "normalise", language)
        compare(lines, BasicTextNormalizer(remove_diacritics=True, split_letters=language in SPLIT), "normalise",
                language, "strip")
    if unicodedata.unidata_version == "14.0.0":   # that of the tables
        lines = list(every_character())
        compare(lines, BasicTextNormalizer(), "normalise", "fr")
        compare(lines, BasicTextNormalizer(remove_diacritics=True), "normalise", "fr", "strip")
    pairs = list(word_pairs(rng, 1000))
    compare_counts(pairs, jiwer.process_words, "words")
    compare_counts(pairs, jiwer.process_characters, "characters")


main()
