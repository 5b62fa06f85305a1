// CRC-32 (IEEE 802.3) of a flow's addresses, protocol and ports: 13 bytes, as they stand here. controller/scenario reckons the same.

control FlowHash(in ipv4_t src, in ipv4_t dst, in bit<8> protocol, in bit<32> ports, out bit<32> result) {
    apply {
        // Modulo 2^32: all of it.
        hash(result, HashAlgorithm.crc32, 32w0, { src, dst, protocol, ports }, 64w0x100000000);
    }
}
