//! The parts of a report: the terminal and the page show the same ones, in the same order.

use super::html::Page;
use super::table::Table;

/// A table, and what belongs to it on a page. A section without rows has neither table nor heading.
pub struct Section<'a> {
    heading: &'static str,
    table: Table,
    legend: &'static str,
    rest: Option<PagePart<'a>>,
}

/// Adds what a page alone shows.
type PagePart<'a> = Box<dyn Fn(&mut Page) + 'a>;

impl<'a> Section<'a> {
    /// A table under its heading, and above what its words mean. A section with an empty heading continues the one before; an
    /// empty legend is left out.
    pub fn new(heading: &'static str, table: Table, legend: &'static str) -> Self {
        Self {
            heading,
            table,
            legend,
            rest: None,
        }
    }

    /// Adds a part that only the page shows, behind the table, whether the table has rows or not.
    #[must_use]
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
