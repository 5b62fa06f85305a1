//! Executes p4lang's IR under PSA. Pure.
