{# Declarations that model.h includes. -#}
/* Your two callbacks: they write and read a part of a slot.  A slot is a place in your storage for one snapshot, for
 * example one flash page.  There are two slots, 0 and 1.  Erasing one slot must not erase the other.
 * A call writes or reads count bytes at an offset of a slot; count is at most 64.
 * Writing begins at offset 0 and goes on in order, each part once; or the first part stays alone.  If your storage must
 * be erased, erase the slot when offset is 0.  Reading can be in any order.  A slot that was never written may contain any bytes.
 * Return 0 for success, and any other number for an error. */
typedef int32_t (*{{ name }}_write_fn)(void *context, int32_t slot, uint32_t offset, const uint8_t *bytes, uint32_t count);
typedef int32_t (*{{ name }}_read_fn)(void *context, int32_t slot, uint32_t offset, uint8_t *bytes, uint32_t count);

/* Write a snapshot of the model to the buffer.
 * Returns {{ macro }}_DONE, or {{ macro }}_SNAPSHOT_INVALID with the buffer unchanged. */
{{ calls.save }};

/* Replace the model with the snapshot in the buffer.  The snapshot need not be trusted: this function checks every
 * number before it changes the model.
 * Returns {{ macro }}_DONE, or {{ macro }}_SNAPSHOT_MISSING, _FORMAT, _FOREIGN, _BROKEN or _INVALID with the model unchanged. */
{{ calls.load }};

/* Write a snapshot of the model to a slot, and read the slot back.  The newest good snapshot is in the other slot and
 * stays there, so if power is lost during this call, {{ name }}_restore finds the old snapshot or the new one.
 * Returns {{ macro }}_DONE.  If the model is damaged, returns {{ macro }}_SNAPSHOT_INVALID and writes nothing.
 * If the result is {{ macro }}_STORAGE_FAILED, the old snapshot is still there: call this function again.
 * A slot that gives different bytes at each reading, or cannot be read, is overwritten if the other slot is good.
 * If both slots are good, the call reads a whole slot three times.  After each of these readings, it checks the numbers
 * of the snapshot, and reads some parts of the slot again for this check.  It writes one slot.  A slot without a good
 * snapshot is read twelve times.  The call never makes more than 72 readings and checks. */
{{ calls.store }};

/* Replace the model with the newest good snapshot of the two slots.
 * Returns {{ macro }}_DONE.  If no slot has a good snapshot, returns the reason: {{ macro }}_SNAPSHOT_MISSING, _FORMAT,
 * _FOREIGN, _BROKEN, _INVALID or {{ macro }}_STORAGE_FAILED.  After STORAGE_FAILED call this function again: a slot that
 * could not be read may be good.  If no snapshot is loaded, the model is unchanged, with one exception: if a slot was good
 * when it was checked and bad when it was copied, the model is reset.
 * If both slots are good, the call reads a whole slot three times.  After the first two readings, it checks the numbers
 * of the snapshot, and reads some parts of the slot again for this check.  A slot without a good snapshot is read
 * twelve times.  The call never makes more than 72 readings and checks. */
{{ calls.restore }};

/* Overwrite the whole memory with zeros, including the samples that the model keeps.  No compiler removes these writes.
 * The model is then reset.  Erase the slots as well: this function does not erase them. */
{{ calls.wipe }};
