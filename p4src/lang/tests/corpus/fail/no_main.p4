#include <core.p4>
control c(inout bit<8> v) { apply { } }
