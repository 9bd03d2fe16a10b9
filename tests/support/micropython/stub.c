/* A few of MicroPython's objects, and what the test calls through cffi.  Nothing is freed: a test's process ends soon. */
#include "py/runtime.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

const mp_obj_type_t mp_type_type, mp_type_list, mp_type_tuple, mp_type_module, mp_type_fun;
static const mp_obj_type_t type_int, type_float, type_array;
const mp_obj_base_t stub_none;

typedef struct {
    mp_obj_base_t base;
    mp_float_t value;
} real_t;
typedef struct {
    mp_obj_base_t base;
    size_t bytes;
    int typecode, writable;
    void *items;
} array_t;

static jmp_buf caught;
static const char *said;
static int raised; /* 1: ValueError, 2: TypeError */

extern const mp_obj_module_t *const stub_module;

void *stub_new(size_t bytes, const mp_obj_type_t *type)
{
    mp_obj_base_t *made = malloc(bytes);
    memset(made, 0xA5, bytes); /* as what was there before */
    made->type = type;
    return made;
}

static _Noreturn void fail(int kind, const char *text)
{
    said = text;
    raised = kind;
    longjmp(caught, 1);
}

void mp_raise_ValueError(mp_rom_error_text_t text) { fail(1, text); }
void *m_malloc(size_t bytes) { return malloc(bytes); }

void mp_arg_check_num(size_t n_args, size_t n_kw, size_t least, size_t most, int takes_kw)
{
    if (n_args < least || n_args > most || (n_kw != 0 && !takes_kw)) {
        fail(2, "another number of arguments");
    }
}

static int is_small(mp_const_obj_t object) { return ((mp_uint_t)object & 1u) != 0u; }

const mp_obj_type_t *mp_obj_get_type(mp_const_obj_t object)
{
    return is_small(object) ? &type_int : ((const mp_obj_base_t *)object)->type;
}

void mp_get_buffer_raise(mp_obj_t object, mp_buffer_info_t *found, mp_uint_t flags)
{
    array_t *array = object;
    if (mp_obj_get_type(object) != &type_array || ((flags & MP_BUFFER_WRITE) && !array->writable)) {
        fail(2, "object with buffer protocol required");
    }
    *found = (mp_buffer_info_t){array->items, array->bytes, array->typecode};
}

void mp_obj_get_array(mp_obj_t object, size_t *count, mp_obj_t **items)
{
    mp_obj_tuple_t *tuple = object;
    *count = tuple->len;
    *items = tuple->items;
}

mp_int_t mp_obj_get_int(mp_const_obj_t object)
{
    if (!is_small(object)) {
        fail(2, "can't convert to int");
    }
    return (mp_int_t)object >> 1;
}

mp_float_t mp_obj_get_float(mp_obj_t object)
{
    if ((mp_obj_get_type(object) == &type_float)) {
        return ((real_t *)object)->value;
    }
    if (!is_small(object)) {
        fail(2, "can't convert to float");
    }
    return (mp_float_t)mp_obj_get_int(object);
}

mp_obj_t mp_obj_new_float(mp_float_t value)
{
    real_t *made = stub_new(sizeof *made, &type_float);
    made->value = value;
    return made;
}

mp_obj_t mp_obj_new_int(mp_int_t value) { return MP_OBJ_NEW_SMALL_INT(value); }
mp_obj_t mp_obj_new_int_from_uint(mp_uint_t value) { return MP_OBJ_NEW_SMALL_INT(value); }

static mp_obj_t several(const mp_obj_type_t *type, size_t count, const mp_obj_t *items)
{
    mp_obj_tuple_t *made = stub_new(sizeof *made + count * sizeof(mp_obj_t), type);
    made->len = count;
    for (size_t i = 0; i < count; i++) {
        made->items[i] = items != NULL ? items[i] : NULL;
    }
    return made;
}

mp_obj_t mp_obj_new_tuple(size_t count, const mp_obj_t *items) { return several(&mp_type_tuple, count, items); }

/* ------------------------------------------------------------------------------------------------ for the test */

mp_obj_t stub_array(void *items, size_t bytes, int typecode, int writable)
{
    array_t *made = stub_new(sizeof *made, &type_array);
    made->bytes = bytes;
    made->typecode = typecode;
    made->writable = writable;
    made->items = items;
    return made;
}

mp_obj_t mp_obj_new_bytes(const uint8_t *bytes, size_t count)
{
    return stub_array(memcpy(malloc(count), bytes, count), count, 'B', 0);
}

mp_obj_t stub_float(double value) { return mp_obj_new_float((mp_float_t)value); }
mp_obj_t stub_int(int64_t value) { return MP_OBJ_NEW_SMALL_INT(value); }
mp_obj_t stub_list(size_t count, mp_obj_t *items) { return several(&mp_type_list, count, items); }
mp_obj_t stub_nothing(void) { return mp_const_none; }

/* 0: None, 1: an int, 2: a float, 3: a tuple, 4: an array */
int stub_kind(mp_obj_t object)
{
    return is_small(object) ? 1 : (mp_obj_get_type(object) == &type_float) ? 2 : (mp_obj_get_type(object) == &mp_type_tuple) ? 3
        : (mp_obj_get_type(object) == &type_array) ? 4 : 0;
}

double stub_real(mp_obj_t object) { return (double)mp_obj_get_float(object); }
int64_t stub_whole(mp_obj_t object) { return mp_obj_get_int(object); }
size_t stub_length(mp_obj_t tuple) { return ((mp_obj_tuple_t *)tuple)->len; }
mp_obj_t stub_item(mp_obj_t tuple, size_t i) { return ((mp_obj_tuple_t *)tuple)->items[i]; }
void *stub_items(mp_obj_t array) { return ((array_t *)array)->items; }
size_t stub_bytes(mp_obj_t array) { return ((array_t *)array)->bytes; }
const char *stub_said(void) { return said; }
int stub_raised(void) { return raised; }

static const void *looked_up(const mp_obj_dict_t *dict, int name)
{
    for (size_t i = 0; i < dict->used; i++) {
        if (dict->table[i].key == MP_ROM_QSTR(name)) {
            return dict->table[i].value;
        }
    }
    return NULL;
}

/* A constant of the module, or NULL. */
mp_obj_t stub_global(int name) { return (mp_obj_t)looked_up(stub_module->globals, name); }

/* Model(...), or a method of a model; NULL if it raised. */
mp_obj_t stub_call(int name, size_t count, const mp_obj_t *args)
{
    const mp_obj_type_t *type = looked_up(stub_module->globals, MP_QSTR_Model);
    raised = 0;
    if (setjmp(caught) != 0) {
        return NULL;
    }
    if (name == MP_QSTR_Model) {
        return type->make_new(type, count, 0, args);
    }
    const mp_obj_fun_t *method = looked_up(type->locals_dict, name);
    mp_arg_check_num(count, 0, method->least, method->most, 0);
    return method->one != NULL ? method->one(args[0]) : method->two != NULL ? method->two(args[0], args[1])
        : method->several(count, args);
}
