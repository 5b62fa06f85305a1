header table { bit<8> x; }
struct s_t { bit<8> in; }
control c(inout bit<8> action) { apply { } }
const bit<8> transition = 1;
