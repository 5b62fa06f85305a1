//! Protocol library and filter language, compiled to P4 parsers, match tables and entries.
//!
//! ```
//! use parser_gen::{Filter, Flow, Library, Options, generate};
//!
//! let library = Library::builtin();
//! let filter = Filter::parse(&library, r#"ip.src == 10.0.0.1 && redis.command == "GET""#)?;
//! let flows = [Flow { name: "gets".to_owned(), filter }];
//! let generated = generate(&library, &flows, &Options::aggregating(true))?;
//! assert!(generated.p4.contains("table flows"));
//! assert_eq!(generated.entries_for("SwitchIngress.classify").len(), 1);
//! // A packet is in no flow, or in that one.
//! assert_eq!(generated.classes().sets(), [vec![], vec![0]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! docs/filters.md is the users' view: the language, the fields, and fields that filters cannot match.

mod arch;
mod checksums;
mod classes;
mod diagram;
mod dissect;
pub mod engine;
pub mod filter;
mod flow;
mod generate;
pub mod key;
pub mod library;
mod options;
pub mod pace;
mod program;
pub mod psn;
pub mod reset;
pub mod rewrite;
mod slice;
mod terms;
mod writer;

pub use arch::Arch;
pub use classes::Classes;
pub use dissect::{FieldId, Headers};
pub use engine::EngineSpec;
pub use filter::{FieldValues, Filter, FilterError, FilterErrorKind, Value};
pub use flow::{Flow, GenerateError, MAX_FLOWS};
pub use generate::{Generated, generate, generate_with};
pub use library::{
    FieldType, Library, LibraryError, Note, PayloadSlice, ProtocolSource, SliceError,
};
pub use options::{FrameValues, Options};
pub use program::program;
