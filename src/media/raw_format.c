/* SPDX-License-Identifier: MIT */
/* "s16le:16000:1", taken apart. */
#include <string.h>

#include "media/media_impl.h"

/* A number after a colon, or the end of the text, where `number` keeps its default. */
static bool read_number(const char ** at, int least, int most, int * number) {
    if (**at == 0)
        return true;
    if (**at != ':')
        return false;
    int x = 0;
    const char * digit = *at + 1;
    for (; *digit >= '0' && *digit <= '9' && x <= most; digit++)
        x = 10 * x + (*digit - '0');
    *at = digit;
    *number = x;
    return x >= least && x <= most;
}

enum sotto_status sotto_raw_format_parse(const char * text, struct sotto_raw_format * format) {
    if (text == NULL || format == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_raw_format_parse: %s is NULL", text == NULL ? "text" : "format");
    struct sotto_raw_format f = { .size = sizeof(f), .rate = 16000, .channels = 1 };
    const char * at = text + strcspn(text, ":");
    if (!sotto_i_pcm_named(text, (size_t)(at - text), &f.coding, &f.big_endian) ||
        !read_number(&at, MEDIA_MIN_RATE, MEDIA_MAX_RATE, &f.rate) ||
        !read_number(&at, 1, MEDIA_MAX_CHANNELS, &f.channels) || *at != 0)
        return sotto_fail(SOTTO_E_PARAM,
                          "sotto_raw_format_parse: '%s' does not say how samples are coded; it should look like "
                          "s16le:16000:1 (u8, s16, s24, s32, s64, f32, f64 with le or be, alaw, mulaw; 1000 to 768000 "
                          "Hz; 1 to 64 channels)",
                          text);
    *format = f;
    return SOTTO_OK;
}
