control c(inout bit<8> v) {
    action a() {
        v = 1;
    apply {
        v = f(1, (2;
        v = 3;
    }
}
const bit<8> x = 1;
