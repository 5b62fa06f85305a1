//! What becomes of machines, and of what runs in them.
