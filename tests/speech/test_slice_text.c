/* SPDX-License-Identifier: MIT */
/* Texts of segments where characters lie in two tokens, or in two segments (case O02). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "speech/model.h"
#include "speech/slice_text.h"
#include "support/tiny_model.h"

static struct sotto_model * model;

/* Ids of bytes; '|' stands for the two timestamps between segments. The tiny model has tokens for single bytes and for
 * all pairs; bytes are taken one by one, or two by two. */
static int make(const char * text, size_t step, int32_t * tokens, struct sotto_i_cut * cut) {
    const int32_t beg = sotto_token_special(model, SOTTO_TOKEN_BEG);
    int n = 0;
    cut->n = 1;
    cut->slices[0] = (struct sotto_i_slice){ 0, 0, 0, 100 };
    tokens[n++] = beg;
    while (*text != 0) {
        if (*text == '|') {
            tokens[n++] = beg + 50;
            cut->slices[cut->n - 1].end = n;
            cut->slices[cut->n++] = (struct sotto_i_slice){ n, n, 100, 200 };
            tokens[n++] = beg + 50;
            text++;
            continue;
        }
        size_t got, size = text[1] != 0 && text[1] != '|' && step == 2 ? 2 : 1;
        assert_int_equal(sotto_tokenize(model, text, size, tokens + n, 4, &got), SOTTO_OK);
        n += (int)got;
        text += size;
    }
    tokens[n++] = beg + 100;
    cut->slices[cut->n - 1].end = n;
    return n;
}

/* The texts of `given`'s segments, with '|' between, are `expected`; `empty` >= 0: that segment has no length. */
static void gives(const char * given, const char * expected, int empty) {
    for (size_t step = 1; step <= 2; step++) {
        int32_t tokens[128];
        struct sotto_i_cut cut;
        struct sotto_i_bytes text = { 0 };
        char all[256] = "";
        make(given, step, tokens, &cut);
        if (empty >= 0)
            cut.slices[empty].t1 = cut.slices[empty].t0;
        const struct sotto_i_slices slices = { model->tokenizer, sotto_token_special(model, SOTTO_TOKEN_EOT), tokens,
                                               &cut };
        for (int i = 0; i < cut.n; i++) {
            assert_int_equal(sotto_i_slice_text(&slices, i, &text, sotto_default_allocator()), SOTTO_OK);
            assert_int_equal(strlen(text.data), text.size);
            strcat(strcat(all, i > 0 ? "|" : ""), text.data);
        }
        assert_string_equal(all, expected);
        sotto_mfree(sotto_default_allocator(), text.data, text.capacity, 1);
    }
}

static void one_segment(void ** state) {
    (void)state;
    gives(" a\xE4\xBD\xA0 b", " a\xE4\xBD\xA0 b", -1);
    gives("", "", -1);
}

static void cut_inside_a_character(void ** state) {
    (void)state;
    gives(" a\xE4|\xBD\xA0 b", " a\xE4\xBD\xA0| b", -1);
    gives(" a\xE4\xBD|\xA0 b", " a\xE4\xBD\xA0| b", -1);
    gives("\xC3|\xA9", "\xC3\xA9|", -1);
    gives("\xF0|\x9F\x98\x80x|y", "\xF0\x9F\x98\x80|x|y", -1);
    gives("a\xC3|\xA9\xC3|\xA9", "a\xC3\xA9|\xC3\xA9|", -1);
}

static void nothing_to_complete(void ** state) {
    (void)state;
    gives("a|b", "a|b", -1);
    gives("\xE4\xBD\xA0|\xE5\xA5\xBD", "\xE4\xBD\xA0|\xE5\xA5\xBD", -1);
    gives("a\xE4\xBD|b", "a\xE4\xBD|b", -1);                 /* another character follows */
    gives("a\xE4|\xBD", "a\xE4|\xBD", -1);                   /* not enough of it */
    gives("a\xF0|\x9F|\x98\x80", "a\xF0|\x9F|\x98\x80", -1); /* over three segments */
    gives("a\x80|\x80", "a\x80|\x80", -1);                   /* no beginning */
    gives("a\xFF|\x80", "a\xFF|\x80", -1);
    gives("a\xC3|\xA9 b", "a\xC3|\xA9 b", 0); /* the first one is not shown */
}

static int begin(void ** state) {
    (void)state;
    return tiny_model() == NULL || sotto_model_open(tiny_model(), NULL, &model) != SOTTO_OK;
}

static int end(void ** state) {
    (void)state;
    sotto_model_free(model);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_segment),
        cmocka_unit_test(cut_inside_a_character),
        cmocka_unit_test(nothing_to_complete),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
