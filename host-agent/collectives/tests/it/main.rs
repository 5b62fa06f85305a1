//! Tests from outside.

mod correct;
mod form;
mod textbook;
