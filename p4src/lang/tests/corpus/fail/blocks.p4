control no_apply(inout bit<8> v) {
    action a() { }
}
control late(inout bit<8> v) {
    apply { }
    action a() { }
}
control twice(inout bit<8> v) {
    apply { }
    apply { }
}
parser p(packet_in b) {
    state start {
        transition next;
        bit<8> x;
    }
    state next { transition select(1) { 1 accept; 2: reject; } }
    transition accept;
}
