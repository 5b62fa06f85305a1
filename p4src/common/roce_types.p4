// Types and constants of RoceIn and RoceOut, and the fields that the ICRC covers: docs/rdma.md, "Sums by the switch".

const bit<16> ROCE_UDP_PORT = 4791;

// Opcodes of an unreliable connection (IBA 9.2.1).
const bit<8> UC_SEND_ONLY = 0x24;
const bit<8> UC_WRITE_ONLY_WITH_IMMEDIATE = 0x2B;

const bit<16> ROCE_PARTITION = 0xFFFF;

// Bytes of 256 values, and of an answer to a probe. Each cell of a worker's region has space for both.
const bit<32> ROCE_VALUES_LENGTH = 1024;
const bit<32> ROCE_ANSWER_LENGTH = 16;
// Offset from the announced base to the answer to a registration: -16 bytes.
const bit<64> ROCE_BEFORE_PLACES = 0xFFFFFFFFFFFFFFF0;

// IPv4 lengths: with IPv4, UDP, BTH, RETH, immediate, ICRC; also values; also an answer; a registration (no RETH, immediate).
const bit<16> ROCE_WRITE_TOTAL = 20 + 8 + 12 + 16 + 4 + 4;
const bit<16> ROCE_VALUES_TOTAL = ROCE_WRITE_TOTAL + 1024;
const bit<16> ROCE_ANSWER_TOTAL = ROCE_WRITE_TOTAL + 16;
const bit<16> ROCE_HELLO_TOTAL = 20 + 8 + 12 + 32 + 4;

// The upper bits of an UPDATE's rkey. The lower bits are slot and version.
const bit<15> ROCE_UPDATE_KEY = 0x2BA2;

const bit<32> ROCE_HELLO_MAGIC = 0x57454952;
const bit<8> ROCE_HELLO_VERSION = 1;
// The upper bits of the immediate in the answer to a registration. No sum has all four flags.
const bit<4> ROCE_HELLO_ANSWERED = 0xF;

// Classes of a packet in a program that sums RoCEv2. Ingress passes only the first three to egress.
const bit<3> ROCE_NONE = 0;
// A SUM made by this switch: copies for registered ranks become WRITEs.
const bit<3> ROCE_SUM = 1;
// A registration, which goes back to its sender with the answer.
const bit<3> ROCE_HELLO = 2;
// An UPDATE that arrived as a WRITE, and one that arrived by UDP.
const bit<3> ROCE_UPDATE = 3;
const bit<3> ROCE_UPDATE_UDP = 4;

// Indexes of Tally `outcomes`, which counts RoCEv2 packets by what RoceIn did with them.
const bit<8> ROCE_UPDATED = 0;
const bit<8> ROCE_REGISTERED = 1;
// No worker has the destination queue pair, or a worker at another port has it.
const bit<8> ROCE_STRANGER = 2;
const bit<8> ROCE_WRONG_ICRC = 3;
const bit<8> ROCE_MALFORMED = 4;
// The packet has another operation, such as a CNP.
const bit<8> ROCE_OTHER = 5;

// Queue pair and region of a worker. The plan numbers workers by `contact`, the index of the registers.
struct roce_contact_t {
    bit<32> qpn;
    // When RoceContacts stores: the first PSN that the worker announced. When it reads: the next PSN.
    bit<32> psn;
    bit<32> remote_key;
    bit<64> base;
}

// The fields that the ICRC covers, in order (IBA A17.3.3). Ones replace the local route header, which Ethernet lacks, and
// fields that change on the path. Each field stands alone, since BMv2 accepts no headers in a list of fields.
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
