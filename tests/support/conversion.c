/* SPDX-License-Identifier: MIT */
#include "support/conversion.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/counting_allocator.h"
#include "support/gguf_example.h"

enum sotto_status conversion(const char * in, const char * out, enum sotto_type type,
                             const struct sotto_allocator * allocator) {
    struct sotto_convert_params params = sotto_convert_default_params();
    params.type = type;
    params.allocator = allocator;
    sotto_clear_last_error();
    enum sotto_status status = sotto_convert(in, out, &params);
    assert_int_equal(sotto_last_error(), status);
    return status;
}

void conversion_refused(const char * in, const char * out, enum sotto_type type, enum sotto_status status,
                        const char * word) {
    struct counting_allocator allocator;
    counting_allocator_init(&allocator);
    write_bytes(out, "old", 3);
    enum sotto_status found = conversion(in, out, type, &allocator.base);
    if (found != status || strstr(sotto_last_error_text(), word) == NULL)
        fail_msg("expected %s and '%s', got: %s", sotto_status_name(status), word, sotto_last_error_text());
    assert_int_equal(allocator.held, 0);
    size_t size;
    uint8_t * bytes = read_bytes(out, &size);
    assert_int_equal(size, 3);
    assert_memory_equal(bytes, "old", 3);
    free(bytes);
}
