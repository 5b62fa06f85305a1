//! One HTML page without scripts or outside resources, light or dark as the reader's system is.

use super::table::{Table, is_figure};
use std::fmt::Write as _;

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --good: #1a7f37; --bad: #cf222e; --accent: #0969da; }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #f85149; --accent: #58a6ff; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.verdict { display: inline-block; font-weight: 600; padding: .15rem .6rem; border-radius: .4rem; color: #fff; }
.passed { background: #1a7f37; } .failed { background: #cf222e; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .8rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
td.figure { text-align: right; }
pre { background: var(--soft); padding: .8rem; border-radius: .4rem; overflow-x: auto; font-size: .85rem; }
code { font-size: .9em; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; background: #fff; border-radius: .4rem; }
figcaption { opacity: .75; font-size: .9rem; }
li.passed-line::marker { content: '✓  '; color: var(--good); } li.failed-line::marker { content: '✗  '; color: var(--bad); }
";

/// A page under construction.
#[derive(Debug)]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// A page with its title and verdict at the top.
    pub fn new(title: &str, passed: bool) -> Self {
        let mut page = Self {
            title: title.to_owned(),
            body: String::new(),
        };
        let (class, word) = if passed {
            ("passed", "passed")
        } else {
            ("failed", "failed")
        };
        let _ = write!(
            page.body,
            "<h1>{}</h1>\n<p><span class=\"verdict {class}\">{word}</span></p>\n",
            escape(title)
        );
        page
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) -> &mut Self {
        let _ = writeln!(self.body, "<h2>{}</h2>", escape(text));
        self
    }

    /// A paragraph of plain text.
    pub fn paragraph(&mut self, text: &str) -> &mut Self {
        let _ = writeln!(self.body, "<p>{}</p>", escape(text));
        self
    }

    /// A table.
    pub fn table(&mut self, table: &Table) -> &mut Self {
        self.body.push_str("<div class=\"wide\"><table><thead><tr>");
        for cell in table.head() {
            let _ = write!(self.body, "<th>{}</th>", escape(cell));
        }
        self.body.push_str("</tr></thead><tbody>\n");
        for row in table.rows() {
            self.body.push_str("<tr>");
            for cell in row {
                let class = if is_figure(cell) {
                    " class=\"figure\""
                } else {
                    ""
                };
                let _ = write!(self.body, "<td{class}>{}</td>", escape(cell));
            }
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</tbody></table></div>\n");
        self
    }

    /// Text as it is.
    pub fn preformatted(&mut self, text: &str) -> &mut Self {
        let _ = writeln!(self.body, "<pre><code>{}</code></pre>", escape(text));
        self
    }

    /// A drawing made by [`super::plot`], with what it shows.
    pub fn figure(&mut self, svg: &str, caption: &str) -> &mut Self {
        let _ = writeln!(
            self.body,
            "<figure>{svg}<figcaption>{}</figcaption></figure>",
            escape(caption)
        );
        self
    }

    /// Things that hold or do not.
    pub fn checks<'a>(&mut self, checks: impl IntoIterator<Item = (bool, &'a str)>) -> &mut Self {
        self.body.push_str("<ul>\n");
        for (holds, text) in checks {
            let class = if holds { "passed-line" } else { "failed-line" };
            let _ = writeln!(self.body, "<li class=\"{class}\">{}</li>", escape(text));
        }
        self.body.push_str("</ul>\n");
        self
    }

    /// The whole document.
    pub fn render(&self) -> String {
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
            escape(&self.title),
            self.body
        )
    }
}

/// Text made safe between tags and in attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_outside_cannot_become_markup() {
        let mut page = Page::new("<script>", true);
        let mut table = Table::new(["a\"b"]);
        table.row(["<td>"]);
        page.table(&table).preformatted("x < y & z");
        let html = page.render();
        assert!(!html.contains("<script>"));
        assert!(html.contains("<td>&lt;td&gt;</td>"));
        assert!(html.contains("x &lt; y &amp; z"));
    }
}
