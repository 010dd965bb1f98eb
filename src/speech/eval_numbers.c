/* SPDX-License-Identifier: MIT */
/* The reference's machine over words. What has been counted so far is a number (an integer in decimal digits, of any
 * length) or a string of digits and points; a word either goes on with it or has it written first:
 *
 *     twenty five -> 20, 25            added, since the zero at the end has room
 *     nineteen ninety nine -> 19, 1990, 1999   no room: put side by side, and it is a string from then on
 *     two point five million -> 2, 2., 2.5, 2500000
 *
 * The multipliers are powers of ten, so that multiplying is writing zeros and moving a point. */
#include "speech/eval_numbers.h"

#include <string.h>

#include "speech/eval_unicode.h"

enum kind {
    NO_NUMBER,
    ZERO,
    ONE,          /* 1..19 */
    ONE_SUFFIXED, /* plural or ordinal */
    TEN,
    TEN_SUFFIXED,
    MULTIPLIER, /* number: power of ten */
    MULTIPLIER_SUFFIXED,
    SIGN,     /* number: the character to put in front */
    CURRENCY, /* likewise */
    PER,
    PERCENT,
    AND,
    REPEAT, /* number: how often */
    POINT
};

struct word {
    const char * name;
    enum kind kind;
    uint32_t number;
    const char * suffix;
};

