//! What a machine is, as bytes, for those who explore all that can happen to it (the crate `check`).
//!
//! Two machines of the same job and rank with equal bytes do the same from then on, but for *when* they do it and what they have
//! counted: clocks, timeouts, round trips and statistics are left out. So is what only those steer: a machine whose patience has
//! an end, or that repeats ahead of its timeout (`fast_threshold`), depends on more.
//!
//! Each `state` takes its machine apart without `..`: who adds a field decides here whether it belongs to the state.

/// Bytes of a state. Every list says its length first, so that no two states have the same.
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
