// Text that is not a statement, and declarations in the wrong block.
control c(inout bit<8> v) {
    apply {
        v + 1;
        5 = v;
        v == 1;
    }
}
parser p(in bit<8> v) {
    table t { }
    state start { transition accept; }
}
