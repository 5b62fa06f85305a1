//! Errors and warnings of the P4 compiler, with source positions: collected in a [`Sink`], returned as [`Diagnostics`].

use crate::limits::LIMITS;
use crate::source::{SourceMap, Span, visible};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::sync::Arc;

/// Severity of a diagnostic: error or warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// An error: the compilation fails.
    Error,
    /// A warning: the program is still accepted.
    Warning,
}

/// Kind of error or warning. Callers match on this code, never on the message text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Code {
    /// A file that cannot be found, or files that include each other.
    Include,
    /// A `#error` directive in the program.
    ErrorDirective,
    /// A malformed or misplaced preprocessor directive.
    Directive,
    /// A malformed macro or macro call.
    Macro,
    /// A limit of the compiler is exceeded: size, nesting, macro expansion.
    Limit,
    /// A malformed token.
    Token,
    /// Input that does not match the grammar.
    Syntax,
    /// A name that is not declared.
    UnknownName,
    /// A name declared twice.
    Duplicate,
    /// Types that do not match.
    Type,
    /// An expression that must be a compile-time constant and is not one, or a constant out of range.
    Constant,
    /// A construct at a position where P4 does not allow it.
    Placement,
    /// A recursion of calls, or a cycle of declarations.
    Cycle,
    /// The program breaks a rule of its architecture (PSA, v1model, TNA).
    Architecture,
    /// Legal P4 that this compiler does not support.
    Unsupported,
    /// An item that is declared but not used, or code without effect.
    Unused,
    /// Legal code that is probably a mistake.
    Lint,
}

impl Code {
    /// All diagnostic codes.
    pub const ALL: &[Code] = &[
        Code::Include,
        Code::ErrorDirective,
        Code::Directive,
        Code::Macro,
        Code::Limit,
        Code::Token,
        Code::Syntax,
        Code::UnknownName,
        Code::Duplicate,
        Code::Type,
        Code::Constant,
        Code::Placement,
        Code::Cycle,
        Code::Architecture,
        Code::Unsupported,
        Code::Unused,
        Code::Lint,
    ];

    /// The diagnostic code as printed between brackets: `syntax` in `error[syntax]: …`.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Include => "include",
            Code::ErrorDirective => "error-directive",
            Code::Directive => "directive",
            Code::Macro => "macro",
            Code::Limit => "limit",
            Code::Token => "token",
            Code::Syntax => "syntax",
            Code::UnknownName => "unknown-name",
            Code::Duplicate => "duplicate",
            Code::Type => "type",
            Code::Constant => "constant",
            Code::Placement => "placement",
            Code::Cycle => "cycle",
            Code::Architecture => "architecture",
            Code::Unsupported => "unsupported",
            Code::Unused => "unused",
            Code::Lint => "lint",
        }
    }
}

/// A further source position that helps to explain a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Source span that the label points to.
    pub span: Span,
    /// Explanation shown at the label's span.
    pub text: String,
}

/// One error or warning of the compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the diagnostic is an error or a warning.
    pub severity: Severity,
    /// Kind of error or warning.
    pub code: Code,
    /// The message: one sentence, lower case, no full stop.
    pub message: String,
    /// Source span at which the error or warning is reported.
    pub span: Span,
    /// Further source positions with explanations.
    pub labels: Vec<Label>,
    /// Advice on how to fix the problem; `None` if there is no advice.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// Creates an error diagnostic without labels or hint.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            span,
            labels: Vec::new(),
            hint: None,
        }
    }

    /// Creates a warning diagnostic without labels or hint.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, span, message)
        }
    }

    /// Adds a label: an explanation at a further source position.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// Adds advice on how to fix the problem.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Diagnostic {
        self.hint = Some(text.into());
        self
    }
}

/// Collects diagnostics: keeps up to `Limits::diagnostics` of each severity, and only counts further ones.
#[derive(Debug, Default)]
pub struct Sink {
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    suppressed: usize,
}

impl Sink {
    /// Creates an empty sink.
    pub fn new() -> Sink {
        Sink::default()
    }

    /// Keeps a diagnostic, or drops it if the previous diagnostic has the same severity, code and span.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let kept = match diagnostic.severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if kept
            .last()
            .is_some_and(|d| d.span == diagnostic.span && d.code == diagnostic.code)
        {
            return;
        }
        if kept.len() < LIMITS.diagnostics {
            kept.push(diagnostic);
        } else {
            self.suppressed += 1;
        }
    }

    /// Adds an error diagnostic to the sink.
    pub fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.push(Diagnostic::error(code, span, message));
    }

    /// Adds a warning diagnostic to the sink.
    pub fn warning(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.push(Diagnostic::warning(code, span, message));
    }

    /// Moves all diagnostics of another sink into this sink.
    pub fn append(&mut self, other: Sink) {
        for diagnostic in other.errors.into_iter().chain(other.warnings) {
            self.push(diagnostic);
        }
        self.suppressed += other.suppressed;
    }

    /// Whether the sink holds an error.
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Number of errors in the sink, without dropped ones.
    pub fn error_count(&self) -> usize {
        self.errors.len()
    }

    /// Whether the sink is full and drops further errors: the compiler phase that reports to it should stop.
    pub fn is_full(&self) -> bool {
        self.errors.len() >= LIMITS.diagnostics
    }

    /// Returns the sink's errors and warnings together, sorted by source position.
    pub fn finish(self, source: Arc<SourceMap>) -> Diagnostics {
        let mut list = self.errors;
        list.extend(self.warnings);
        list.sort_by_key(|d| (d.span.start, d.severity));
        Diagnostics {
            list,
            suppressed: self.suppressed,
            source,
        }
    }
}

