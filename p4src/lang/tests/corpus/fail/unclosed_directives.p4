#define F(a) a
#ifdef F
  #if 1
const bit<8> x = F(1, 2);
const bit<8> y = 1 + F(1
