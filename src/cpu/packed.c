/* SPDX-License-Identifier: MIT */
/* The buffer type of packed weights (layout: packed.h). Set and get move whole rows and lose nothing, since elements
 * only change place. A row of a panel is one lane: every 16th element. */
#include "cpu/packed.h"

#include <string.h>

#include "core/checked.h"
#include "core/tensor_impl.h"
#include "cpu/advise.h"
#include "cpu/buffer.h"
#include "cpu/panel.h"

enum { PANEL = SOTTO_CPU_PANEL };

/* ---- where rows lie ---- */

static const struct sotto_tensor * owner_of(const struct sotto_tensor * t) { return t->view_src ? t->view_src : t; }

static bool packable(enum sotto_type type) { return sotto_i_is_weight_type(type); }

static int64_t panels_per_matrix(const struct sotto_tensor * owner) {
    return owner->ne[1] / PANEL + (owner->ne[1] % PANEL != 0);
}

/* Row (0, i2, i3) of `t`, counted in the owner's standard layout. */
static int64_t owner_row(const struct sotto_tensor * t, int64_t i2, int64_t i3) {
    return (int64_t)((t->view_offs + (size_t)i2 * t->nb[2] + (size_t)i3 * t->nb[3]) / owner_of(t)->nb[1]);
}

static char * panel_at(const struct sotto_tensor * owner, int64_t panel) {
    return (char *)owner->data + (size_t)panel * PANEL * owner->nb[1];
}

/* Where the owner's row `row` lies. */
struct lane {
    char * panel;
    int lane;
};

static struct lane lane_at(const struct sotto_tensor * owner, int64_t row) {
    const int64_t panel = row / owner->ne[1] * panels_per_matrix(owner) + row % owner->ne[1] / PANEL;
    return (struct lane){ panel_at(owner, panel), (int)(row % owner->ne[1] % PANEL) };
}

static int64_t blocks_per_row(const struct sotto_tensor * t) {
    return t->ne[0] / sotto_get_type_traits(t->type)->blck_size;
}

bool sotto_i_packed_readable(const struct sotto_tensor * t) {
    const struct sotto_tensor * owner = owner_of(t);
    if (!packable(owner->type) || t->type != owner->type) {
        return false;
    }
    if (t == owner || sotto_is_empty(t)) {
        return true;
    }
    const size_t row = owner->nb[1];
    if (t->ne[0] != owner->ne[0] || t->nb[0] != owner->nb[0] || (t->ne[1] > 1 && t->nb[1] != row) ||
        t->view_offs % row != 0) {
        return false;
    }
    /* matrices are apart by whole panels if the owner has no part-filled panel inside, else by whole matrices */
    const bool gaps = owner->ne[1] % PANEL != 0 && owner->ne[2] * owner->ne[3] > 1;
    const size_t unit = (gaps ? (size_t)owner->ne[1] : (size_t)PANEL) * row;
    const int64_t first = owner_row(t, 0, 0) % owner->ne[1];
    return first % PANEL == 0 && (!gaps || first + t->ne[1] <= owner->ne[1]) &&
           (t->ne[2] == 1 || t->nb[2] % unit == 0) && (t->ne[3] == 1 || t->nb[3] % unit == 0);
}

const void * sotto_i_packed_matrix(const struct sotto_tensor * t, int64_t i2, int64_t i3) {
    return lane_at(owner_of(t), owner_row(t, i2, i3)).panel;
}

void sotto_i_packed_get(const struct sotto_tensor * t, int64_t i1, int64_t i2, int64_t i3, int64_t l0, int64_t n,
                        void * dst) {
    const int64_t block = sotto_get_type_traits(t->type)->blck_size;
    const struct lane at = lane_at(owner_of(t), owner_row(t, i2, i3) + i1);
    sotto_i_panel_get(t->type, at.panel, at.lane, l0 / block, n / block, dst);
}

/* ---- the buffer ---- */

static enum sotto_status init_tensor(sotto_backend_buffer_t buffer, struct sotto_tensor * t) {
    (void)buffer;
    if (!packable(t->type)) {
        return sotto_fail(SOTTO_E_TYPE,
                          "packed buffer: tensor '%s' is %s; only floats and quantised weights can be packed, place it "
                          "in a plain buffer",
                          t->name, sotto_type_name(t->type));
    }
    return SOTTO_OK;
}

/* Rows [*first, *first + *count) that a transfer of `size` bytes at `offset` touches; LAYOUT unless rows are whole. */
static enum sotto_status rows_of(const char * function, const struct sotto_tensor * t, size_t offset, size_t size,
                                 int64_t * first, int64_t * count) {
    const size_t row = t->nb[1];
    if (!sotto_i_packed_readable(t) || !sotto_is_contiguous(t)) {
        return sotto_fail(SOTTO_E_LAYOUT,
                          "%s: '%s' is a view of packed weights that does not begin with a panel of %d "
                          "rows or has gaps; use the owner of the storage",
                          function, t->name, PANEL);
    }
    if (row == 0 || offset % row != 0 || size % row != 0) {
        return sotto_fail(SOTTO_E_LAYOUT, "%s: packed '%s' moves whole rows of %zu bytes, not %zu bytes at %zu",
                          function, t->name, row, size, offset);
    }
    *first = (int64_t)(offset / row);
    *count = (int64_t)(size / row);
    return SOTTO_OK;
}

