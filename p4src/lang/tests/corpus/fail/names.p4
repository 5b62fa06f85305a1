// Names that are not declared, or declared twice; the message proposes the name that may be meant.
#include <core.p4>
header eth_t { bit<48> source; bit<16> kind; bit<16> kind; }
struct headers_t { eth_t ethernet; }
extern Counter { Counter(bit<32> size); void count(in bit<8> index); }
bit<8> twice(in bit<8> v) { return 2 * v; }
control c(inout headers_t hdr, inout bit<8> v) {
    Counter(16) hits;
    Countr(16) misses;
    action set(bit<8> value) { v = value; }
    table t {
        key = { hdr.ethernet.kindd : exct; }
        actions = { sett; NoAction; }
        default_action = set(valeu = 1);
    }
    apply {
        hdr.ethernte.kind = 1;
        v = twcie(v);
        hits.cuont(1);
        t.aply();
        v = early;
        bit<8> n = 1;
        bit<8> n = 2;
        bit<8> w = n;
        hdr.ethernet.isvalid();
        hits.count(indx = 1);
    }
}
const bit<8> early = 1;
parser p(packet_in b, out headers_t hdr) {
    state start { b.extract(hdr.ethernet); transition select(hdr.ethernet.kind) { 1: pares_ip; default: accept; } }
    state parse_ip { verify(false, error.PacketToShort); transition acept; }
}
