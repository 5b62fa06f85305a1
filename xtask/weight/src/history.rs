//! Whether the last change of the figures' file that raises one says why.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::figures::Figures;

/// Result of the look at the history.
#[derive(Debug, PartialEq)]
pub enum Reason {
    /// The last change raised nothing, or the document changed with it.
    Stated,
    /// The last change raised these figures, and the document has not changed since.
    Missing(Vec<String>),
    /// git cannot show the last change, for this reason.
    Unknown(String),
}

/// Looks at the last change of `file`: the uncommitted one, or the last commit that has one. If it
/// raises a figure, `document` must differ between the state before that change and the tree.
///
/// # Errors
/// If git cannot be started, or a version of the file cannot be parsed.
pub fn reason(root: &Path, file: &str, document: &str) -> Result<Reason> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .arg("-C")
            .arg(root)
            .args(arguments)
            .output();
        let output = match output {
            Ok(output) => output,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => bail!("git: {error}"),
        };
        let text = String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned();
        Ok(output.status.success().then_some(text))
    };
    let unknown = |reason: &str| Ok(Reason::Unknown(reason.to_owned()));
    let Some(uncommitted) = git(&["diff", "--name-only", "HEAD", "--", file])? else {
        return unknown("there is no git history");
    };
    let base = if uncommitted.is_empty() {
        let Some(commit) =
            git(&["log", "-1", "--format=%H", "--", file])?.filter(|c| !c.is_empty())
        else {
            return unknown("the file is in no commit yet");
        };
        format!("{commit}^")
    } else {
        "HEAD".to_owned()
    };
    if git(&["rev-parse", "--verify", "--quiet", &base])?.is_none() {
        return unknown("the commit before the file's last change is not in this clone");
    }
    let Some(old) = git(&["show", &format!("{base}:{file}")])? else {
        return unknown("the file is new");
    };
    let new = std::fs::read_to_string(root.join(file)).context("the figures' file")?;
    let raised = Figures::parse(&new)?.raised_from(&Figures::parse(&old)?);
    let explained = || git(&["diff", "--name-only", &base, "--", document]);
    if raised.is_empty() || explained()?.is_some_and(|names| !names.is_empty()) {
        return Ok(Reason::Stated);
    }
    Ok(Reason::Missing(raised))
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
