//! Lanes that have something to send, and the choice of the next one.
//!
//! Retransmissions come first. Among first transmissions the lowest item comes first, so that a lane that losses have held up
//! catches up with the others. The window limits first transmissions alone: a lane that waits for other ranks' values sends
//! nothing, but counts as in flight.
//!
//! Windows of ranks need not agree, and a shrinking window may be full of items that other ranks have not sent. If that held
//! for each rank, no item would ever complete. So the lowest item passes regardless of the window if no lower item is in
//! flight: everything below the lowest incomplete item is answered in the end at every rank, and then every rank sends that
//! item.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An item's number (lower first), then the index of its lane.
type Entry = Reverse<(u64, u16)>;

/// A lane that the transmit queue returns as the next to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    /// Index of the lane.
    pub slot: usize,
    /// The lane's item when it was queued. If the lane has moved to another item since, the caller ignores this value.
    pub item: u64,
    /// Whether the item would be sent for the first time.
    pub is_first: bool,
}

/// Transmit queue of the lanes that have an item to send.
#[derive(Debug, Clone)]
pub struct SendQueue {
    again: BinaryHeap<Entry>,
    first: BinaryHeap<Entry>,
    /// Lower bound of the items in flight: no item below this number is in flight.
    lowest: u64,
    /// Number of times that the congestion window was too small for a waiting item.
    refused: u64,
}

impl SendQueue {
    /// An empty queue with capacity for `lanes` lanes.
    pub fn new(lanes: usize) -> Self {
        Self {
            // An answered item's entry stays until it reaches the front, which is soon, since it is among the lowest.
            again: BinaryHeap::with_capacity(2 * lanes),
            first: BinaryHeap::with_capacity(2 * lanes),
            lowest: 0,
            refused: 0,
        }
    }

    /// Queues the first transmission of a lane's item.
    pub fn push_first(&mut self, slot: usize, item: u64) {
        self.first.push(Reverse((item, slot as u16)));
    }

    /// Queues a retransmission or a probe of a lane's item.
    pub fn push_again(&mut self, slot: usize, item: u64) {
        self.again.push(Reverse((item, slot as u16)));
    }

    /// Removes all lanes from the queue.
    pub fn clear(&mut self) {
        self.again.clear();
        self.first.clear();
    }

    /// Number of times that an item had to wait because the congestion window was full.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Removes the next lane to send; `None` if none may. `has_room`: the congestion window allows one more item in flight.
    /// `is_under_way`: whether an item was sent and has no answer yet.
    pub fn pop(&mut self, has_room: bool, is_under_way: impl Fn(u64) -> bool) -> Option<Next> {
        if let Some(Reverse((item, slot))) = self.again.pop() {
            return Some(Next {
                slot: slot.into(),
                item,
                is_first: false,
            });
        }
        let Reverse((item, slot)) = *self.first.peek()?;
        if !has_room {
            while self.lowest < item && !is_under_way(self.lowest) {
                self.lowest += 1;
            }
            if self.lowest < item {
                self.refused += 1;
                return None;
            }
        }
        self.first.pop();
        self.lowest = self.lowest.min(item);
        Some(Next {
            slot: slot.into(),
            item,
            is_first: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(queue: &mut SendQueue, has_room: bool, under_way: &[u64]) -> Vec<(u64, bool)> {
        let mut items = Vec::new();
        while let Some(next) = queue.pop(has_room, |item| under_way.contains(&item)) {
            items.push((next.item, next.is_first));
        }
        items
    }

    #[test]
    fn retransmissions_come_first_in_ascending_order() {
        let mut queue = SendQueue::new(8);
        for item in [7, 4, 6] {
            queue.push_first(item as usize, item);
        }
        for item in [9, 8] {
            queue.push_again(item as usize % 8, item);
        }
        let expected = [(8, false), (9, false), (4, true), (6, true), (7, true)];
        assert_eq!(items(&mut queue, true, &[]), expected);
    }

    #[test]
    fn the_lowest_of_all_passes_a_full_window() {
        let mut queue = SendQueue::new(8);
        for item in [5, 6, 12] {
            queue.push_first(item as usize % 8, item);
        }
        queue.push_again(3, 11);
        // 7 is in flight, so 5 and then 6 are the lowest items and pass; 12 does not.
        let expected = [(11, false), (5, true), (6, true)];
        assert_eq!(items(&mut queue, false, &[7, 11]), expected);
        assert_eq!(queue.refused(), 1);
        assert_eq!(items(&mut queue, false, &[11]), []);
        assert_eq!(items(&mut queue, false, &[]), [(12, true)]);
        // A lane that was held up returns to a lower item.
        queue.push_first(2, 10);
        assert_eq!(items(&mut queue, false, &[12]), [(10, true)]);
        queue.push_first(3, 11);
        assert_eq!(items(&mut queue, false, &[10, 12]), []);
    }
}
