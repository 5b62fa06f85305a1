hedaer h_t { bit<8> x; }
struct s_t { bit<8> ; bit<16> y; }
bit<8> at_top;
table t { }
enum e_t { A B, C }
control c(in bit<8> v, bit<8>) { apply { } }
parser p(packet_in b) { state start { transition accept } }
const bit<8> fine = 1;
const bit<8> not_fine = ;
}
control last() { apply { return 1 2; } }
