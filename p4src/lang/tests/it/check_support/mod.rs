//! Compiles a program in memory, and prints its IR as readable text.

use p4lang::diagnostics::Diagnostics;
use p4lang::ir::*;
use p4lang::{Files, Options};
use std::fmt::Write;

/// A small architecture of one parser and one control, for programs that test the language.
pub const TINY: &str = "
error { NoError, PacketTooShort, NoMatch, StackOutOfBounds }
match_kind { exact, ternary, lpm, range, optional }
extern packet_in {
    void extract<T>(out T hdr);
    void extract<T>(out T hdr, in bit<32> bits);
    T lookahead<T>();
    void advance(in bit<32> bits);
    bit<32> length();
}
extern packet_out { void emit<T>(in T hdr); }
extern void verify(in bool check, in error toSignal);
@noWarn(\"unused\") action NoAction() {}
extern Register<T, I> {
    Register(bit<32> size);
    Register(bit<32> size, T initial);
    T read(in I index);
    void write(in I index, in T value);
}
extern RegisterAction<T, I, U> {
    RegisterAction(Register<T, I> reg);
    U execute(in I index);
    abstract void apply(inout T value, @optional out U result);
}
extern Picker { Picker(); abstract bit<8> pick(in bit<8> from); bit<8> run(in bit<8> from); }
extern void log<T>(string format, in T value);
extern bit<16> checksum<T>(in T data);
extern bool static_assert(bool check, string message);
parser ParserT<H, M>(packet_in pkt, out H hdr, inout M meta);
control ControlT<H, M>(inout H hdr, inout M meta);
package Tiny<H, M>(ParserT<H, M> p, ControlT<H, M> c);
";

/// A program around the body of a control, over a few headers.
pub fn control(locals: &str, apply: &str) -> String {
    format!(
        "{TINY}
header eth_t {{ bit<48> dst; bit<48> src; bit<16> kind; }}
header tag_t {{ bit<16> id; }}
struct headers_t {{ eth_t eth; tag_t[3] tags; }}
struct meta_t {{ bit<8> a; bit<8> b; bit<16> w; bool f; int<8> s; }}
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta) {{
    state start {{ transition accept; }}
}}
control C(inout headers_t hdr, inout meta_t meta) {{
{locals}
    apply {{
{apply}
    }}
}}
Tiny(P(), C()) main;
"
    )
}

/// A program around the body of a parser.
pub fn parser(body: &str) -> String {
    format!(
        "{TINY}
header eth_t {{ bit<48> dst; bit<48> src; bit<16> kind; }}
header tag_t {{ bit<16> id; }}
header opts_t {{ bit<8> n; varbit<320> data; }}
struct headers_t {{ eth_t eth; tag_t[3] tags; opts_t opts; }}
struct meta_t {{ bit<8> a; bit<16> w; }}
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta) {{
{body}
}}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
Tiny(P(), C()) main;
"
    )
}

/// Compiles a text.
pub fn compile(text: &str) -> Result<Program, Diagnostics> {
    let files = Files::new().with("test.p4", text);
    p4lang::compile(&files, "test.p4", &Options::default()).map(|c| c.program)
}

/// Compiles a text, or fails the test with the diagnostics.
#[track_caller]
pub fn lower(text: &str) -> Program {
    match compile(text) {
        Ok(p) => p,
        Err(d) => panic!("does not compile:\n{d}"),
    }
}

/// The errors, one per line: the source text of the span, then the message.
#[track_caller]
pub fn errors(text: &str) -> Vec<String> {
    match compile(text) {
        Ok(_) => Vec::new(),
        Err(d) => d
            .errors()
            .map(|e| {
                let start = e.span.start as usize;
                let line = d.source.text[..start].rfind('\n').map_or(0, |n| n + 1);
                let end = d.source.text[start..]
                    .find('\n')
                    .map_or(d.source.text.len(), |n| n + start);
                format!("{} | {}", d.source.text[line..end].trim(), e.message)
            })
            .collect(),
    }
}

/// Errors of the body of a control.
#[track_caller]
pub fn control_errors(locals: &str, apply: &str) -> Vec<String> {
    errors(&control(locals, apply))
}

/// The body of the control `C`.
#[track_caller]
pub fn body(locals: &str, apply: &str) -> String {
    let p = lower(&control(locals, apply));
    let c = named(&p, "C");
    Text::of(&p, &c.vars).block(&c.body)
}

