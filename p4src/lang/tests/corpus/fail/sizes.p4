// Types whose sizes are beyond the limits: too large, or 0.
#include <core.p4>
header h_t { bit<8> a; }
struct s_t { h_t[5000000000] many; h_t[0] none; bit<99999> wide; int<0> no_sign; }
const bit<70000> c = 0;
