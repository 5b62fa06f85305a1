//! The aggregation header: view of bytes and value.
