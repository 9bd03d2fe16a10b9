{# Declarations that model.h includes. -#}
/* How a snapshot is written and read: some bytes, at most 64, of one of two slots, 0 or 1.  The parts of a slot are
 * written in order, each once, from offset 0, where the callback erases the slot if its storage needs that; they are
 * read in any order.  The slots must not be erased together.  0 is success, anything else an error.  A slot that was never written may read
 * as anything. */
typedef int32_t (*{{ name }}_write_fn)(void *context, int32_t slot, uint32_t offset, const uint8_t *bytes, uint32_t count);
typedef int32_t (*{{ name }}_read_fn)(void *context, int32_t slot, uint32_t offset, uint8_t *bytes, uint32_t count);

/* Write a snapshot of the model to the buffer: {{ macro }}_DONE, or {{ macro }}_SNAPSHOT_INVALID with the buffer unchanged. */
int32_t {{ name }}_save(const {{ name }}_t *s, uint8_t buffer[{{ macro }}_SNAPSHOT_BYTES]);

/* Go on from a snapshot, whoever wrote it: every count and number is checked before anything is copied.
 * {{ macro }}_DONE; {{ macro }}_SNAPSHOT_MISSING, _FOREIGN, _BROKEN or _INVALID with the model unchanged. */
int32_t {{ name }}_load({{ name }}_t *s, const uint8_t buffer[{{ macro }}_SNAPSHOT_BYTES]);

/* Write a snapshot to the slot that does not hold the newest one that is whole and valid, and read it back.  Whenever
 * power is lost, {{ name }}_restore finds the older state or this one.  {{ macro }}_DONE; {{ macro }}_SNAPSHOT_INVALID with
 * nothing written; {{ macro }}_STORAGE_FAILED, where the older state is still there.  Reads up to five slots, writes one. */
int32_t {{ name }}_store(const {{ name }}_t *s, {{ name }}_write_fn write, {{ name }}_read_fn read, void *context);

/* Go on from the newest snapshot that is whole and valid.  {{ macro }}_DONE; {{ macro }}_SNAPSHOT_MISSING, _FOREIGN, _BROKEN,
 * _INVALID or {{ macro }}_STORAGE_FAILED if there is none.  The model is then unchanged; or reset, if storage gave other
 * bytes when they were copied.  Reads up to five slots. */
int32_t {{ name }}_restore({{ name }}_t *s, {{ name }}_read_fn read, void *context);

/* Overwrite all that was learned, samples included, in a way that compilers keep; the model is then reset.  Erase the
 * slots as well. */
void {{ name }}_wipe({{ name }}_t *s);
