#define PLUS(a, b) ((a) + (b))
const bit<8> width = PLUS(1, 2) ;
const bit<8> wrong = PLUS(1, 2) 3;
#line 500 "generated.p4"
const bit<8> also_wrong = PLUS(1,
    2) 3;