/// A control by its full name.
#[track_caller]
pub fn named<'p>(p: &'p Program, name: &str) -> &'p Control {
    match p.controls.iter().find(|c| c.name == name) {
        Some(c) => c,
        None => panic!(
            "no control {name}; there are {:?}",
            p.controls.iter().map(|c| &c.name).collect::<Vec<_>>()
        ),
    }
}

/// A parser with its states.
pub fn show_parser(p: &Program, parser: &Parser) -> String {
    let text = Text::of(p, &parser.vars);
    let mut out = text.block(&parser.init);
    for s in &parser.states {
        writeln!(out, "state {}:", s.name).unwrap();
        for line in text.block(&s.body).lines() {
            writeln!(out, "  {line}").unwrap();
        }
        let target = |t: &Target| match t {
            Target::Accept => "accept".to_owned(),
            Target::Reject => "reject".to_owned(),
            Target::State(id) => parser.states[id.index()].name.clone(),
        };
        match &s.transition {
            Transition::Direct(t) => writeln!(out, "  -> {}", target(t)).unwrap(),
            Transition::Select { keys, cases } => {
                let keys: Vec<_> = keys.iter().map(|k| text.expr(k)).collect();
                writeln!(out, "  select ({})", keys.join(", ")).unwrap();
                for (sets, t) in cases {
                    let sets: Vec<_> = sets.iter().map(|k| text.keyset(k)).collect();
                    writeln!(out, "    {} -> {}", sets.join(", "), target(t)).unwrap();
                }
            }
        }
    }
    out
}

/// Prints a unit's IR.
pub struct Text<'p> {
    program: &'p Program,
    vars: &'p [Var],
}

