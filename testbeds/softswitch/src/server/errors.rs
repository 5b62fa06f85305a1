//! What the program refuses, with the codes that P4Runtime asks for.

use p4rt::rpc::Code;
use p4rt::status::UpdateError;
use pipeline::{ExternError, ProfileError, ReplicationError, TableError};

pub(super) fn of_table(error: &TableError) -> Code {
    match error {
        TableError::NoSuchTable | TableError::NotFound => Code::NotFound,
        TableError::DuplicateEntry => Code::AlreadyExists,
        TableError::Full(_) => Code::ResourceExhausted,
        TableError::ConstTable => Code::PermissionDenied,
        TableError::ValueTooWide(..) => Code::OutOfRange,
        _ => Code::InvalidArgument,
    }
}

pub(super) fn table(error: TableError) -> UpdateError {
    UpdateError::new(of_table(&error), error.to_string())
}

pub(super) fn profile(error: ProfileError) -> UpdateError {
    let code = match &error {
        ProfileError::Table(error) | ProfileError::Action(error) => of_table(error),
        ProfileError::NoSuchProfile | ProfileError::NotFound => Code::NotFound,
        ProfileError::Duplicate => Code::AlreadyExists,
        ProfileError::InUse => Code::FailedPrecondition,
        ProfileError::Full(_) => Code::ResourceExhausted,
        _ => Code::InvalidArgument,
    };
    UpdateError::new(code, error.to_string())
}

pub(super) fn replication(error: ReplicationError) -> UpdateError {
    let code = match error {
        ReplicationError::NotFound => Code::NotFound,
        ReplicationError::Full => Code::ResourceExhausted,
        _ => Code::InvalidArgument,
    };
    UpdateError::new(code, error.to_string())
}

pub(super) fn object(error: ExternError) -> UpdateError {
    let code = match error {
        ExternError::NotFound => Code::NotFound,
        ExternError::OutOfRange | ExternError::ValueTooWide => Code::OutOfRange,
        ExternError::WrongShape => Code::InvalidArgument,
        ExternError::Full => Code::ResourceExhausted,
        ExternError::Duplicate => Code::AlreadyExists,
    };
    UpdateError::new(code, error.to_string())
}
