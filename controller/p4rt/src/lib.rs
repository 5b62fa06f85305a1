//! P4Runtime: messages, names and ids, canonical bytes, per-update errors.