/* clang-format off */
static const struct word WORDS[] = {
    { "o", ZERO, 0, "" }, { "oh", ZERO, 0, "" }, { "zero", ZERO, 0, "" },
    { "one", ONE, 1, "" }, { "two", ONE, 2, "" }, { "three", ONE, 3, "" }, { "four", ONE, 4, "" },
    { "five", ONE, 5, "" }, { "six", ONE, 6, "" }, { "seven", ONE, 7, "" }, { "eight", ONE, 8, "" },
    { "nine", ONE, 9, "" }, { "ten", ONE, 10, "" }, { "eleven", ONE, 11, "" }, { "twelve", ONE, 12, "" },
    { "thirteen", ONE, 13, "" }, { "fourteen", ONE, 14, "" }, { "fifteen", ONE, 15, "" }, { "sixteen", ONE, 16, "" },
    { "seventeen", ONE, 17, "" }, { "eighteen", ONE, 18, "" }, { "nineteen", ONE, 19, "" },
    { "ones", ONE_SUFFIXED, 1, "s" }, { "twos", ONE_SUFFIXED, 2, "s" }, { "threes", ONE_SUFFIXED, 3, "s" },
    { "fours", ONE_SUFFIXED, 4, "s" }, { "fives", ONE_SUFFIXED, 5, "s" }, { "sixes", ONE_SUFFIXED, 6, "s" },
    { "sevens", ONE_SUFFIXED, 7, "s" }, { "eights", ONE_SUFFIXED, 8, "s" }, { "nines", ONE_SUFFIXED, 9, "s" },
    { "tens", ONE_SUFFIXED, 10, "s" }, { "elevens", ONE_SUFFIXED, 11, "s" }, { "twelves", ONE_SUFFIXED, 12, "s" },
    { "thirteens", ONE_SUFFIXED, 13, "s" }, { "fourteens", ONE_SUFFIXED, 14, "s" },
    { "fifteens", ONE_SUFFIXED, 15, "s" }, { "sixteens", ONE_SUFFIXED, 16, "s" },
    { "seventeens", ONE_SUFFIXED, 17, "s" }, { "eighteens", ONE_SUFFIXED, 18, "s" },
    { "nineteens", ONE_SUFFIXED, 19, "s" },
    { "zeroth", ONE_SUFFIXED, 0, "th" }, { "first", ONE_SUFFIXED, 1, "st" }, { "second", ONE_SUFFIXED, 2, "nd" },
    { "third", ONE_SUFFIXED, 3, "rd" }, { "fifth", ONE_SUFFIXED, 5, "th" }, { "twelfth", ONE_SUFFIXED, 12, "th" },
    { "fourth", ONE_SUFFIXED, 4, "th" }, { "sixth", ONE_SUFFIXED, 6, "th" }, { "seventh", ONE_SUFFIXED, 7, "th" },
    { "eighth", ONE_SUFFIXED, 8, "th" }, { "nineth", ONE_SUFFIXED, 9, "th" }, { "tenth", ONE_SUFFIXED, 10, "th" },
    { "eleventh", ONE_SUFFIXED, 11, "th" }, { "thirteenth", ONE_SUFFIXED, 13, "th" },
    { "fourteenth", ONE_SUFFIXED, 14, "th" }, { "fifteenth", ONE_SUFFIXED, 15, "th" },
    { "sixteenth", ONE_SUFFIXED, 16, "th" }, { "seventeenth", ONE_SUFFIXED, 17, "th" },
    { "eighteenth", ONE_SUFFIXED, 18, "th" }, { "nineteenth", ONE_SUFFIXED, 19, "th" },
    { "twenty", TEN, 20, "" }, { "thirty", TEN, 30, "" }, { "forty", TEN, 40, "" }, { "fifty", TEN, 50, "" },
    { "sixty", TEN, 60, "" }, { "seventy", TEN, 70, "" }, { "eighty", TEN, 80, "" }, { "ninety", TEN, 90, "" },
    { "twenties", TEN_SUFFIXED, 20, "s" }, { "thirties", TEN_SUFFIXED, 30, "s" },
    { "forties", TEN_SUFFIXED, 40, "s" }, { "fifties", TEN_SUFFIXED, 50, "s" }, { "sixties", TEN_SUFFIXED, 60, "s" },
    { "seventies", TEN_SUFFIXED, 70, "s" }, { "eighties", TEN_SUFFIXED, 80, "s" },
    { "nineties", TEN_SUFFIXED, 90, "s" }, { "twentieth", TEN_SUFFIXED, 20, "th" },
    { "thirtieth", TEN_SUFFIXED, 30, "th" }, { "fortieth", TEN_SUFFIXED, 40, "th" },
    { "fiftieth", TEN_SUFFIXED, 50, "th" }, { "sixtieth", TEN_SUFFIXED, 60, "th" },
    { "seventieth", TEN_SUFFIXED, 70, "th" }, { "eightieth", TEN_SUFFIXED, 80, "th" },
    { "ninetieth", TEN_SUFFIXED, 90, "th" },
    { "hundred", MULTIPLIER, 2, "" }, { "thousand", MULTIPLIER, 3, "" }, { "million", MULTIPLIER, 6, "" },
    { "billion", MULTIPLIER, 9, "" }, { "trillion", MULTIPLIER, 12, "" }, { "quadrillion", MULTIPLIER, 15, "" },
    { "quintillion", MULTIPLIER, 18, "" }, { "sextillion", MULTIPLIER, 21, "" }, { "septillion", MULTIPLIER, 24, "" },
    { "octillion", MULTIPLIER, 27, "" }, { "nonillion", MULTIPLIER, 30, "" }, { "decillion", MULTIPLIER, 33, "" },
    { "hundreds", MULTIPLIER_SUFFIXED, 2, "s" }, { "thousands", MULTIPLIER_SUFFIXED, 3, "s" },
    { "millions", MULTIPLIER_SUFFIXED, 6, "s" }, { "billions", MULTIPLIER_SUFFIXED, 9, "s" },
    { "trillions", MULTIPLIER_SUFFIXED, 12, "s" }, { "quadrillions", MULTIPLIER_SUFFIXED, 15, "s" },
    { "quintillions", MULTIPLIER_SUFFIXED, 18, "s" }, { "sextillions", MULTIPLIER_SUFFIXED, 21, "s" },
    { "septillions", MULTIPLIER_SUFFIXED, 24, "s" }, { "octillions", MULTIPLIER_SUFFIXED, 27, "s" },
    { "nonillions", MULTIPLIER_SUFFIXED, 30, "s" }, { "decillions", MULTIPLIER_SUFFIXED, 33, "s" },
    { "hundredth", MULTIPLIER_SUFFIXED, 2, "th" }, { "thousandth", MULTIPLIER_SUFFIXED, 3, "th" },
    { "millionth", MULTIPLIER_SUFFIXED, 6, "th" }, { "billionth", MULTIPLIER_SUFFIXED, 9, "th" },
    { "trillionth", MULTIPLIER_SUFFIXED, 12, "th" }, { "quadrillionth", MULTIPLIER_SUFFIXED, 15, "th" },
    { "quintillionth", MULTIPLIER_SUFFIXED, 18, "th" }, { "sextillionth", MULTIPLIER_SUFFIXED, 21, "th" },
    { "septillionth", MULTIPLIER_SUFFIXED, 24, "th" }, { "octillionth", MULTIPLIER_SUFFIXED, 27, "th" },
    { "nonillionth", MULTIPLIER_SUFFIXED, 30, "th" }, { "decillionth", MULTIPLIER_SUFFIXED, 33, "th" },
    { "minus", SIGN, 45, "" }, { "negative", SIGN, 45, "" }, { "plus", SIGN, 43, "" }, { "positive", SIGN, 43, "" },
    { "pound", CURRENCY, 163, "" }, { "pounds", CURRENCY, 163, "" }, { "euro", CURRENCY, 8364, "" },
    { "euros", CURRENCY, 8364, "" }, { "dollar", CURRENCY, 36, "" }, { "dollars", CURRENCY, 36, "" },
    { "cent", CURRENCY, 162, "" }, { "cents", CURRENCY, 162, "" }, { "per", PER, 0, "" },
    { "percent", PERCENT, 0, "" }, { "and", AND, 0, "" }, { "double", REPEAT, 2, "" }, { "triple", REPEAT, 3, "" },
    { "point", POINT, 0, "" },
};
/* clang-format on */

