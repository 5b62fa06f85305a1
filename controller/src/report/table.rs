//! Tables for the terminal: columns as wide as their widest cell, numbers to the right.

/// A table under construction.
#[derive(Debug, Clone, Default)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these column heads.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self {
            head: head.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; missing cells stay empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Column heads.
    pub fn head(&self) -> &[String] {
        &self.head
    }

    /// Rows.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }
}

/// Is the cell a figure (and so aligned right)?
pub fn is_figure(cell: &str) -> bool {
    cell.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+')
        && cell.chars().any(|c| c.is_ascii_digit())
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self
            .rows
            .iter()
            .map(Vec::len)
            .chain([self.head.len()])
            .max()
            .unwrap_or(0);
        let width = |column: usize| {
            let cells = self
                .rows
                .iter()
                .chain([&self.head])
                .filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in [&self.head].into_iter().chain(&self.rows) {
            let mut line = String::new();
            for (column, width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                let padding = " ".repeat(width - cell.chars().count());
                if column > 0 {
                    line.push_str("  ");
                }
                if is_figure(cell) {
                    line.push_str(&padding);
                    line.push_str(cell);
                } else {
                    line.push_str(cell);
                    line.push_str(&padding);
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn figures_stand_right_and_words_left() {
        let mut table = Table::new(["run", "bytes"]);
        table.row(["aggregated", "7"]);
        table.row(["x", "1,234,567"]);
        assert_eq!(
            table.to_string(),
            "run         bytes\naggregated          7\nx           1,234,567\n"
        );
    }
}
