// Constants shared by Aggregate and the small controls that each externs.p4 defines for it.

// How a packet relates to the cell's owner.
typedef bit<2> age_t;
const age_t AGE_STALE = 0;
const age_t AGE_SAME = 1;
const age_t AGE_NEW = 2;

// What a cell does with a packet's contents.
typedef bit<2> slot_op_t;
const slot_op_t SLOT_SET = 0;
const slot_op_t SLOT_MERGE = 1;
const slot_op_t SLOT_READ = 2;

// Indexes of Tally `outcomes`.
const bit<8> OUTCOME_ABSORBED = 0;
const bit<8> OUTCOME_COMPLETED = 1;
const bit<8> OUTCOME_AGAIN = 2;
const bit<8> OUTCOME_DUPLICATE = 3;
const bit<8> OUTCOME_STALE = 4;
const bit<8> OUTCOME_FOREIGN = 5;
const bit<8> OUTCOME_MALFORMED = 6;