static const struct word NO_WORD = { "", NO_NUMBER, 0, "" };

/* A word of the text, and what it means. */
struct item {
    const uint32_t * points;
    size_t n;
    const struct word * word;
};

enum state { NOTHING, INTEGER, STRING };

struct machine {
    struct sotto_i_points * out;
    enum state state;
    struct sotto_i_points value; /* digits; an INTEGER's without leading zeros */
    uint32_t prefix;             /* 0 = none */
    struct item before, now, next;
    bool skip; /* the next word has been used already */
};

static const struct word * meaning(const uint32_t * points, size_t n) {
    for (size_t i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++) {
        if (sotto_i_spells(points, n, WORDS[i].name))
            return &WORDS[i];
    }
    return &NO_WORD;
}

bool sotto_i_takes_half(const uint32_t * word, size_t n) {
    enum kind kind = meaning(word, n)->kind;
    return kind == ZERO || kind == ONE || kind == TEN || kind == MULTIPLIER;
}

/* ---- digits ---- */

static size_t count_digits(const uint32_t * points, size_t n) {
    size_t i = 0;
    while (i < n && sotto_i_digit_value(points[i]) >= 0)
        i++;
    return i;
}

/* Digits, perhaps a point and more digits. */
static bool is_numeric(const uint32_t * points, size_t n) {
    size_t whole = count_digits(points, n);
    if (whole == 0 || whole == n)
        return whole > 0;
    return points[whole] == '.' && whole + 1 < n && whole + 1 + count_digits(points + whole + 1, n - whole - 1) == n;
}

static bool is_prefix(uint32_t point) {
    return point == '-' || point == '+' || point == '$' || point == 0xA2 || point == 0xA3 || point == 0x20AC;
}

static bool ends_in_zeros(const struct machine * m, size_t n) {
    const struct sotto_i_points * value = &m->value;
    if (value->n == 1 && value->points[0] == '0')
        return true;
    for (size_t i = 1; i <= n; i++) {
        if (i > value->n || value->points[value->n - i] != '0')
            return false;
    }
    return true;
}

static void put_number(struct sotto_i_points * text, uint32_t number) {
    if (number >= 10)
        sotto_i_points_push(text, '0' + number / 10);
    sotto_i_points_push(text, '0' + number % 10);
}

/* The integer that digits spell, with so many zeros behind. They may be the value's own: what is written stays behind
 * what is read. */
static void set_integer(struct machine * m, const uint32_t * points, size_t n, size_t zeros) {
    struct sotto_i_points * value = &m->value;
    value->n = 0;
    for (size_t i = 0; i < n; i++) {
        int digit = sotto_i_digit_value(points[i]);
        if (value->n > 0 || digit > 0)
            sotto_i_points_push(value, '0' + (uint32_t)digit);
    }
    if (value->n == 0)
        zeros = 1;
    for (size_t i = 0; i < zeros; i++)
        sotto_i_points_push(value, '0');
    m->state = INTEGER;
}

/* A number into the zeros at the end of an integer. */
static void fill(struct machine * m, uint32_t number) {
    size_t places = number < 10 ? 1 : 2;
    m->value.n -= places < m->value.n ? places : m->value.n;
    put_number(&m->value, number);
}