impl<'p> Text<'p> {
    pub fn of(program: &'p Program, vars: &'p [Var]) -> Text<'p> {
        Text { program, vars }
    }

    pub fn block(&self, block: &[Stmt]) -> String {
        let mut out = String::new();
        for s in block {
            self.stmt(&mut out, s, 0);
        }
        out
    }

    fn nested(&self, out: &mut String, block: &[Stmt], depth: usize) {
        for s in block {
            self.stmt(out, s, depth + 1);
        }
    }

    fn stmt(&self, out: &mut String, s: &Stmt, depth: usize) {
        let pad = "  ".repeat(depth);
        let line = match &s.kind {
            StmtKind::Assign(lv, e) => format!("{} = {}", self.place(lv), self.expr(e)),
            StmtKind::Reset(lv) => format!("reset {}", self.place(lv)),
            StmtKind::If(arms, otherwise) => {
                for (n, arm) in arms.iter().enumerate() {
                    let (word, cond) = (["if", "else if"][n.min(1)], self.expr(&arm.cond));
                    if !arm.before.is_empty() {
                        writeln!(out, "{pad}else before").unwrap();
                        self.nested(out, &arm.before, depth);
                    }
                    writeln!(out, "{pad}{word} {cond}").unwrap();
                    self.nested(out, &arm.then, depth);
                }
                if !otherwise.is_empty() {
                    writeln!(out, "{pad}else").unwrap();
                    self.nested(out, otherwise, depth);
                }
                return;
            }
            StmtKind::Switch {
                value,
                cases,
                default,
            } => {
                writeln!(out, "{pad}switch {}", self.expr(value)).unwrap();
                for (labels, b) in cases {
                    let labels: Vec<_> = labels.iter().map(|c| self.constant(c)).collect();
                    writeln!(out, "{pad} {}:", labels.join(" ")).unwrap();
                    self.nested(out, b, depth);
                }
                writeln!(out, "{pad} default:").unwrap();
                self.nested(out, default, depth);
                return;
            }
            StmtKind::Loop {
                cond_stmts,
                cond,
                body,
                update,
            } => {
                writeln!(out, "{pad}loop").unwrap();
                self.nested(out, cond_stmts, depth);
                writeln!(out, "{pad} while {}", self.expr(cond)).unwrap();
                self.nested(out, body, depth);
                writeln!(out, "{pad} update").unwrap();
                self.nested(out, update, depth);
                return;
            }
            StmtKind::Atomic(b, _) => {
                writeln!(out, "{pad}atomic").unwrap();
                self.nested(out, b, depth);
                return;
            }
            StmtKind::Break => "break".into(),
            StmtKind::Continue => "continue".into(),
            StmtKind::Return => "return".into(),
            StmtKind::Exit => "exit".into(),
            StmtKind::ApplyTable {
                table,
                hit,
                action_run,
            } => {
                let mut line = format!("apply table {}", table.0);
                if let Some(v) = hit {
                    write!(line, " hit {}", self.var(*v)).unwrap();
                }
                if let Some(v) = action_run {
                    write!(line, " action {}", self.var(*v)).unwrap();
                }
                line
            }
            StmtKind::CallAction(id, args) => format!("action {}({})", id.0, self.args(args)),
            StmtKind::ApplyControl(id, args) => format!(
                "apply {}({})",
                self.program.controls[id.index()].name,
                self.args(args)
            ),
            StmtKind::ApplyParser(id, args) => format!(
                "apply {}({})",
                self.program.parsers[id.index()].name,
                self.args(args)
            ),
            StmtKind::CallFunction(id, args) => format!(
                "call {}({})",
                self.program.functions[id.index()].name,
                self.args(args)
            ),
            StmtKind::CallMethod {
                object,
                method,
                args,
                result,
                ..
            } => format!(
                "{}{}.{method}({})",
                self.result(result),
                self.program.externs[object.index()].name,
                self.args(args)
            ),
            StmtKind::CallExtern {
                function,
                type_args,
                args,
                result,
                ..
            } => {
                let types: Vec<_> = type_args.iter().map(|t| self.ty(t)).collect();
                format!(
                    "{}{function}<{}>({})",
                    self.result(result),
                    types.join(", "),
                    self.args(args)
                )
            }
            StmtKind::Extract {
                header,
                varbit_bits,
                ..
            } => match varbit_bits {
                Some(e) => format!("extract {} varbit {}", self.place(header), self.expr(e)),
                None => format!("extract {}", self.place(header)),
            },
            StmtKind::Advance { bits, .. } => format!("advance {}", self.expr(bits)),
            StmtKind::Lookahead { dst, .. } => format!("{} = lookahead", self.place(dst)),
            StmtKind::PacketLength { dst, .. } => format!("{} = length", self.place(dst)),
            StmtKind::Emit { value, .. } => format!("emit {}", self.place(value)),
            StmtKind::Verify(c, e) => format!("verify {}, {}", self.expr(c), self.expr(e)),
            StmtKind::SetValid(lv) => format!("valid {}", self.place(lv)),
            StmtKind::SetInvalid(lv) => format!("invalid {}", self.place(lv)),
            StmtKind::Push(lv, n) => format!("push {} {n}", self.place(lv)),
            StmtKind::Pop(lv, n) => format!("pop {} {n}", self.place(lv)),
        };
        writeln!(out, "{pad}{line}").unwrap();
    }

    fn result(&self, result: &Option<LValue>) -> String {
        match result {
            Some(lv) => format!("{} = ", self.place(lv)),
            None => String::new(),
        }
    }

    fn args(&self, args: &[Arg]) -> String {
        let shown: Vec<String> = args
            .iter()
            .map(|a| match a {
                Arg::In(e) => self.expr(e),
                Arg::Out(lv) => format!("out {}", self.place(lv)),
                Arg::InOut(lv) => format!("inout {}", self.place(lv)),
                Arg::InOutSaved { value, to } => {
                    format!("inout {} from {}", self.place(to), self.expr(value))
                }
                Arg::Object(v) => format!("object {}", self.var(*v)),
                Arg::Extern(id) => self.program.externs[id.index()].name.clone(),
                Arg::Ignore => "_".into(),
            })
            .collect();
        shown.join(", ")
    }

    fn var(&self, v: VarId) -> String {
        self.vars[v.index()].name.clone()
    }

    pub fn place(&self, lv: &LValue) -> String {
        let mut out = self.var(lv.var);
        let mut ty = self.vars[lv.var.index()].ty.clone();
        for step in &lv.path {
            match (step, &ty) {
                (Access::Field(n), Type::Struct(id)) => {
                    let f = &self.program.types[id.index()].fields[*n as usize];
                    write!(out, ".{}", f.name).unwrap();
                    ty = f.ty.clone();
                }
                (Access::Field(n), Type::Tuple(items)) => {
                    write!(out, ".{n}").unwrap();
                    ty = items[*n as usize].clone();
                }
                (Access::Index(e), Type::Stack(id, _)) => {
                    write!(out, "[{}]", self.expr(e)).unwrap();
                    ty = Type::Struct(*id);
                }
                (Access::Next, Type::Stack(id, _)) => {
                    out.push_str(".next");
                    ty = Type::Struct(*id);
                }
                (Access::Last, Type::Stack(id, _)) => {
                    out.push_str(".last");
                    ty = Type::Struct(*id);
                }
                (Access::Slice(hi, lo), Type::Bit(_) | Type::Int(_)) => {
                    write!(out, "[{hi}:{lo}]").unwrap();
                    ty = Type::Bit(hi - lo + 1);
                }
                other => panic!("a path that does not fit its type: {other:?}"),
            }
        }
        assert_eq!(ty, lv.ty, "type at the end of {out}");
        out
    }

    pub fn expr(&self, e: &Expr) -> String {
        match &e.kind {
            ExprKind::Const(c) => self.constant(c),
            ExprKind::Read(lv) => self.place(lv),
            ExprKind::IsValid(lv) => format!("{}.isValid", self.place(lv)),
            ExprKind::LastIndex(lv) => format!("{}.lastIndex", self.place(lv)),
            ExprKind::Unary(op, a) => {
                let op = match op {
                    UnOp::Not => "!",
                    UnOp::BitNot => "~",
                    UnOp::Neg => "-",
                };
                format!("{op}{}", self.expr(a))
            }
            ExprKind::Binary(op, a, b) => format!("({} {op:?} {})", self.expr(a), self.expr(b)),
            ExprKind::Cast(a) => format!("({}){}", self.ty(&e.ty), self.expr(a)),
            ExprKind::Slice(a, hi, lo) => format!("{}[{hi}:{lo}]", self.expr(a)),
            ExprKind::Concat(a, b) => format!("({} ++ {})", self.expr(a), self.expr(b)),
            ExprKind::Mux(c, a, b) => {
                format!("({} ? {} : {})", self.expr(c), self.expr(a), self.expr(b))
            }
            ExprKind::Tuple(items) => {
                let items: Vec<_> = items.iter().map(|i| self.expr(i)).collect();
                format!("{{{}}}", items.join(", "))
            }
            ExprKind::InvalidHeader => "{#}".into(),
        }
    }

    pub fn keyset(&self, k: &Keyset) -> String {
        match k {
            Keyset::Any => "_".into(),
            Keyset::Value(e) => self.expr(e),
            Keyset::Mask(a, b) => format!("{} &&& {}", self.expr(a), self.expr(b)),
            Keyset::Range(a, b) => format!("{}..{}", self.expr(a), self.expr(b)),
            Keyset::ValueSet(id) => format!("set {}", id.0),
        }
    }

    pub fn ty(&self, ty: &Type) -> String {
        match ty {
            Type::Void => "void".into(),
            Type::Bool => "bool".into(),
            Type::Bit(w) => format!("bit<{w}>"),
            Type::Int(w) => format!("int<{w}>"),
            Type::Varbit(w) => format!("varbit<{w}>"),
            Type::Error => "error".into(),
            Type::Enum(id) => self.program.enums[id.index()].name.clone(),
            Type::Struct(id) => self.program.types[id.index()].name.clone(),
            Type::Stack(id, n) => format!("{}[{n}]", self.program.types[id.index()].name),
            Type::Tuple(items) => {
                let items: Vec<_> = items.iter().map(|t| self.ty(t)).collect();
                format!("tuple<{}>", items.join(", "))
            }
            Type::String => "string".into(),
            Type::Extern(name) => name.clone(),
        }
    }

    pub fn constant(&self, c: &Const) -> String {
        match c {
            Const::Bits { value, ty } => match ty {
                Type::Int(w) => format!("{w}s{value}"),
                Type::Bit(w) => format!("{w}w{value}"),
                other => panic!("a number of type {other:?}"),
            },
            Const::Integer(n) => n.to_string(),
            Const::Bool(b) => b.to_string(),
            Const::Enum(id, n) => {
                let e = &self.program.enums[id.index()];
                format!("{}.{}", e.name, e.members[*n as usize])
            }
            Const::Error(n) => format!("error.{}", self.program.errors[*n as usize]),
            Const::Str(s) => format!("{s:?}"),
            Const::Extern(id) => self.program.externs[id.index()].name.clone(),
            Const::Tuple(items) => {
                let items: Vec<_> = items.iter().map(|i| self.constant(i)).collect();
                format!("{{{}}}", items.join(", "))
            }
        }
    }
}
