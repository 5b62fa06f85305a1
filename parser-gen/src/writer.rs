//! Writer of indented P4 text.

/// Collects lines of indented P4 text; the caller opens and closes each block.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    pub fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if !line.is_empty() {
            self.text.extend(std::iter::repeat_n("    ", self.depth));
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    pub fn blank(&mut self) {
        self.line("");
    }

    /// Writes `head {`, which opens a block, and indents the lines that follow.
    pub fn open(&mut self, head: impl AsRef<str>) {
        self.line(format!("{} {{", head.as_ref()));
        self.depth += 1;
    }

    pub fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.line("}");
    }

    /// Closes a block with `}` and `end`, as in `};`.
    pub fn close_with(&mut self, end: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.line(format!("}}{end}"));
    }

    /// Closes a block and opens the next, as in `} else if … {`.
    pub fn close_open(&mut self, between: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.line(format!("}} {between} {{"));
        self.depth += 1;
    }

    /// Writes a P4 parser state: its statements, then its transition.
    pub fn state(&mut self, name: &str, statements: &[String], transition: &Transition) {
        self.open(format!("state {name}"));
        for statement in statements {
            self.line(statement);
        }
        match transition {
            Transition::To(state) => self.line(format!("transition {state};")),
            Transition::Select { on, cases, default } => {
                self.open(format!("transition select({})", on.join(", ")));
                for case in cases {
                    let keys = match case.keys.as_slice() {
                        [one] => one.clone(),
                        keys => format!("({})", keys.join(", ")),
                    };
                    self.line(format!("{keys}: {};", case.state));
                }
                self.line(format!("default: {default};"));
                self.close();
            }
        }
        self.close();
    }

    pub fn finish(self) -> String {
        self.text
    }
}

/// Transition at the end of a P4 parser state.
#[derive(Debug, Clone)]
pub(crate) enum Transition {
    To(String),
    Select {
        on: Vec<String>,
        cases: Vec<Case>,
        default: String,
    },
}

/// Case of a `select` in a P4 parser state.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub keys: Vec<String>,
    pub state: String,
}

impl Transition {
    pub fn to(state: &str) -> Transition {
        Transition::To(state.to_owned())
    }

    pub fn select(on: &[&str], cases: Vec<(Vec<String>, String)>, default: &str) -> Transition {
        Transition::Select {
            on: on.iter().map(|on| (*on).to_owned()).collect(),
            cases: cases
                .into_iter()
                .map(|(keys, state)| Case { keys, state })
                .collect(),
            default: default.to_owned(),
        }
    }
}

pub(crate) fn extract(instance: &str) -> String {
    format!("pkt.extract(hdr.{instance});")
}

/// Statements of a parser state that extract `blocks` headers of 32 values each.
pub(crate) fn extract_values(blocks: u16) -> Vec<String> {
    let blocks = 0..blocks;
    blocks.map(|n| extract(&format!("values{n}"))).collect()
}
