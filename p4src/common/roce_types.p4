// Words shared by RoceIn and RoceOut, and what of a RoCEv2 packet of theirs the ICRC covers: docs/rdma.md, "Sums by the switch".

const bit<16> ROCE_UDP_PORT = 4791;

// Opcodes of an unreliable connection (IBA 9.2.1).
const bit<8> UC_SEND_ONLY = 0x24;
const bit<8> UC_WRITE_ONLY_WITH_IMMEDIATE = 0x2B;

const bit<16> ROCE_PARTITION = 0xFFFF;

// Of values, four bytes each, and of what answers a question. A worker's region has room for both for each cell.
const bit<32> ROCE_VALUES_LENGTH = 1024;
const bit<32> ROCE_ANSWER_LENGTH = 16;
// What answers a registration is 16 bytes before the base that it tells.
const bit<64> ROCE_BEFORE_PLACES = 0xFFFFFFFFFFFFFFF0;

// IPv4, UDP, BTH, RETH, immediate, ICRC; with values; and a registration, which has neither RETH nor immediate.
const bit<16> ROCE_WRITE_TOTAL = 20 + 8 + 12 + 16 + 4 + 4;
const bit<16> ROCE_VALUES_TOTAL = ROCE_WRITE_TOTAL + 1024;
const bit<16> ROCE_ANSWER_TOTAL = ROCE_WRITE_TOTAL + 16;
const bit<16> ROCE_HELLO_TOTAL = 20 + 8 + 12 + 32 + 4;

// The upper bits of an update's rkey; below are slot and version.
const bit<15> ROCE_UPDATE_KEY = 0x2BA2;

const bit<32> ROCE_HELLO_MAGIC = 0x57454952;
const bit<8> ROCE_HELLO_VERSION = 1;
// The upper bits of the immediate that answers a registration: no sum has all four flags.
const bit<4> ROCE_HELLO_ANSWERED = 0xF;

// What a packet is to a switch that sums RoCEv2. Egress learns of the first three.
const bit<3> ROCE_NONE = 0;
// A sum that was made here, for ranks that have registered.
const bit<3> ROCE_SUM = 1;
// A registration, which goes back to its sender.
const bit<3> ROCE_HELLO = 2;
// An update, by WRITE or by UDP.
const bit<3> ROCE_UPDATE = 3;
const bit<3> ROCE_UPDATE_UDP = 4;

// Indexes of Tally `outcomes`.
const bit<8> ROCE_UPDATED = 0;
const bit<8> ROCE_REGISTERED = 1;
// Its QPN is nobody's, or another port's.
const bit<8> ROCE_STRANGER = 2;
const bit<8> ROCE_WRONG_ICRC = 3;
const bit<8> ROCE_MALFORMED = 4;
// Of another operation, such as a CNP.
const bit<8> ROCE_OTHER = 5;

// A worker's queue pair and region: the number `contact` of each is the plan's.
struct roce_contact_t {
    bit<32> qpn;
    // Told: the one to begin with. Read: the next.
    bit<32> psn;
    bit<32> remote_key;
    bit<64> base;
}

// What of a packet the ICRC covers (IBA A17.3.3), in order: a local route header, which Ethernet has not, and what may change on
// the way count as ones. Fields by themselves: BMv2's lists of fields hold no headers.
#define ROCE_NETWORK \
    64w0xFFFFFFFFFFFFFFFF, \
    hdr.ipv4.version, hdr.ipv4.ihl, 8w0xFF, hdr.ipv4.total_len, \
    hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.frag_offset, \
    8w0xFF, hdr.ipv4.protocol, 16w0xFFFF, hdr.ipv4.src, hdr.ipv4.dst, \
    hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.length, 16w0xFFFF, \
    hdr.roce.opcode, hdr.roce.solicited, hdr.roce.migration, hdr.roce.pad_count, hdr.roce.version, \
    hdr.roce.partition_key, 8w0xFF, hdr.roce.dest_qp, hdr.roce.ack_request, hdr.roce.reserved2, hdr.roce.psn
#define ROCE_WRITE \
    hdr.reth.address, hdr.reth.remote_key, hdr.reth.length, \
    hdr.roce_immediate.flags, hdr.roce_immediate.scale, hdr.roce_immediate.next_scale, hdr.roce_immediate.chunk
#define ROCE_ANSWER \
    hdr.roce_answer.contributors, hdr.roce_answer.worker, hdr.roce_answer.transmission, hdr.roce_answer.zero
#define ROCE_REGISTRATION \
    hdr.roce_hello.magic, hdr.roce_hello.version, hdr.roce_hello.worker, hdr.roce_hello.job, hdr.roce_hello.qpn, \
    hdr.roce_hello.psn, hdr.roce_hello.base, hdr.roce_hello.remote_key, hdr.roce_hello.window
#define ROCE_8(V, A, B, C, D, E, F, G, H) \
    hdr.V.v##A, hdr.V.v##B, hdr.V.v##C, hdr.V.v##D, hdr.V.v##E, hdr.V.v##F, hdr.V.v##G, hdr.V.v##H
#define ROCE_BLOCK(V) \
    ROCE_8(V, 0, 1, 2, 3, 4, 5, 6, 7), ROCE_8(V, 8, 9, 10, 11, 12, 13, 14, 15), \
    ROCE_8(V, 16, 17, 18, 19, 20, 21, 22, 23), ROCE_8(V, 24, 25, 26, 27, 28, 29, 30, 31)
#define ROCE_VALUES \
    ROCE_BLOCK(values0), ROCE_BLOCK(values1), ROCE_BLOCK(values2), ROCE_BLOCK(values3), \
    ROCE_BLOCK(values4), ROCE_BLOCK(values5), ROCE_BLOCK(values6), ROCE_BLOCK(values7)