/* Row number `row` of a contiguous tensor. */
static struct lane lane_of(const struct sotto_tensor * t, int64_t row) {
    return lane_at(owner_of(t), owner_row(t, 0, 0) + row);
}

static enum sotto_status set_tensor(sotto_backend_buffer_t buffer, struct sotto_tensor * t, const void * data,
                                    size_t offset, size_t size) {
    (void)buffer;
    int64_t first, count;
    const enum sotto_status status = rows_of("tensor_set", t, offset, size, &first, &count);
    if (status != SOTTO_OK) {
        return status;
    }
    const struct sotto_tensor * owner = owner_of(t);
    const int64_t base = owner_row(t, 0, 0);
    for (int64_t r = 0; r < count; r++) {
        const struct lane at = lane_of(t, first + r);
        sotto_i_panel_set(t->type, at.panel, at.lane, 0, blocks_per_row(t), (const char *)data + (size_t)r * t->nb[1]);
        const bool last = (base + first + r) % owner->ne[1] == owner->ne[1] - 1;
        for (int lane = at.lane + 1; last && lane < PANEL; lane++) {
            sotto_i_panel_clear(t->type, at.panel, lane, blocks_per_row(t));
        }
    }
    return SOTTO_OK;
}

static enum sotto_status get_tensor(sotto_backend_buffer_t buffer, const struct sotto_tensor * t, void * data,
                                    size_t offset, size_t size) {
    (void)buffer;
    int64_t first, count;
    const enum sotto_status status = rows_of("tensor_get", t, offset, size, &first, &count);
    for (int64_t r = 0; status == SOTTO_OK && r < count; r++) {
        const struct lane at = lane_of(t, first + r);
        sotto_i_panel_get(t->type, at.panel, at.lane, 0, blocks_per_row(t), (char *)data + (size_t)r * t->nb[1]);
    }
    return status;
}

static size_t get_alloc_size(sotto_backend_buffer_type_t buft, const struct sotto_tensor * t) {
    (void)buft;
    if (!packable(t->type) || sotto_is_empty(t)) {
        return sotto_nbytes(t);
    }
    size_t size = sotto_row_size(t->type, t->ne[0]);
    if (!sotto_i_mul(size, (size_t)panels_per_matrix(t) * PANEL, &size) ||
        !sotto_i_mul(size, (size_t)t->ne[2], &size) || !sotto_i_mul(size, (size_t)t->ne[3], &size)) {
        sotto_fail(SOTTO_E_MEMORY, "packed buffer: the size of '%s' overflows", t->name);
        return SIZE_MAX;
    }
    return size;
}

/* Between whole packed tensors: panels as they are. */
static bool copy_tensor(sotto_backend_buffer_t buffer, const struct sotto_tensor * src, struct sotto_tensor * dst) {
    (void)buffer;
    if (!sotto_i_is_packed(src) || !sotto_i_is_packed(dst) || src->view_src || dst->view_src ||
        src->type != dst->type || !sotto_are_same_shape(src, dst)) {
        return false;
    }
    memcpy(dst->data, src->data, get_alloc_size(NULL, src));
    return true;
}

/* ---- the buffer type ---- */

static const char * get_name(sotto_backend_buffer_type_t buft) {
    (void)buft;
    return "CPU_Packed";
}

static sotto_backend_buffer_t alloc_buffer(sotto_backend_buffer_type_t buft, size_t size,
                                           const struct sotto_allocator * allocator) {
    static const struct sotto_i_buffer_iface iface = {
        .free_buffer = sotto_i_cpu_buffer_free,
        .get_base = sotto_i_cpu_buffer_base,
        .init_tensor = init_tensor,
        .set_tensor = set_tensor,
        .get_tensor = get_tensor,
        .copy_tensor = copy_tensor,
        .clear = sotto_i_cpu_buffer_clear,
    };
    sotto_backend_buffer_t buffer = sotto_i_cpu_buffer_new(buft, &iface, size, allocator);
    if (buffer) {
        sotto_i_advise_large_pages(sotto_i_cpu_buffer_base(buffer), size);
    }
    return buffer;
}

static bool is_host(sotto_backend_buffer_type_t buft) {
    (void)buft;
    return false;
}

sotto_backend_buffer_type_t sotto_backend_cpu_packed_buffer_type(void) {
    static struct sotto_backend_buffer_type type = {
        .iface = {
            .get_name = get_name,
            .alloc_buffer = alloc_buffer,
            .get_alignment = sotto_i_cpu_buffer_alignment,
            .get_alloc_size = get_alloc_size,
            .is_host = is_host,
        },
    };
    return &type;
}

bool sotto_i_is_packed(const struct sotto_tensor * t) {
    const struct sotto_backend_buffer * buffer = owner_of(t)->buffer;
    return buffer && buffer->buft == sotto_backend_cpu_packed_buffer_type();
}
