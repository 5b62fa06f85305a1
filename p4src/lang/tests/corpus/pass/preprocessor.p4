// features: the preprocessor
#include <core.p4>
#ifndef _CORE_P4_
#error the include files keep their customary guards
#endif
#define WIDTH 8
#define FIELD(type, name) type name##_f;
#define FIELDS FIELD(bit<WIDTH>, first) FIELD(bit<WIDTH>, \
    second)
#if defined(WIDTH) && WIDTH * 2 == 16 // always
header h_t { FIELDS }
#elif 1 / 0
#error not evaluated
#endif
const string text = "WIDTH // stays";
control c(inout h_t h) { apply { h.first_f = h.second_f + __LINE__; } }
control C(inout h_t h);
package P(C c);
P(c()) main;
