//! Which lanes have something to send, and which of them is next.
//!
//! What is sent again comes first. Of first transmissions the lowest item is next, so that a lane that losses have held up catches
//! up with the others, and the window counts those alone: who waits for others' values is sent nothing, but has its place.
//!
//! Windows of ranks need not agree, and a window that shrinks may be full of items that others have not sent. Could each rank's be
//! full of what the others have not sent, none would ever complete. So the lowest item passes whatever the window is, if nothing
//! below it is under way: of the lowest item that is not complete, all that is below it is answered in the end, at every rank; then
//! every rank sends it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A lane's item, and the lane.
type Entry = Reverse<(u64, u16)>;

/// What a queue gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    /// The lane.
    pub slot: usize,
    /// The item that it was at when it was queued. If it is at another now, the entry is of no use any more.
    pub item: u64,
    /// Whether that was to be sent for the first time.
    pub is_first: bool,
}

/// Lanes that have something to send.
#[derive(Debug, Clone)]
pub struct SendQueue {
    again: BinaryHeap<Entry>,
    first: BinaryHeap<Entry>,
    /// No item below is under way.
    lowest: u64,
    /// How often the window was too small for what there was.
    refused: u64,
}

impl SendQueue {
    /// An empty one, with room for so many lanes.
    pub fn new(lanes: usize) -> Self {
        Self {
            // An entry whose item is answered meanwhile stays until it is at the front, which is soon, as it is of the lowest.
            again: BinaryHeap::with_capacity(2 * lanes),
            first: BinaryHeap::with_capacity(2 * lanes),
            lowest: 0,
            refused: 0,
        }
    }

    /// A lane's item is to be sent.
    pub fn push_first(&mut self, slot: usize, item: u64) {
        self.first.push(Reverse((item, slot as u16)));
    }

    /// It is to be sent, or asked for, again.
    pub fn push_again(&mut self, slot: usize, item: u64) {
        self.again.push(Reverse((item, slot as u16)));
    }

    /// Nothing is sent any more.
    pub fn clear(&mut self) {
        self.again.clear();
        self.first.clear();
    }

    /// How often there was more to send than the window has room for.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Which lane is next. `has_room` is whether the window takes one more, `is_under_way` whether an item was sent and is not
    /// answered.
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
    fn what_is_sent_again_goes_before_and_the_lowest_item_first() {
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
        // 7 is under way, so 5 and 6 are the lowest, one after the other; 12 is not.
        let expected = [(11, false), (5, true), (6, true)];
        assert_eq!(items(&mut queue, false, &[7, 11]), expected);
        assert_eq!(queue.refused(), 1);
        assert_eq!(items(&mut queue, false, &[11]), []);
        assert_eq!(items(&mut queue, false, &[]), [(12, true)]);
        // A lane that was held up comes to an item below.
        queue.push_first(2, 10);
        assert_eq!(items(&mut queue, false, &[12]), [(10, true)]);
        queue.push_first(3, 11);
        assert_eq!(items(&mut queue, false, &[10, 12]), []);
    }
}
