/* As runtime.h, of what a native .mpy has in its place: enough to compile, not to run. */
#include "py/runtime.h"

typedef struct {
    mp_obj_base_t base;
    int name;
    const void *slots[2];
} mp_obj_full_type_t;
typedef struct {
    mp_obj_t key, value;
} mp_map_elem_t;
typedef struct {
    mp_obj_base_t base;
} mp_obj_fun_bc_t;
typedef struct {
    void *(*memmove_)(void *to, const void *from, size_t bytes);
    void *(*memset_)(void *to, int value, size_t bytes);
} mp_fun_table_t;

extern const mp_fun_table_t mp_fun_table;
void mp_store_global(int name, mp_obj_t value);
mp_obj_t mpy_init(mp_obj_fun_bc_t *self, size_t n_args, size_t n_kw, mp_obj_t *args);

#define MP_OBJ_NEW_QSTR(name) ((mp_obj_t)MP_ROM_QSTR(name))
#define MP_OBJ_TYPE_SET_SLOT(type, slot, value, i) ((type)->slots[i] = (const void *)(value))
#define MP_DYNRUNTIME_INIT_ENTRY (void)self;
#define MP_DYNRUNTIME_INIT_EXIT return mp_const_none;
