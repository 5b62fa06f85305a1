#include "nowhere.p4"
#define F(a) a
#frobnicate
#if 1 +
#endif
#error nothing more
const bit<8> x = F(1, 2);
#else
#ifdef NEVER_CLOSED
