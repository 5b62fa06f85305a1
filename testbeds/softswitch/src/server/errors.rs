//! Maps errors of the pipeline to the status codes of P4Runtime.

use p4rt::rpc::Code;
use p4rt::status::UpdateError;
use pipeline::{ExternError, ProfileError, ReplicationError, TableError};
use tonic::Status;

/// Maximum length of a status message in bytes. It is sent in a header, of which gRPC clients accept up to 8 KiB, and
/// each byte that is not printable ASCII takes three.
const STATUS_BYTES: usize = 2500;

/// The status INVALID_ARGUMENT with `text`, which is cut if it is long: at the end of a line if possible.
pub(super) fn invalid_argument(text: &str) -> Status {
    if text.len() <= STATUS_BYTES {
        return Status::invalid_argument(text);
    }
    let room = &text[..text.floor_char_boundary(STATUS_BYTES)];
    let kept = room.rfind('\n').map_or(room, |end| &room[..end]);
    let more = text[kept.len()..].lines().filter(|line| !line.is_empty());
    Status::invalid_argument(format!("{kept}\n… {} more lines", more.count()))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_fits_a_header() {
        assert_eq!(invalid_argument("short").message(), "short");
        let lines: String = (0..1000).map(|n| format!("error {n}: «é»\n")).collect();
        let status = invalid_argument(&lines);
        let (kept, cut) = status.message().rsplit_once('\n').unwrap();
        assert!(lines.starts_with(kept) && kept.ends_with('»'), "{kept}");
        assert_eq!(cut, format!("… {} more lines", 1000 - kept.lines().count()));
        assert!(status.message().len() < STATUS_BYTES + 40);
        let one = "é".repeat(STATUS_BYTES);
        let status = invalid_argument(&one);
        assert!(status.message().starts_with("éé") && status.message().ends_with("… 1 more lines"));
    }
}
