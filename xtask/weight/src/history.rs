//! Checks that each commit that raises a figure in the file of figures comes with a reason in the document.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::figures::Figures;

/// Whether the git history states a reason for each raised figure.
#[derive(Debug, PartialEq)]
pub enum Reason {
    /// No commit raised a figure, or the document changed with each commit that did.
    Stated,
    /// A commit raised these figures, and the document has not changed before the next commit to the file.
    Missing(Vec<String>),
    /// git cannot show the last change of the file, for this reason.
    Unknown(String),
}

/// Maximum number of commits that are examined, the latest first.
const CHANGES: usize = 20;

/// Examines the uncommitted change of `file`, and its last [`CHANGES`] commits. If a change raises a figure, `document` must differ
/// between the state before that change and the state before the next one; after the last change, the working tree counts.
///
/// # Errors
/// If git cannot be started, or a version of the file cannot be parsed.
pub fn reason(root: &Path, file: &str, document: &str) -> Result<Reason> {
    let git = |arguments: &[&str]| git(root, arguments);
    let unknown = |reason: &str| Ok(Reason::Unknown(reason.to_owned()));
    let Some(uncommitted) = git(&["diff", "--name-only", "HEAD", "--", file])? else {
        return unknown("there is no git history");
    };
    let tree = std::fs::read_to_string(root.join(file)).context("the figures' file")?;
    let log = ["log", &format!("-{CHANGES}"), "--format=%H", "--", file];
    let commits = git(&log)?.unwrap_or_default();
    if commits.is_empty() {
        return unknown("the file is in no commit yet");
    }
    // Before and after each change, the latest first; no commit is the tree.
    let mut changes: Vec<(String, Option<String>)> = Vec::new();
    if !uncommitted.is_empty() {
        changes.push(("HEAD".to_owned(), None));
    }
    for commit in commits.lines() {
        changes.push((format!("{commit}^"), Some(commit.to_owned())));
    }
    // The state before the next change; for the latest change, the tree.
    let mut until: Option<String> = None;
    for (number, (before, after)) in changes.into_iter().enumerate() {
        let is_latest = number == 0;
        if git(&["rev-parse", "--verify", "--quiet", &before])?.is_none() {
            return match is_latest {
                true => unknown("the commit before the file's last change is not in this clone"),
                false => Ok(Reason::Stated),
            };
        }
        let Some(old) = git(&["show", &format!("{before}:{file}")])? else {
            return match is_latest {
                true => unknown("the file is new"),
                false => Ok(Reason::Stated),
            };
        };
        let new = match after {
            Some(commit) => {
                git(&["show", &format!("{commit}:{file}")])?.context("a commit's file")?
            }
            None => tree.clone(),
        };
        let raised = Figures::parse(&new)?.raised_from(&Figures::parse(&old)?);
        if !raised.is_empty() {
            let mut diff = vec!["diff", "--name-only", &before];
            diff.extend(until.as_deref());
            diff.extend(["--", document]);
            if git(&diff)?.is_some_and(|names| names.is_empty()) {
                return Ok(Reason::Missing(raised));
            }
        }
        until = Some(before);
    }
    Ok(Reason::Stated)
}

/// Returns the output of git, or `None` if git fails or is missing.
fn git(root: &Path, arguments: &[&str]) -> Result<Option<String>> {
    let git = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(arguments)
        .output();
    let output = match git {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => bail!("git: {error}"),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let text = text.trim_end().to_owned();
    Ok(output.status.success().then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A repository in a temporary folder.
    struct Repository(tempfile::TempDir);

    impl Repository {
        fn new() -> Self {
            let repository = Self(tempfile::tempdir().expect("a folder"));
            repository.git(&["init", "--quiet"]);
            repository
        }

        fn git(&self, arguments: &[&str]) {
            let status = Command::new("git")
                .args([
                    "-c",
                    "user.name=a",
                    "-c",
                    "user.email=a@b",
                    "-c",
                    "commit.gpgsign=false",
                ])
                .args(arguments)
                .current_dir(self.0.path())
                .status();
            assert!(status.expect("git").success());
        }

        fn write(&self, file: &str, text: &str) {
            fs::write(self.0.path().join(file), text).expect("a file");
        }

        fn commit(&self) {
            self.git(&["add", "."]);
            self.git(&["commit", "--quiet", "--message", "a"]);
        }

        fn reason(&self) -> Reason {
            reason(self.0.path(), "weight", "document").expect("a reason")
        }
    }

    fn missing(raised: &str) -> Reason {
        Reason::Missing(vec![raised.to_owned()])
    }

    #[test]
    fn the_commit_that_raises_a_figure_changes_the_document() {
        if !test_support::has_program("reasons of raised figures", "git") {
            return;
        }
        let repository = Repository::new();
        repository.write("weight", "units 10\n");
        repository.write("document", "ten\n");
        repository.commit();
        repository.write("weight", "units 9\n");
        repository.commit();
        assert_eq!(repository.reason(), Reason::Stated);
        repository.write("weight", "units 11\n");
        assert_eq!(repository.reason(), missing("units: 9 to 11"));
        repository.commit();
        assert_eq!(repository.reason(), missing("units: 9 to 11"));
        repository.write("other", "");
        repository.commit();
        assert_eq!(repository.reason(), missing("units: 9 to 11"));
        repository.write("document", "eleven, because\n");
        assert_eq!(repository.reason(), Reason::Stated);
        repository.commit();
        assert_eq!(repository.reason(), Reason::Stated);
        repository.write("weight", "units 12\n");
        repository.write("document", "twelve, because\n");
        repository.commit();
        assert_eq!(repository.reason(), Reason::Stated);
        // A later change that raises nothing does not hide an earlier one that did.
        repository.write("weight", "units 13\n");
        repository.commit();
        repository.write("weight", "units 12\n");
        repository.commit();
        repository.write("document", "thirteen, because\n");
        assert_eq!(repository.reason(), missing("units: 12 to 13"));
    }

    #[test]
    fn without_history_the_reason_is_unknown() {
        if !test_support::has_program("raised figures without history", "git") {
            return;
        }
        let unknown = |reason: &str| Reason::Unknown(reason.to_owned());
        let repository = Repository::new();
        repository.write("weight", "units 10\n");
        assert_eq!(repository.reason(), unknown("there is no git history"));
        repository.write("other", "");
        repository.git(&["add", "other"]);
        repository.git(&["commit", "--quiet", "--message", "a"]);
        assert_eq!(repository.reason(), unknown("the file is in no commit yet"));
        repository.commit();
        assert_eq!(repository.reason(), unknown("the file is new"));

        let shallow = Repository(tempfile::tempdir().expect("a folder"));
        let source = format!("file://{}", repository.0.path().display());
        shallow.git(&["clone", "--quiet", "--depth", "1", &source, "."]);
        let expected = "the commit before the file's last change is not in this clone";
        assert_eq!(shallow.reason(), unknown(expected));

        let plain = Repository(tempfile::tempdir().expect("a folder"));
        plain.write("weight", "units 10\n");
        assert_eq!(plain.reason(), unknown("there is no git history"));
    }
}
