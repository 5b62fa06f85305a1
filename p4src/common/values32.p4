// Frames of 32 values: one block of 32. aggregate.p4 declares and applies the blocks by these macros.

const bit<16> VALUES_SUMMED = 32;

#define LAST_BLOCK hdr.values0
#define SUM_BLOCKS \
    SumBlock() sum0;
#define APPLY_SUM_BLOCKS \
    sum0.apply(hdr.values0, cell, presence);
