//! Tables of a report; on a terminal, columns are as wide as their widest cell, and numbers are right-aligned.

use super::{WIDTH, width};

/// A table of a report: column heads, and rows of text cells.
#[derive(Debug, Clone, Default)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Gap between two columns of a table on a terminal.
const GAP: &str = "  ";
/// Minimum width of a text column that is narrowed to fit the terminal, in characters.
const NARROWEST: usize = 12;

impl Table {
    /// Creates a table with these column heads.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self {
            head: head.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row of cells, from the first column on; missing cells stay empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Texts of the column heads.
    pub fn head(&self) -> &[String] {
        &self.head
    }

    /// The rows, each with the texts of its cells.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Whether a column contains only numbers; such a column and its head are right-aligned.
    pub fn has_figures(&self, column: usize) -> bool {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let mut cells = cells.filter(|cell| !cell.is_empty()).peekable();
        cells.peek().is_some() && cells.all(|cell| is_figure(cell))
    }

    /// Widths of the columns in characters: as their cells need, but the widest text columns are narrowed to fit.
    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).chain([self.head.len()]);
        let columns = columns.max().unwrap_or(0);
        let cells = |column: usize| {
            let rows = self.rows.iter().chain([&self.head]);
            rows.filter_map(move |row| row.get(column))
        };
        let needed = |column| cells(column).map(|cell| width(cell)).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..columns).map(needed).collect();
        let gaps = GAP.len() * columns.saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > WIDTH {
            let words = (0..columns).filter(|column| !self.has_figures(*column));
            let Some(widest) = words.max_by_key(|column| widths[*column]) else {
                break;
            };
            if widths[widest] <= NARROWEST {
                break;
            }
            widths[widest] -= 1;
        }
        widths
    }
}

fn is_figure(cell: &str) -> bool {
    let digits = cell.trim_end_matches(['%', ' ', 's', 'm', 'u', 'n']);
    cell.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+')
        && digits
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, ',' | '.' | '-' | '+'))
}

/// Wraps the text of a cell into lines of at most `width` characters.
fn lines(cell: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in cell.split_inclusive([' ', '-', '.', '_']) {
        let mut word = word.to_owned();
        loop {
            let last = lines.len() - 1;
            let room = width - lines[last].chars().count().min(width);
            if word.trim_end().chars().count() <= room {
                lines[last].push_str(&word);
                break;
            }
            if lines[last].is_empty() {
                // The word is longer than a line.
                lines[last] = word.chars().take(width).collect();
                word = word.chars().skip(width).collect();
            }
            lines.push(String::new());
        }
    }
    lines
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let widths = self.widths();
        let right: Vec<bool> = (0..widths.len()).map(|n| self.has_figures(n)).collect();
        for row in [&self.head].into_iter().chain(&self.rows) {
            let cell = |column: usize| row.get(column).map_or("", String::as_str);
            let cells: Vec<Vec<String>> = widths
                .iter()
                .enumerate()
                .map(|(column, width)| lines(cell(column), *width))
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for number in 0..height {
                let mut line = String::new();
                for (column, width) in widths.iter().enumerate() {
                    let text = cells[column]
                        .get(number)
                        .map_or("", String::as_str)
                        .trim_end();
                    let padding = " ".repeat(width - text.chars().count().min(*width));
                    if column > 0 {
                        line.push_str(GAP);
                    }
                    if right[column] {
                        line.push_str(&padding);
                        line.push_str(text);
                    } else {
                        line.push_str(text);
                        line.push_str(&padding);
                    }
                }
                writeln!(f, "{}", line.trim_end())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_right_and_words_left() {
        let mut table = Table::new(["run", "bytes"]);
        table.row(["aggregated", "7"]);
        table.row(["x", "1,234,567"]);
        table.row(["y", ""]);
        assert_eq!(
            table.to_string(),
            "run             bytes\naggregated          7\nx           1,234,567\ny\n"
        );
    }

    #[test]
    fn a_figure_among_words_stands_left() {
        let mut table = Table::new(["packets", "seen"]);
        table.row(["every 5th", "24"]);
        table.row(["1 %", "141"]);
        assert_eq!(
            table.to_string(),
            "packets    seen\nevery 5th    24\n1 %         141\n"
        );
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let long = "a-name-of-forty-characters-0123456789-01";
        let mut table = Table::new(["fault", "flow", "selection", "met", "fired"]);
        table.row([
            long,
            &format!("{long}.{long}"),
            "bursts, 1 % in, 33 % out",
            "1,234,567",
            "7",
        ]);
        let text = table.to_string();
        assert!(
            text.lines().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
        let joined: String = text.split_whitespace().collect();
        assert!(
            !joined.contains('…') && text.contains("1,234,567"),
            "{text}"
        );
        assert_eq!(lines("aaaaa", 2), ["aa", "aa", "a"]);
        assert_eq!(lines("one two", 4), ["one ", "two"]);
    }

    #[test]
    fn what_begins_with_a_digit_is_no_figure_if_words_follow() {
        for figure in ["7", "-1.5", "1,024", "94.7 %", "7.491 ms"] {
            assert!(is_figure(figure), "{figure}");
        }
        for word in ["", "ms", "3 of 100", "7398acb…", "10.0.0.1 to b"] {
            assert!(!is_figure(word), "{word}");
        }
    }
}
