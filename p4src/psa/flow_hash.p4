// CRC-32 (IEEE 802.3) of a flow's addresses, protocol and ports, 13 bytes in this order. controller/scenario computes it, too.

control FlowHash(in ipv4_t src, in ipv4_t dst, in bit<8> protocol, in bit<32> ports, out bit<32> result) {
    Hash<bit<32>>(PSA_HashAlgorithm_t.CRC32) crc;
    apply {
        result = crc.get_hash({ src, dst, protocol, ports });
    }
}
