/* SPDX-License-Identifier: MIT */
/* Errors that one thread met and another returns. */
#ifndef SOTTO_CORE_STATUS_IMPL_H
#define SOTTO_CORE_STATUS_IMPL_H

#include "sotto/status.h"

/* Make what sotto_last_error_text() said on another thread the last error of this one. It is not logged again. */
void sotto_i_take_error(enum sotto_status status, const char * text);

#endif
