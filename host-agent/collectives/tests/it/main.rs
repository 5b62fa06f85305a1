//! Tests from outside.

mod correct;
mod cost;
mod form;
mod sharing;
mod textbook;
