//! Serializes the state of a worker, rank, server or slot table for the model checker (crate `check`), which explores them.
//!
//! Two machines of the same job and rank with equal bytes behave equally from then on, except for timing and statistics:
//! clocks, timeouts, round trips and counters are left out, and so are settings that only those steer. A machine with a limit
//! on timeouts, or with retransmission ahead of its timeout (`fast_threshold`), depends on more than these bytes.
//!
//! Each `state` destructures its machine without `..`, so that adding a field forces a decision whether it belongs to the state.

/// Appends fields to a serialized state. Every list begins with its length, so that different states have different bytes.
pub(crate) trait Put {
    fn put(&mut self, bytes: &[u8]);

    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    fn put_len(&mut self, len: usize) {
        self.put_u64(len as u64);
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
