//! Joins lines that a backslash continues before all other processing, so that a token may extend over two lines
//! (C23, section 5.1.1.2, phase 2).

use crate::spelling::continuation;
use std::borrow::Cow;

/// A source file's text in which lines that a backslash continues are joined.
pub(super) struct Spliced<'t> {
    /// The text without the continuing backslashes and their line ends.
    pub(super) text: Cow<'t, str>,
    /// The text as it is in the source file.
    written: &'t str,
    /// The joints between lines, in order.
    joints: Vec<Joint>,
}

/// A position at which two lines of the file were joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Joint {
    /// Byte at which the second line starts in the joined text.
    at: usize,
    /// Byte at which the second line starts in the file.
    written_at: usize,
}

impl<'t> Spliced<'t> {
    pub(super) fn new(written: &'t str) -> Spliced<'t> {
        let mut joined = String::new();
        let mut joints = Vec::new();
        let mut done = 0;
        for (at, _) in written.match_indices('\\') {
            let Some(length) = continuation(&written[at..]).filter(|_| at >= done) else {
                continue;
            };
            joined.push_str(&written[done..at]);
            done = at + length;
            // A backslash at the end of a file does not continue into the including file.
            if written[..done].ends_with('\n') {
                joints.push(Joint {
                    at: joined.len(),
                    written_at: done,
                });
            }
        }
        let text = match done {
            0 => Cow::Borrowed(written),
            _ => Cow::Owned(joined + &written[done..]),
        };
        Spliced {
            text,
            written,
            joints,
        }
    }

    /// Byte in the joined text at which joint `n` is, counted from 0; `None` if there are fewer joints.
    pub(super) fn joint(&self, n: usize) -> Option<usize> {
        self.joints.get(n).map(|joint| joint.at)
    }

    /// Number of line joints before byte `at` of the joined text.
    pub(super) fn joints_before(&self, at: usize) -> usize {
        self.joints.partition_point(|joint| joint.at < at)
    }

    /// The line of the file, without its end, that contains byte `at` of the joined text; `joints` joints lie before that byte.
    pub(super) fn line(&self, at: usize, joints: usize) -> &'t str {
        let at = match joints.checked_sub(1).and_then(|n| self.joints.get(n)) {
            Some(joint) => joint.written_at + at.saturating_sub(joint.at),
            None => at,
        };
        let at = at.min(self.written.len());
        let start = self.written[..at].rfind('\n').map_or(0, |n| n + 1);
        let end = self.written[at..]
            .find('\n')
            .map_or(self.written.len(), |n| at + n);
        self.written[start..end].trim_end_matches('\r')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_and_found_again() {
        let spliced = Spliced::new("ab\\\ncd\\  \n\\\ne\nf\\x");
        assert_eq!(spliced.text, "abcde\nf\\x");
        let joints: Vec<_> = (0..4).map(|n| spliced.joint(n)).collect();
        assert_eq!(joints, [Some(2), Some(4), Some(4), None]);
        let lines = [(0, 0), (2, 0), (2, 1), (3, 1), (4, 2), (4, 3), (6, 3)];
        let lines = lines.map(|(at, joints)| spliced.line(at, joints));
        assert_eq!(
            lines,
            ["ab\\", "ab\\", "cd\\  ", "cd\\  ", "\\", "e", "f\\x"]
        );
    }

    #[test]
    fn a_backslash_at_the_end_joins_nothing() {
        let spliced = Spliced::new("ab \\ ");
        assert_eq!(spliced.text, "ab ");
        assert_eq!(spliced.joint(0), None);
        assert_eq!(Spliced::new("a\\b").text, "a\\b");
    }
}
