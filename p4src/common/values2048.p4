// Frames of 2,048 values: 64 blocks of 32, for links with an MTU of 9,000. aggregate.p4 declares and applies the blocks by
// these macros.

const bit<16> VALUES_SUMMED = 2048;

#define DECLARE_BLOCK(N) SumBlock() sum##N;
#define APPLY_BLOCK(N) sum##N.apply(hdr.values##N, cell, presence);
// DO for the ten blocks T0 to T9.
#define TEN_BLOCKS(DO, T) DO(T##0) DO(T##1) DO(T##2) DO(T##3) DO(T##4) DO(T##5) DO(T##6) DO(T##7) DO(T##8) DO(T##9)
#define ALL_BLOCKS(DO) \
    DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) \
    TEN_BLOCKS(DO, 1) TEN_BLOCKS(DO, 2) TEN_BLOCKS(DO, 3) TEN_BLOCKS(DO, 4) TEN_BLOCKS(DO, 5) \
    DO(60) DO(61) DO(62) DO(63)

#define LAST_BLOCK hdr.values63
#define SUM_BLOCKS ALL_BLOCKS(DECLARE_BLOCK)
#define APPLY_SUM_BLOCKS ALL_BLOCKS(APPLY_BLOCK)
