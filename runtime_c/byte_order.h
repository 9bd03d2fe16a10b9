/* The memory's bytes are taken as they lie. */
#if defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__) && (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
#error "the state's bytes are defined for little-endian targets"
#endif
