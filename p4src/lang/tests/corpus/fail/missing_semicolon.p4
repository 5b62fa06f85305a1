const bit<8> a = 1
const bit<8> b = 2;
header h_t {
    bit<8> x
    bit<8> y;
}
control c(inout bit<8> v) {
    apply {
        v = v + 1
        v = v + 2;
        if (v == 3) { v = 4 }
    }
}