/* The value as a string to go on with; an integer of 0 counts as nothing. */
static void become_string(struct machine * m) {
    if (m->state == NOTHING || (m->state == INTEGER && m->value.n == 1 && m->value.points[0] == '0'))
        m->value.n = 0;
    m->state = STRING;
}

static void append(struct machine * m, uint32_t number) {
    put_number(&m->value, number);
    m->state = STRING;
}

/* ---- writing ---- */

static void begin(struct machine * m) {
    if (m->out->n > 0)
        sotto_i_points_push(m->out, ' ');
    if (m->prefix != 0)
        sotto_i_points_push(m->out, m->prefix);
    m->prefix = 0;
}

static void write_value(struct machine * m, const char * suffix) {
    if (m->state == NOTHING)
        return;
    begin(m);
    sotto_i_points_append(m->out, m->value.points, m->value.n);
    sotto_i_points_put(m->out, suffix);
    m->state = NOTHING;
}

/* The value if there is one, then the word as it is. */
static void write_word(struct machine * m) {
    write_value(m, "");
    begin(m);
    sotto_i_points_append(m->out, m->now.points, m->now.n);
}

/* ---- numbers in letters ---- */

static void start(struct machine * m, uint32_t number) {
    m->value.n = 0;
    put_number(&m->value, number);
    m->state = INTEGER;
}

static void take_one(struct machine * m, uint32_t number) {
    bool after_ten = m->before.word->kind == TEN && number < 10;
    if (m->state == NOTHING)
        start(m, number);
    else if (m->state == STRING || m->before.word->kind == ONE) {
        if (after_ten) { /* the zero of the ten */
            m->value.n--;
            m->state = STRING;
        }
        append(m, number);
    } else if (ends_in_zeros(m, number < 10 ? 1 : 2))
        fill(m, number);
    else
        append(m, number);
}

static void take_ten(struct machine * m, uint32_t number) {
    if (m->state == NOTHING)
        start(m, number);
    else if (m->state == INTEGER && ends_in_zeros(m, 2))
        fill(m, number);
    else
        append(m, number);
}

/* A string times a power of ten, if it is a number and that gives an integer. */
static bool scale_string(struct machine * m, size_t power) {
    struct sotto_i_points * value = &m->value;
    size_t whole = count_digits(value->points, value->n);
    size_t fraction = whole < value->n ? value->n - whole - 1 : 0;
    const uint32_t * after = value->points + (whole < value->n ? whole + 1 : whole);
    if (whole < value->n && (value->points[whole] != '.' || count_digits(after, fraction) != fraction))
        return false;
    if (whole + fraction == 0)
        return false;
    while (fraction > 0 && sotto_i_digit_value(after[fraction - 1]) == 0)
        fraction--;
    if (fraction > power)
        return false;
    memmove(value->points + whole, after, fraction * sizeof(uint32_t));
    set_integer(m, value->points, whole + fraction, power - fraction);
    return true;
}

/* The last three digits of an integer times a power of ten. */
static void scale_integer(struct machine * m, size_t power) {
    struct sotto_i_points * value = &m->value;
    size_t n = value->n;
    while (value->n < power + 4 && !value->failed) /* zeros in front: room for what comes */
        sotto_i_points_push(value, '0');
    if (value->failed)
        return;
    size_t more = value->n - n;
    memmove(value->points + more, value->points, n * sizeof(uint32_t));
    for (size_t i = 0; i < more; i++)
        value->points[i] = '0';
    uint32_t carry = 0;
    for (size_t i = value->n - 3; i < value->n; i++) {
        carry = carry * 10 + (value->points[i] - '0');
        value->points[i] = '0';
    }
    for (size_t i = value->n - power; i-- > 0 && carry > 0; carry /= 10) {
        carry += value->points[i] - '0';
        value->points[i] = '0' + carry % 10;
    }
    set_integer(m, value->points, value->n, 0);
}

static void take_multiplier(struct machine * m, size_t power) {
    if (m->state == INTEGER) {
        scale_integer(m, power);
        return;
    }
    if (m->state == STRING && scale_string(m, power))
        return;
    write_value(m, "");
    set_integer(m, (const uint32_t[]){ '1' }, 1, power);
}

/* ---- the other words ---- */

static bool is_counted(const struct item * item) {
    return item->word->kind != NO_NUMBER || is_numeric(item->points, item->n);
}

