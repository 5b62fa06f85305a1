//! Sections of a report: the terminal and the HTML page show the same sections in the same order.

use super::html::Page;
use super::table::Table;

/// A table of a report with its heading and legend (hidden if it has no rows), and more content for the HTML page.
pub struct Section<'a> {
    heading: &'static str,
    table: Table,
    legend: &'static str,
    rest: Option<PagePart<'a>>,
}

/// A function that adds content to the HTML page, which the terminal does not show.
type PagePart<'a> = Box<dyn Fn(&mut Page) + 'a>;

impl<'a> Section<'a> {
    /// Creates a section with a table under its heading and its legend. A section with an empty heading continues the section
    /// before it; an empty legend is left out.
    pub fn new(heading: &'static str, table: Table, legend: &'static str) -> Self {
        Self {
            heading,
            table,
            legend,
            rest: None,
        }
    }

    /// Adds content that only the HTML page shows, after the table, whether or not the table has rows.
    pub fn then(self, rest: impl Fn(&mut Page) + 'a) -> Self {
        Self {
            rest: Some(Box::new(rest)),
            ..self
        }
    }

    /// The table, which the terminal shows as well.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Adds the heading, the table, the legend and the other content to the HTML page.
    pub fn add(&self, page: &mut Page) {
        if !self.table.rows().is_empty() {
            if !self.heading.is_empty() {
                page.heading(self.heading);
            }
            page.table(&self.table);
            if !self.legend.is_empty() {
                page.about(self.legend);
            }
        }
        if let Some(rest) = &self.rest {
            rest(page);
        }
    }
}