/// The diagnostics of a compilation, in source order, with the source that they refer to.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics {
    /// Errors and warnings, in source order.
    pub list: Vec<Diagnostic>,
    /// Number of diagnostics that were dropped because of the limit on each severity.
    pub suppressed: usize,
    /// The source to which the spans of the diagnostics refer.
    pub source: Arc<SourceMap>,
}

impl Diagnostics {
    /// Whether there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether an error is among the diagnostics.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// Iterates over the errors.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter().filter(|d| d.severity == Severity::Error)
    }

    /// Formats each diagnostic as one line: `file:line:column: error[code]: message`.
    pub fn short(&self) -> String {
        let mut out = String::new();
        for d in &self.list {
            let level = match d.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            let at = self.source.location(d.span);
            out.push_str(&format!(
                "{at}: {level}[{}]: {}\n",
                d.code.as_str(),
                d.message
            ));
        }
        out
    }

    /// Formats the diagnostics with source excerpts for a terminal; `coloured` adds color escapes.
    pub fn render(&self, coloured: bool) -> String {
        let renderer = if coloured {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let mut out = String::new();
        for d in &self.list {
            out.push_str(&self.render_one(d, &renderer));
            out.push_str("\n\n");
        }
        if self.suppressed > 0 {
            out.push_str(&format!("… and {} more\n", self.suppressed));
        }
        out
    }

    fn render_one(&self, d: &Diagnostic, renderer: &Renderer) -> String {
        let level = match d.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(d.message.as_str()).id(d.code.as_str());
        let excerpt = Excerpt::new(&self.source, d.span);
        let expansion = expansion(&self.source, d.span);
        let elsewhere: Vec<(&Label, Excerpt)> = d
            .labels
            .iter()
            .filter(|l| !excerpt.holds(l.span))
            .map(|l| (l, Excerpt::new(&self.source, l.span)))
            .collect();
        // The file could not be read: there is no line to show.
        if d.code == Code::Include && self.source.text.is_empty() && excerpt.text.is_empty() {
            return renderer.render(&[Group::with_title(title)]);
        }
        let mut group: Group<'_> = title.element(
            excerpt
                .snippet()
                .annotation(AnnotationKind::Primary.span(excerpt.range(d.span)))
                .annotations(d.labels.iter().filter(|l| excerpt.holds(l.span)).map(|l| {
                    AnnotationKind::Context
                        .span(excerpt.range(l.span))
                        .label(l.text.as_str())
                })),
        );
        for (label, other) in &elsewhere {
            group = group.element(
                other.snippet().annotation(
                    AnnotationKind::Context
                        .span(other.range(label.span))
                        .label(label.text.as_str()),
                ),
            );
        }
        if let Some(note) = &expansion {
            group = group.element(Level::NOTE.message(note.as_str()));
        }
        if let Some(hint) = &d.hint {
            group = group.element(Level::HELP.message(hint.as_str()));
        }
        renderer.render(&[group])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl std::error::Error for Diagnostics {}

/// A source line that a diagnostic shows, as the user wrote it, cut to `MAX_EXCERPT` bytes around the span.
struct Excerpt<'s> {
    source: &'s SourceMap,
    /// Index of the line in `SourceMap::lines`.
    index: usize,
    text: &'s str,
    /// Byte offset in the uncut line at which the excerpt `text` begins.
    from: usize,
    path: String,
    line: usize,
}

/// Maximum length of a source line that a diagnostic shows, in bytes; a longer line is cut.
const MAX_EXCERPT: usize = 400;

impl<'s> Excerpt<'s> {
    fn new(source: &'s SourceMap, span: Span) -> Excerpt<'s> {
        let index = source.line_index(span.start);
        let line = source.written_line(index);
        let at = source.written_range(index, span).start.min(line.len());
        let (mut from, mut end) = (0, line.len());
        if at > MAX_EXCERPT / 2 && line.len() > MAX_EXCERPT {
            from = floor_boundary(line, at - MAX_EXCERPT / 2);
        }
        if end - from > MAX_EXCERPT {
            end = floor_boundary(line, from + MAX_EXCERPT);
        }
        let location = source.location(span);
        Excerpt {
            source,
            index,
            text: line.get(from..end).unwrap_or_default(),
            from,
            path: location.file,
            line: location.line as usize,
        }
    }

    fn snippet<'a, A: Clone>(&'a self) -> Snippet<'a, A> {
        Snippet::source(self.text)
            .path(self.path.as_str())
            .line_start(self.line)
            .fold(false)
    }

    fn holds(&self, span: Span) -> bool {
        let at = self.source.written_range(self.index, span).start;
        self.source.line_index(span.start) == self.index
            && (self.from..=self.from + self.text.len()).contains(&at)
    }

    fn range(&self, span: Span) -> std::ops::Range<usize> {
        let range = self.source.written_range(self.index, span);
        let cut = |at: usize| at.saturating_sub(self.from).min(self.text.len());
        cut(range.start)..cut(range.end)
    }
}

/// Maximum length of a macro expansion in a message, in characters.
const MAX_EXPANSION: usize = 80;

/// A note with the text that replaced a macro call; `None` if the span does not start in such a replacement.
fn expansion(source: &SourceMap, span: Span) -> Option<String> {
    let text = source.expansion_of(span)?;
    let text = visible(text);
    let mut shown: String = text.chars().take(MAX_EXPANSION).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    Some(format!("the macro expands to `{shown}`"))
}

fn floor_boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while at > 0 && !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
