/* What generated modules use of MicroPython's interface, written for the tests: enough to compile such a module, and to run it
 * with stub.c in place of an interpreter.  Only names and meanings are MicroPython's.
 */
#ifndef STUB_RUNTIME_H
#define STUB_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names.h" /* MP_QSTR_*, which the test lists as MicroPython's build does */

#define MICROPY_PY_BUILTINS_FLOAT 1
#define MICROPY_FLOAT_IMPL_FLOAT 1
#define MICROPY_FLOAT_IMPL_DOUBLE 2
#define MICROPY_FLOAT_IMPL STUB_FLOAT

typedef intptr_t mp_int_t;
typedef uintptr_t mp_uint_t;
#if STUB_FLOAT == MICROPY_FLOAT_IMPL_DOUBLE
typedef double mp_float_t;
#else
typedef float mp_float_t;
#endif
typedef void *mp_obj_t;
typedef const void *mp_const_obj_t;
typedef const char *mp_rom_error_text_t;

typedef struct mp_obj_type_t mp_obj_type_t;
typedef struct {
    const mp_obj_type_t *type;
} mp_obj_base_t;
typedef struct {
    const void *key, *value;
} mp_rom_map_elem_t;
typedef struct {
    mp_obj_base_t base;
    size_t used;
    const mp_rom_map_elem_t *table;
} mp_obj_dict_t;
struct mp_obj_type_t {
    mp_obj_base_t base;
    int flags, name;
    mp_obj_t (*make_new)(const mp_obj_type_t *type, size_t n_args, size_t n_kw, const mp_obj_t *args);
    const void *locals_dict;
};
typedef struct {
    mp_obj_base_t base;
    mp_obj_dict_t *globals;
} mp_obj_module_t;
typedef struct {
    mp_obj_base_t base;
    size_t least, most; /* arguments; least is 0 if there is one function for each number */
    mp_obj_t (*one)(mp_obj_t);
    mp_obj_t (*two)(mp_obj_t, mp_obj_t);
    mp_obj_t (*several)(size_t, const mp_obj_t *);
} mp_obj_fun_t;
typedef struct {
    mp_obj_base_t base;
    size_t len;
    mp_obj_t items[];
} mp_obj_tuple_t;
typedef struct {
    void *buf;
    size_t len;
    int typecode;
} mp_buffer_info_t;

extern const mp_obj_type_t mp_type_type, mp_type_list, mp_type_tuple, mp_type_module, mp_type_fun;
extern const mp_obj_base_t stub_none;

#define mp_const_none ((mp_obj_t)&stub_none)
#define MP_TYPE_FLAG_NONE 0
#define MP_BUFFER_READ 1
#define MP_BUFFER_WRITE 2
#define MP_ERROR_TEXT(text) text
#define MP_OBJ_TO_PTR(object) ((void *)(object))
#define MP_OBJ_FROM_PTR(pointer) ((mp_obj_t)(pointer))
#define MP_OBJ_NEW_SMALL_INT(value) ((mp_obj_t)(((mp_uint_t)(mp_int_t)(value) << 1) | 1u))
#define MP_ROM_QSTR(name) ((const void *)(((mp_uint_t)(name) << 3) | 2u))
#define MP_ROM_INT(value) MP_OBJ_NEW_SMALL_INT(value)
#define MP_ROM_PTR(pointer) (pointer)
#define MP_DEFINE_CONST_DICT(dict, of) \
    const mp_obj_dict_t dict = {{&mp_type_type}, sizeof of / sizeof of[0], (const mp_rom_map_elem_t *)of}
#define MP_DEFINE_CONST_FUN_OBJ_1(object, f) const mp_obj_fun_t object = {{&mp_type_fun}, 1, 1, f, NULL, NULL}
#define MP_DEFINE_CONST_FUN_OBJ_2(object, f) const mp_obj_fun_t object = {{&mp_type_fun}, 2, 2, NULL, f, NULL}
#define MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(object, n, m, f) \
    const mp_obj_fun_t object = {{&mp_type_fun}, n, m, NULL, NULL, f}
#define MP_DEFINE_CONST_OBJ_TYPE(object, named, flagged, slot, value, other, another) \
    const mp_obj_type_t object = {.base = {&mp_type_type}, .flags = flagged, .name = named, .slot = value, .other = another}
#define MP_REGISTER_MODULE(named, module) const mp_obj_module_t *const stub_module = &module
#define mp_obj_malloc(kind, of) ((kind *)stub_new(sizeof(kind), of))

void *stub_new(size_t bytes, const mp_obj_type_t *type);
_Noreturn void mp_raise_ValueError(mp_rom_error_text_t text);
void mp_arg_check_num(size_t n_args, size_t n_kw, size_t least, size_t most, int takes_kw);
const mp_obj_type_t *mp_obj_get_type(mp_const_obj_t object);
void *m_malloc(size_t bytes);
void mp_get_buffer_raise(mp_obj_t object, mp_buffer_info_t *found, mp_uint_t flags);
void mp_obj_get_array(mp_obj_t object, size_t *count, mp_obj_t **items);
mp_int_t mp_obj_get_int(mp_const_obj_t object);
mp_float_t mp_obj_get_float(mp_obj_t object);
mp_obj_t mp_obj_new_float(mp_float_t value);
mp_obj_t mp_obj_new_int(mp_int_t value);
mp_obj_t mp_obj_new_int_from_uint(mp_uint_t value);
mp_obj_t mp_obj_new_tuple(size_t count, const mp_obj_t *items);
mp_obj_t mp_obj_new_bytes(const uint8_t *bytes, size_t count);

#endif
