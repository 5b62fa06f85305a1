// The core library: P4_16 1.2.5, appendix D.
// Include guards have their customary names, here and in the other files, since programs test them.
#ifndef _CORE_P4_
#define _CORE_P4_

// Errors with which a parser can end. NoError must stay first: its value is 0.
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
    // Extracts a header of fixed size and advances past it.
    void extract<T>(out T hdr);
    // Extracts a header with one varbit field, which gets the given length in bits.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    // Reads without advancing.
    T lookahead<T>();
    // Advances without reading.
    void advance(in bit<32> sizeInBits);
    // Length of the whole packet in bytes.
    bit<32> length();
}

// The packet as a deparser writes it.
extern packet_out {
    // Appends a header if it is valid, or every valid header of a stack, union or struct.
    void emit<T>(in T hdr);
}

// In a parser: if `check` is false, goes to state reject with the error `toSignal`.
extern void verify(in bool check, in error toSignal);

// At compile time: reports an error if `check` is false.
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

@noWarn("unused")
action NoAction() {
}

#endif
