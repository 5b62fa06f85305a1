//! The parts of a report: the terminal and the page show the same ones, in the same order.

use super::html::Page;
use super::table::Table;

/// A table and its parts on a page. A section without rows has neither table nor heading.
pub struct Section<'a> {
    heading: &'static str,
    table: Table,
    legend: &'static str,
    rest: Option<PagePart<'a>>,
}

/// A function that adds a part to the page only.
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

    /// Adds a part that only the page shows, after the table, whether or not the table has rows.
    pub fn then(self, rest: impl Fn(&mut Page) + 'a) -> Self {
        Self {
            rest: Some(Box::new(rest)),
            ..self
        }
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Adds the section to a page.
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
