// Frames of 64 values: 2 blocks of 32. aggregate.p4 declares and applies the blocks by these macros.

const bit<16> VALUES_SUMMED = 64;

#define LAST_BLOCK hdr.values1
#define SUM_BLOCKS \
    SumBlock() sum0; SumBlock() sum1;
#define APPLY_SUM_BLOCKS \
    sum0.apply(hdr.values0, cell, presence); \
    sum1.apply(hdr.values1, cell, presence);
