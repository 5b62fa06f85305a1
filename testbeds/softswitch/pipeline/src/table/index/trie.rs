//! Finds the entry with the longest matching prefix by a trie with four bits per node, in which paths without a branch are
//! omitted.
//!
//! A prefix of L bits is in the node of depth ⌊(L − 1) / 4⌋ · 4, in all slots that it covers there and that no longer
//! prefix of the same node occupies (controlled prefix expansion, Srinivasan and Varghese 1999): at most 8 slots, so that
//! a change affects one node. Prefixes are not pushed down to other nodes, which would make a change O(n). A subtree with
//! one prefix is represented by the number of its row; a node contains at least two items, so that there are fewer nodes
//! than rows.
//!
//! Search and change visit at most one node per four bits of the key, about log₁₆ n for scattered prefixes.

use crate::table::rows::{Index, Rows};

const NONE: u32 = u32::MAX;
/// Bit of a link that is set if the link names a table row, and not set if it names a node.
const ROW: u32 = 1 << 31;

/// The bits of a packed key as an integer, the first bit uppermost.
pub trait PrefixBits: Copy + PartialEq + std::fmt::Debug {
    const ONES: Self;
    /// Reads the key from 64-bit words, the first bit uppermost in the first word.
    fn from_words(words: &[u64]) -> Self;
    /// The four bits of the key from bit `depth` on.
    fn nibble(self, depth: u32) -> usize;
    /// The first `len` bits of the key, followed by zeroes.
    fn first(self, len: u32) -> Self;
    /// Number of leading bits in which two keys are equal.
    fn common(self, other: Self) -> u32;
    /// Writes the key to 64-bit words.
    fn words(self, to: &mut [u64]);
}

impl PrefixBits for u64 {
    const ONES: u64 = u64::MAX;
    #[inline(always)]
    fn from_words(words: &[u64]) -> u64 {
        words[0]
    }
    #[inline(always)]
    fn nibble(self, depth: u32) -> usize {
        (self << depth >> 60) as usize
    }
    fn first(self, len: u32) -> u64 {
        self & !u64::MAX.checked_shr(len).unwrap_or(0)
    }
    #[inline(always)]
    fn common(self, other: u64) -> u32 {
        (self ^ other).leading_zeros()
    }
    fn words(self, to: &mut [u64]) {
        to[0] = self;
    }
}

impl PrefixBits for u128 {
    const ONES: u128 = u128::MAX;
    #[inline(always)]
    fn from_words(words: &[u64]) -> u128 {
        u128::from(words[0]) << 64 | u128::from(words[1])
    }
    #[inline(always)]
    fn nibble(self, depth: u32) -> usize {
        (self << depth >> 124) as usize
    }
    fn first(self, len: u32) -> u128 {
        self & !u128::MAX.checked_shr(len).unwrap_or(0)
    }
    #[inline(always)]
    fn common(self, other: u128) -> u32 {
        (self ^ other).leading_zeros()
    }
    fn words(self, to: &mut [u64]) {
        to[0] = (self >> 64) as u64;
        to[1] = self as u64;
    }
}

#[derive(Debug, Clone)]
struct Node<K> {
    /// The first `depth` bits, which all keys below the node share.
    prefix: K,
    /// Depth of the node: number of bits before its own four bits, a multiple of 4.
    depth: u32,
    /// Number of prefixes that end in this node.
    count: u32,
    /// Links to nodes or rows of longer prefixes, indexed by the four bits of the key from `depth` on.
    children: [u32; 16],
    /// For each value of the four bits from `depth` on: the row of its longest prefix of depth + 1 to depth + 4 bits.
    leaves: [u32; 16],
}

/// The trie of a table whose keys have type `K`.
#[derive(Debug, Clone)]
pub struct Trie<K> {
    /// Number of bits of the exact fields, which precede the LPM field in a packed key.
    exact_bits: u32,
    nodes: Vec<Node<K>>,
    free: Vec<u32>,
    root: u32,
    /// The row of the entry whose prefix is empty, or [`NONE`].
    everything: u32,
}

/// The position of a link in the trie: the root, or a slot of a node.
#[derive(Clone, Copy)]
enum At {
    Root,
    Slot(u32, usize),
}

/// The depth of the node that contains a prefix of `len` bits; `len` > 0.
fn home(len: u32) -> u32 {
    (len - 1) & !3
}

impl<K: PrefixBits> Trie<K> {
    /// Creates a trie without entries, for keys whose exact fields have `exact_bits` bits.
    pub fn new(exact_bits: u32) -> Trie<K> {
        Trie {
            exact_bits,
            nodes: Vec::new(),
            free: Vec::new(),
            root: NONE,
            everything: NONE,
        }
    }

    /// The row of the entry with the longest prefix of a packed key; `None` if no prefix matches.
    #[inline(always)]
    pub fn find(&self, rows: &Rows, key: &[u64]) -> Option<Index> {
        let bits = K::from_words(key);
        let (mut best, mut link) = (self.everything, self.root);
        // NONE also has the bit of a row set.
        while link & ROW == 0 {
            let node = &self.nodes[link as usize];
            if bits.common(node.prefix) < node.depth {
                link = NONE;
                break;
            }
            let slot = bits.nibble(node.depth);
            if node.leaves[slot] != NONE {
                best = node.leaves[slot];
            }
            link = node.children[slot];
        }
        if link != NONE && rows.matches(link & !ROW, key) {
            best = link & !ROW;
        }
        (best != NONE).then_some(best)
    }

