#define PLUS(a, b) ((a) + (b))
const bit<8> width = PLUS(1, 2) ;
const bit<8> wrong = PLUS(1, 2) 3;
#line 500 "generated.p4"
const bit<8> also_wrong = PLUS(1,
    2) 3;
#line 8 "in_macro.p4"
#define LONG_MACRO_NAME 5
#define NOTHING
const bit<8> behind = LONG_MACRO_NAME + ; const bit<8> fine = 1;
const NOTHING bit<8> after_nothing = ;
#define DOUBLE(a) ((a) + )
const bit<8> within = DOUBLE(1); // a comment
const bit<8> twice = NOTHING LONG_MACRO_NAME LONG_MACRO_NAME;
