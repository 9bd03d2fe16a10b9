extern uint32_t pk_crc32(uint32_t crc, const unsigned char *bytes, uint32_t count);
/* CRC-32 of some bytes (IEEE 802.3, the same as zlib's).  crc is the CRC-32 of the bytes before, or 0 at the beginning.
 * The code is small, not fast. */
uint32_t pk_crc32(uint32_t crc, const unsigned char *bytes, uint32_t count)
{
    uint32_t rest = crc ^ 0xFFFFFFFFu;
    /*@ slevel 0; */
    PK_LOOP(9001)
    /*@ loop unroll 0; */
    for (uint32_t i = 0u; i < count; i++) {
        PK_TURN(9001)
        rest ^= bytes[i];
        PK_LOOP(9002)
        /*@ loop unroll 0; */
        for (int32_t bit = 0; bit < 8; bit++) {
            PK_TURN(9002)
            rest = (rest >> 1) ^ (0xEDB88320u & (uint32_t)(0u - (rest & 1u)));
        }
    }
    return rest ^ 0xFFFFFFFFu;
}
