//! Protocol library and filter language, compiled to P4 parsers, match tables and entries.
