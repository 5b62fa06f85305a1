//! Builds the HTML page of a report, without scripts or outside resources; it is light or dark as the reader's system.

use super::Verdict;
use super::table::Table;
use std::fmt::Write as _;

// Colors have a meaning: green holds, red fails, amber needs attention; blue is the subject of a figure.
const STYLE: &str = "
:root { color-scheme: light dark; --page: #ffffff; --ink: #1f2328; --line: #d1d9e0; --soft: #f6f8fa;
  --good: #1a7f37; --bad: #cf222e; --warn: #9a6700; --main: #0969da; --other: #8c959f; }
@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --ink: #e6edf3; --line: #3d444d; --soft: #161b22;
  --good: #3fb950; --bad: #f85149; --warn: #d29922; --main: #58a6ff; --other: #7d8590; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  background: var(--page); color: var(--ink); }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.verdict { display: inline-block; font-weight: 600; padding: .15rem .6rem; border-radius: .4rem; color: var(--page); }
.good { background: var(--good); } .bad { background: var(--bad); } .warn { background: var(--warn); }
.about { opacity: .75; font-size: .9rem; }
.wide { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem 1.2rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
td.figure, th.figure { text-align: right; }
pre { background: var(--soft); padding: .8rem; border-radius: .4rem; overflow-x: auto; font-size: .85rem; }
code { font-size: .9em; }
figure { margin: 1rem 0; color: var(--ink); overflow-x: auto; }
figure svg { width: 100%; min-width: 44rem; height: auto; }
figcaption { opacity: .75; font-size: .9rem; }
ul.checks { padding-left: 1.5rem; } ul.checks li { padding-left: .3rem; margin: .25rem 0; overflow-wrap: anywhere; }
li.good, li.bad, li.warn { background: none; }
li.good::marker { content: '✓'; color: var(--good); }
li.bad::marker { content: '✗'; color: var(--bad); } li.bad { color: var(--bad); }
li.warn::marker { content: '!'; color: var(--warn); } li.warn { color: var(--warn); }
";

/// An HTML page of a report that is being built.
#[derive(Debug)]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// Creates a page with its title, its verdict, and a list of the checks that fail and of remarks.
    pub fn new(title: &str, verdict: &Verdict) -> Self {
        let mut page = Self {
            title: title.to_owned(),
            body: String::new(),
        };
        let class = match (verdict.is_ok(), verdict.has_reserves()) {
            (false, _) => "bad",
            (true, true) => "warn",
            (true, false) => "good",
        };
        let _ = write!(
            page.body,
            "<h1>{}</h1>\n<p><span class=\"verdict {class}\">{}</span></p>\n",
            escape(title),
            escape(&verdict.headline())
        );
        let failures = verdict.failures().map(|check| ("bad", check.text.as_str()));
        let degraded = verdict.degraded.iter().map(|why| ("warn", why.as_str()));
        let remarks = verdict.remarks.iter().map(|what| ("warn", what.as_str()));
        page.list(failures.chain(degraded).chain(remarks));
        page
    }

    fn list<'a>(&mut self, lines: impl Iterator<Item = (&'static str, &'a str)>) {
        let mut lines = lines.peekable();
        if lines.peek().is_none() {
            return;
        }
        self.body.push_str("<ul class=\"checks\">\n");
        for (class, text) in lines {
            let _ = writeln!(self.body, "<li class=\"{class}\">{}</li>", escape(text));
        }
        self.body.push_str("</ul>\n");
    }

    /// Adds a paragraph of explanation in small letters.
    pub fn about(&mut self, text: &str) -> &mut Self {
        let _ = writeln!(self.body, "<p class=\"about\">{}</p>", escape(text));
        self
    }

    /// Adds a heading to the page.
    pub fn heading(&mut self, text: &str) -> &mut Self {
        let _ = writeln!(self.body, "<h2>{}</h2>", escape(text));
        self
    }

    /// Adds a paragraph of plain text to the page.
    pub fn paragraph(&mut self, text: &str) -> &mut Self {
        let _ = writeln!(self.body, "<p>{}</p>", escape(text));
        self
    }

    /// Adds a table of a report.
    pub fn table(&mut self, table: &Table) -> &mut Self {
        self.body.push_str("<div class=\"wide\"><table><thead><tr>");
        let class = |column: usize| match table.has_figures(column) {
            true => " class=\"figure\"",
            false => "",
        };
        for (column, cell) in table.head().iter().enumerate() {
            let class = class(column);
            let _ = write!(self.body, "<th{class}>{}</th>", escape(cell));
        }
        self.body.push_str("</tr></thead><tbody>\n");
        for row in table.rows() {
            self.body.push_str("<tr>");
            for (column, cell) in row.iter().enumerate() {
                let class = class(column);
                let _ = write!(self.body, "<td{class}>{}</td>", escape(cell));
            }
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</tbody></table></div>\n");
        self
    }

    /// Adds text with its spaces and line breaks, such as a plan.
    pub fn preformatted(&mut self, text: &str) -> &mut Self {
        let _ = writeln!(self.body, "<pre><code>{}</code></pre>", escape(text));
        self
    }

    /// Adds an SVG drawing made by [`super::chart`], with a caption.
    pub fn figure(&mut self, svg: &str, caption: &str) -> &mut Self {
        let _ = writeln!(
            self.body,
            "<figure>{svg}<figcaption>{}</figcaption></figure>",
            escape(caption)
        );
        self
    }

    /// Adds the list of checks that hold; [`Page::new`] has already added the checks that fail.
    pub fn successes(&mut self, verdict: &Verdict) -> &mut Self {
        self.list(
            verdict
                .successes()
                .map(|check| ("good", check.text.as_str())),
        );
        self
    }

    /// Renders the whole HTML document.
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

/// Escapes text for HTML, between tags and in attributes.
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
    use super::super::Check;
    use super::*;

    #[test]
    fn what_comes_from_outside_cannot_become_markup() {
        let verdict = Verdict {
            checks: vec![Check::new(false, "1 < 0"), Check::new(true, "0 < 1")],
            degraded: vec!["a & b".to_owned()],
            remarks: Vec::new(),
        };
        let mut page = Page::new("<script>", &verdict);
        let mut table = Table::new(["a\"b"]);
        table.row(["<td>"]);
        page.table(&table).preformatted("x < y & z");
        let html = page.render();
        assert!(!html.contains("<script>"));
        assert!(html.contains("<td>&lt;td&gt;</td>"));
        assert!(html.contains("x &lt; y &amp; z"));
        assert!(
            html.contains("<li class=\"bad\">1 &lt; 0</li>\n<li class=\"warn\">a &amp; b</li>")
        );
        assert!(
            !html.contains("0 &lt; 1"),
            "it holds, and nobody asked for it"
        );
        page.successes(&verdict);
        let html = page.render();
        assert!(html.contains("<li class=\"good\">0 &lt; 1</li>"));
        assert_eq!(html.matches("1 &lt; 0").count(), 1);
    }
}
