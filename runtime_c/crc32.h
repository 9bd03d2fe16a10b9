/* CRC-32 (IEEE 802.3, as zlib's) of some bytes, going on from that of the bytes before, or 0; slow and small. */
static uint32_t pk_crc32(uint32_t crc, const unsigned char *bytes, uint32_t count)
{
    crc ^= UINT32_C(0xFFFFFFFF);
    for (uint32_t i = 0u; i < count; i++) {
        crc ^= bytes[i];
        for (int32_t bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (UINT32_C(0xEDB88320) & (uint32_t)(0u - (crc & 1u)));
        }
    }
    return crc ^ UINT32_C(0xFFFFFFFF);
}
