//! Linear and integer programs, solved and checked.
