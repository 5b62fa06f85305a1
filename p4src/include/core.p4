// The core library: P4_16 1.2.5, appendix D.
// Programs ask for the guards' names, so they are the customary ones, here and in the other files.
#ifndef _CORE_P4_
#define _CORE_P4_

// Run-time errors that a parser can end with. NoError must stay first: its value is 0.
error {
    NoError,
    PacketTooShort,
    NoMatch,
    StackOutOfBounds,
    HeaderTooShort,
    ParserTimeout,
    ParserInvalidArgument
}

match_kind {
    exact,
    ternary,
    lpm
}

// The packet as a parser reads it, from the current position on.
extern packet_in {
    // Fills a header of fixed size and moves behind it.
    void extract<T>(out T hdr);
    // The same for a header with one varbit field, whose length in bits is given.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    // Reads without moving.
    T lookahead<T>();
    // Moves without reading.
    void advance(in bit<32> sizeInBits);
    // Length of the whole packet in bytes.
    bit<32> length();
}

// The packet as a deparser writes it.
extern packet_out {
    // Appends a header if it is valid, or every valid header of a stack, union or struct.
    void emit<T>(in T hdr);
}

// In a parser: goes to reject with `toSignal` unless `check` holds.
extern void verify(in bool check, in error toSignal);

// At compile time: an error unless `check` holds.
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

@noWarn("unused")
action NoAction() {
}

#endif
