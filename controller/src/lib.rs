//! weir, the controller: what it shares with its tests. The program itself is `main.rs`.

pub mod target;