    fn prefix(&self, rows: &Rows, row: Index) -> (K, u32) {
        let len = self.exact_bits + rows.rank(row) as u32;
        (K::from_words(rows.values(row)), len)
    }

    fn link(&mut self, at: At) -> &mut u32 {
        match at {
            At::Root => &mut self.root,
            At::Slot(node, slot) => &mut self.nodes[node as usize].children[slot],
        }
    }

    pub fn insert(&mut self, rows: &Rows, row: Index) {
        let (bits, len) = self.prefix(rows, row);
        if len == 0 {
            self.everything = row;
            return;
        }
        let mut at = At::Root;
        loop {
            let link = *self.link(at);
            if link == NONE {
                *self.link(at) = ROW | row;
                return;
            }
            // The current prefix at this link, and the depth up to which it has no branch.
            let (other, depth) = if link & ROW != 0 {
                let (other, other_len) = self.prefix(rows, link & !ROW);
                (other, home(other_len))
            } else {
                let node = &self.nodes[link as usize];
                (node.prefix, node.depth)
            };
            let branch = (bits.common(other) & !3).min(depth).min(home(len));
            let node = if link & ROW == 0 && branch == depth {
                link
            } else {
                let node = self.node(bits.first(branch), branch);
                if link & ROW != 0 && branch == depth {
                    self.set_leaf(rows, node, link & !ROW);
                } else {
                    self.nodes[node as usize].children[other.nibble(branch)] = link;
                }
                *self.link(at) = node;
                node
            };
            if home(len) == branch {
                self.set_leaf(rows, node, row);
                return;
            }
            at = At::Slot(node, bits.nibble(branch));
        }
    }

    fn node(&mut self, prefix: K, depth: u32) -> u32 {
        let node = Node {
            prefix,
            depth,
            count: 0,
            children: [NONE; 16],
            leaves: [NONE; 16],
        };
        match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        }
    }

    fn set_leaf(&mut self, rows: &Rows, node: u32, row: Index) {
        let (bits, len) = self.prefix(rows, row);
        let node = &mut self.nodes[node as usize];
        node.count += 1;
        for leaf in &mut node.leaves[covered(bits, len, node.depth)] {
            if *leaf == NONE || self.exact_bits + (rows.rank(*leaf) as u32) < len {
                *leaf = row;
            }
        }
    }

    /// Removes the entry of a row that is still in `rows`.
    pub fn remove(&mut self, rows: &Rows, row: Index) {
        let (bits, len) = self.prefix(rows, row);
        if len == 0 {
            self.everything = NONE;
            return;
        }
        // The link to the node, and the node that contains `at`.
        let (mut at, mut parent) = (At::Root, None);
        loop {
            let link = *self.link(at);
            if link == ROW | row {
                *self.link(at) = NONE;
                if let Some((node, at)) = parent {
                    self.shrink(node, at);
                }
                return;
            }
            if link & ROW != 0 {
                debug_assert!(false, "a row that was never inserted");
                return;
            }
            let depth = self.nodes[link as usize].depth;
            if depth == home(len) {
                let next = self.next_shorter(rows, bits, len, depth);
                let node = &mut self.nodes[link as usize];
                node.count -= 1;
                for leaf in &mut node.leaves[covered(bits, len, depth)] {
                    if *leaf == row {
                        *leaf = next;
                    }
                }
                self.shrink(link, at);
                return;
            }
            parent = Some((link, at));
            at = At::Slot(link, bits.nibble(depth));
        }
    }

    /// The row of the next shorter prefix in the same node that covers the same slots, or [`NONE`].
    fn next_shorter(&self, rows: &Rows, bits: K, len: u32, depth: u32) -> u32 {
        let words = rows.packing.words;
        let mut key = [0; 4];
        for len in (depth + 1..len).rev() {
            let Some(rank) = len.checked_sub(self.exact_bits) else {
                break;
            };
            bits.first(len).words(&mut key[..words]);
            K::ONES.first(len).words(&mut key[words..2 * words]);
            if let Some(row) = rows.find(rank as i32, &key[..2 * words]) {
                return row;
            }
        }
        NONE
    }

    /// Replaces a node that has a single prefix or child by this prefix or child.
    fn shrink(&mut self, node: u32, at: At) {
        let this = &self.nodes[node as usize];
        let mut children = this.children.iter().copied().filter(|c| *c != NONE);
        let (child, more) = (children.next(), children.next());
        let only = match (this.count, child, more) {
            (0, Some(child), None) => child,
            (1, None, _) => match this.leaves.iter().find(|leaf| **leaf != NONE) {
                Some(row) => ROW | row,
                None => return,
            },
            _ => return,
        };
        *self.link(at) = only;
        self.free.push(node);
    }
}

/// The slots of the node of depth `depth` that a prefix covers.
fn covered<K: PrefixBits>(bits: K, len: u32, depth: u32) -> std::ops::Range<usize> {
    let start = bits.nibble(depth);
    start..start + (1 << (depth + 4 - len))
}
