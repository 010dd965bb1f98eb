/* SPDX-License-Identifier: MIT */
/* Rule 8e says: when timestamps together are more likely than the best text token, text is forbidden. The
 * distribution is then that of the timestamps alone, so the winner's probability grows by 1 / timestamp_sum. Otherwise
 * no single timestamp can beat the best text token, and equal ones go to the lower id, which is text. */
#include <math.h>

#include "choose.h"

struct sotto_i_choice sotto_i_choose(const struct sotto_i_candidates * c) {
    struct sotto_i_choice choice = { c->text, log((double)c->p_text) };
    if (c->timestamp_sum > c->p_text) {
        choice.id = c->timestamp;
        choice.plog = log((double)c->p_timestamp / (double)c->timestamp_sum);
    }
    return choice;
}
