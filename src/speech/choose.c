/* SPDX-License-Identifier: MIT */
/* Rule 8e says: when timestamps together are more likely than the best text token, text is forbidden. The
 * distribution is then that of the timestamps alone, so the winner's probability grows by 1 / timestamp_sum. Otherwise
 * no single timestamp can beat the best text token, and equal ones go to the lower id, which is text. */
#include <math.h>

#include "choose.h"

static struct sotto_i_choice make(int32_t id, float p, int32_t tid, float p_tid, float sum, bool only_timestamps) {
    struct sotto_i_choice choice = { .id = id, .tid = tid };
    choice.plog = only_timestamps ? log((double)p / (double)sum) : log((double)p);
    choice.pt = sum > 0 ? p_tid / sum : 0.0f;
    choice.ptsum = only_timestamps ? 1.0f : sum;
    return choice;
}

struct sotto_i_choice sotto_i_choose(const struct sotto_i_candidates * c) {
    bool only = c->timestamp_sum > c->p_text;
    return make(only ? c->timestamp : c->text, only ? c->p_timestamp : c->p_text, c->timestamp, c->p_timestamp,
                c->timestamp_sum, only);
}

static struct sotto_i_choice make_ranked(const struct sotto_i_ranking * r, int32_t id, float p, bool only) {
    return make(id, p, r->timestamp[0], r->p_timestamp[0], r->timestamp_sum, only);
}

int sotto_i_choose_best(const struct sotto_i_ranking * ranking, int n, struct sotto_i_choice * choices) {
    const struct sotto_i_ranking * r = ranking;
    bool only = r->timestamp_sum > r->p_text[0];
    int text = 0, timestamp = 0;
    while (text + timestamp < n) {
        bool take_text = !only && r->p_text[text] >= r->p_timestamp[timestamp];
        int32_t id = take_text ? r->text[text] : r->timestamp[timestamp];
        float p = take_text ? r->p_text[text] : r->p_timestamp[timestamp];
        if (!(p > 0))
            break;
        choices[text + timestamp] = make_ranked(r, id, p, only);
        text += take_text;
        timestamp += !take_text;
    }
    return text + timestamp;
}

struct sotto_i_choice sotto_i_choose_drawn(const struct sotto_i_ranking * ranking, const float * probs,
                                           const float * drawn, int n_vocab, int32_t beg, double u) {
    bool only = ranking->timestamp_sum > ranking->p_text[0];
    int32_t first = only ? beg : 0, id = only ? ranking->timestamp[0] : ranking->text[0];
    double all = 0, sum = 0;
    for (int32_t i = first; i < n_vocab; i++)
        all += (double)drawn[i];
    for (int32_t i = first; i < n_vocab && !(sum > u * all); i++) {
        if (drawn[i] > 0 && probs[i] > 0)
            id = i;
        sum += (double)drawn[i];
    }
    return make_ranked(ranking, id, probs[id], only);
}