static void take_special(struct machine * m) {
    enum kind next = m->next.word->kind;
    if (!is_counted(&m->next)) {
        write_word(m);
    } else if (m->now.word->kind == AND) {
        if (m->before.word->kind != MULTIPLIER)
            write_word(m);
    } else if (m->now.word->kind == REPEAT) {
        if (next != ONE && next != ZERO) {
            write_word(m);
            return;
        }
        become_string(m);
        for (uint32_t i = 0; i < m->now.word->number; i++)
            put_number(&m->value, m->next.word->number);
        m->skip = true;
    } else if (next == ZERO || next == ONE || next == TEN || next == NO_NUMBER) {
        become_string(m);
        sotto_i_points_push(&m->value, '.');
    }
}

static void take_sign(struct machine * m) {
    if (!is_counted(&m->next)) {
        write_word(m);
        return;
    }
    write_value(m, "");
    m->prefix = m->now.word->number;
}

static void take_unit(struct machine * m) {
    bool per_cent = m->now.word->kind == PER && sotto_i_spells(m->next.points, m->next.n, "cent");
    if (m->state == NOTHING) {
        write_word(m);
    } else if (m->now.word->kind == CURRENCY) {
        m->prefix = m->now.word->number;
        write_value(m, "");
    } else if (m->now.word->kind == PERCENT || per_cent) {
        write_value(m, "%");
        m->skip = per_cent;
    } else {
        write_word(m);
    }
}

/* Digits in the text, perhaps behind a currency. */
static void take_digits(struct machine * m, bool has_prefix) {
    const uint32_t * points = m->now.points + has_prefix;
    size_t n = m->now.n - has_prefix;
    struct sotto_i_points * value = &m->value;
    if (m->state == STRING && value->n > 0 && value->points[value->n - 1] == '.') {
        sotto_i_points_append(value, m->now.points, m->now.n);
        return;
    }
    write_value(m, "");
    if (has_prefix)
        m->prefix = m->now.points[0];
    size_t whole = count_digits(points, n);
    size_t end = n;
    while (end > whole + 1 && sotto_i_digit_value(points[end - 1]) == 0)
        end--;
    if (end <= whole + 1) {
        set_integer(m, points, whole, 0);
        return;
    }
    value->n = 0;
    sotto_i_points_append(value, points, n);
    m->state = STRING;
}

static void take(struct machine * m) {
    bool has_prefix = is_prefix(m->now.points[0]);
    const struct word * word = m->now.word;
    if (is_numeric(m->now.points + has_prefix, m->now.n - has_prefix)) {
        take_digits(m, has_prefix);
        return;
    }
    switch (word->kind) {
    case NO_NUMBER: write_word(m); break;
    case ZERO:
        become_string(m);
        sotto_i_points_push(&m->value, '0');
        break;
    case ONE:
    case ONE_SUFFIXED: take_one(m, word->number); break;
    case TEN:
    case TEN_SUFFIXED: take_ten(m, word->number); break;
    case MULTIPLIER:
    case MULTIPLIER_SUFFIXED: take_multiplier(m, word->number); break;
    case SIGN: take_sign(m); break;
    case CURRENCY:
    case PER:
    case PERCENT: take_unit(m); break;
    case AND:
    case REPEAT:
    case POINT: take_special(m); break;
    }
    if (word->suffix[0] != 0)
        write_value(m, word->suffix);
}

static struct item next_item(const struct sotto_i_points * in, size_t * at) {
    while (*at < in->n && sotto_i_is_space(in->points[*at]))
        (*at)++;
    size_t first = *at;
    while (*at < in->n && !sotto_i_is_space(in->points[*at]))
        (*at)++;
    if (*at == first)
        return (struct item){ NULL, 0, &NO_WORD };
    const uint32_t * points = in->points + first;
    return (struct item){ points, *at - first, meaning(points, *at - first) };
}

void sotto_i_numbers(const struct sotto_i_points * in, struct sotto_i_points * out) {
    struct machine m = { .out = out, .value = { .allocator = out->allocator } };
    size_t at = 0;
    m.now = (struct item){ NULL, 0, &NO_WORD };
    for (m.next = next_item(in, &at); m.next.n > 0 && !m.value.failed;) {
        m.before = m.now;
        m.now = m.next;
        m.next = next_item(in, &at);
        if (m.skip)
            m.skip = false;
        else
            take(&m);
    }
    write_value(&m, "");
    out->failed = out->failed || m.value.failed;
    sotto_i_points_free(&m.value);
}
