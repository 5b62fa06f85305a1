// CRC-32 (IEEE 802.3) of a flow's addresses, protocol and ports, 13 bytes in this order. controller/scenario computes it, too.

control FlowHash(in ipv4_t src, in ipv4_t dst, in bit<8> protocol, in bit<32> ports, out bit<32> result) {
    apply {
        // The maximum of 2^32 keeps all 32 bits of the CRC.
        hash(result, HashAlgorithm.crc32, 32w0, { src, dst, protocol, ports }, 64w0x100000000);
    }
}
