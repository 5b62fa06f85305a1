//! Control of a BMv2 switch over Thrift: binary protocol, buffered transport, several services on one connection.
//!
//! There is no generated code: a call is a service, a method and numbered arguments ([`Value`]), and [`Runtime`] gives the
//! calls their types. Names and numbers are BMv2's.

mod connection;
mod copies;
mod refusal;
mod runtime;
mod types;
mod value;

pub use connection::{Connection, ThriftError};
pub use refusal::{Family, Reason, Refusal};
pub use runtime::{CONTEXT, Runtime};
pub use types::{ActionEntry, Counts, KeyPart, Mirror, RawEntry};
pub use value::{Kind, Value};
