//! Errors of single updates (P4Runtime 1.4, section 12.3). The trailer `grpc-status-details-bin` of a failed write is a
//! `google.rpc.Status` whose details are exactly one [`v1::Error`] per update, in order, successes included.

use crate::rpc::{self, Code};
use crate::v1;
use prost::Message as _;
use std::borrow::Cow;

const ERROR_TYPE: &str = "type.googleapis.com/p4.v1.Error";
/// Maximum length in characters of the text that [`excerpt`] returns.
const EXCERPT: usize = 40;

/// Why the switch did not apply one update of a batch, or did not answer one query of a read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({})", .code.as_str_name())]
pub struct UpdateError {
    /// The gRPC error code; never `Ok`.
    pub code: Code,
    /// The error message for a person.
    pub message: String,
}

/// Decodes a gRPC error code that the other program sent as a number; an unknown number becomes `Unknown`.
pub(crate) fn code(number: impl Into<i32>) -> Code {
    Code::try_from(number.into()).unwrap_or(Code::Unknown)
}

/// The result of one update of a batch.
pub type UpdateResult = Result<(), UpdateError>;

impl UpdateError {
    /// Creates an error with this code and message.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// Cuts a text from another program for use in an error message; gRPC cannot transmit metadata that is too long.
#[must_use]
pub fn excerpt(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(EXCERPT) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]).into(),
    }
}

/// The gRPC status for a batch of updates or reads; `None` if all succeeded. Its message calls them `what`, such as `updates`.
#[must_use]
pub fn of_batch(results: &[UpdateResult], what: &str) -> Option<tonic::Status> {
    let failed = results.iter().filter(|result| result.is_err()).count();
    if failed == 0 {
        return None;
    }
    let message = format!("{failed} of {} {what} failed", results.len());
    let status = rpc::Status {
        code: Code::Unknown.into(),
        message: message.clone(),
        details: results.iter().map(detail).collect(),
    };
    Some(tonic::Status::with_details(
        tonic::Code::Unknown,
        message,
        status.encode_to_vec().into(),
    ))
}

fn detail(result: &UpdateResult) -> prost_types::Any {
    let error = match result {
        Ok(()) => v1::Error::default(),
        Err(error) => v1::Error {
            canonical_code: error.code.into(),
            message: error.message.clone(),
            ..Default::default()
        },
    };
    prost_types::Any {
        type_url: ERROR_TYPE.to_owned(),
        value: error.encode_to_vec(),
    }
}

/// The result of each update in a batch, read from the gRPC status of the failed batch. `None` if the status does not contain
/// one result per update (`updates` in number): then the error concerns the whole batch.
#[must_use]
pub fn results(status: &tonic::Status, updates: usize) -> Option<Vec<UpdateResult>> {
    if status.code() != tonic::Code::Unknown || status.details().is_empty() {
        return None;
    }
    let details = rpc::Status::decode(status.details()).ok()?.details;
    let result = |detail: &prost_types::Any| {
        let type_name = detail.type_url.rsplit('/').next();
        let error = (type_name == Some("p4.v1.Error"))
            .then(|| v1::Error::decode(detail.value.as_slice()).ok());
        let error = error.flatten()?;
        Some(match code(error.canonical_code) {
            Code::Ok => Ok(()),
            code => Err(UpdateError::new(code, error.message)),
        })
    };
    let results: Vec<_> = details.iter().map(result).collect::<Option<_>>()?;
    (results.len() == updates).then_some(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_error_an_update_in_order() {
        let batch = vec![
            Ok(()),
            Err(UpdateError::new(Code::AlreadyExists, "there")),
            Ok(()),
        ];
        let status = of_batch(&batch, "updates").unwrap();
        assert_eq!(status.code(), tonic::Code::Unknown);
        assert_eq!(results(&status, 3), Some(batch));
    }

    #[test]
    fn what_others_write_is_quoted_up_to_a_character() {
        let whole = "ä".repeat(40);
        assert_eq!(excerpt(&whole), whole);
        assert_eq!(excerpt(&(whole.clone() + "b")), whole + "…");
        assert_eq!(excerpt(""), "");
    }

    #[test]
    fn success_has_no_status() {
        assert!(of_batch(&[Ok(()), Ok(())], "updates").is_none());
        assert!(of_batch(&[], "updates").is_none());
    }

    #[test]
    fn other_statuses_carry_no_results() {
        assert_eq!(
            results(&tonic::Status::permission_denied("backup"), 1),
            None
        );
        assert_eq!(results(&tonic::Status::unknown("no details"), 1), None);
        let status = of_batch(&[Err(UpdateError::new(Code::NotFound, "gone"))], "reads").unwrap();
        assert_eq!(results(&status, 2), None, "one result for two updates");
        let garbage = tonic::Status::with_details(tonic::Code::Unknown, "", vec![0xff; 7].into());
        assert_eq!(results(&garbage, 1), None);
    }
}
