#include "dir/b.p4"
#if N > 3 && defined(D)
const bit<N> x = F(2);
#else
const bit<8> x = 8w0xff;
#endif
//FILE dir/b.p4
#pragma once
#define N 8
#define F(x) ((x) + G(x))
#define G(x) (x * 2)
