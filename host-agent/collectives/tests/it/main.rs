//! Tests from outside.

mod correct;
mod cost;
mod form;
mod over_roce;
mod sharing;
mod textbook;
