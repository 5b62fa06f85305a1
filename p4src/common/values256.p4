// Frames of 256 values: 8 blocks of 32. aggregate.p4 declares and applies the blocks by these macros.

const bit<16> VALUES_SUMMED = 256;

#define LAST_BLOCK hdr.values7
#define SUM_BLOCKS \
    SumBlock() sum0; SumBlock() sum1; SumBlock() sum2; SumBlock() sum3; \
    SumBlock() sum4; SumBlock() sum5; SumBlock() sum6; SumBlock() sum7;
#define APPLY_SUM_BLOCKS \
    sum0.apply(hdr.values0, cell, presence); \
    sum1.apply(hdr.values1, cell, presence); \
    sum2.apply(hdr.values2, cell, presence); \
    sum3.apply(hdr.values3, cell, presence); \
    sum4.apply(hdr.values4, cell, presence); \
    sum5.apply(hdr.values5, cell, presence); \
    sum6.apply(hdr.values6, cell, presence); \
    sum7.apply(hdr.values7, cell, presence);
