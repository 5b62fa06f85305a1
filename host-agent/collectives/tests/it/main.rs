//! Tests of the public interface.

mod correct;
mod cost;
mod form;
mod over_roce;
mod sharing;
mod textbook;
